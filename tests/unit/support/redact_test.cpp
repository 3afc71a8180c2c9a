#include "sandforge/support/redact.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/shell.hpp"

using sandforge::RedactingStream;
using sandforge::Redactor;

namespace {

std::string shapes(std::string_view text) {
  return Redactor().redact(text);
}

std::string in_chunks(const Redactor& redactor, std::string_view text, std::size_t size) {
  RedactingStream stream(redactor);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size)
    stream.feed(text.substr(at, size), out);
  stream.flush(out);
  return out;
}

}  // namespace

TEST_CASE("redact: a registered secret, wherever it stands") {
  Redactor redactor;
  CHECK(redactor.redact("s3cr3t-value") == "s3cr3t-value");
  CHECK(redactor.add("s3cr3t-value"));
  CHECK(redactor.redact("s3cr3t-value") == "***");
  CHECK(redactor.redact("a=s3cr3t-values3cr3t-value;") == "a=******;");
  CHECK(redactor.redact("s3cr3t-valu s3cr3t-valuf") == "s3cr3t-valu s3cr3t-valuf");
  CHECK(redactor.redact("s3cr3t-s3cr3t-value") == "s3cr3t-***");
  CHECK(redactor.redact("").empty());
}

TEST_CASE("redact: registration counts") {
  Redactor redactor;
  CHECK(redactor.add("password1"));
  CHECK(redactor.add("password1"));
  CHECK(redactor.remove("password1"));
  CHECK(redactor.redact("password1") == "***");
  CHECK(redactor.remove("password1"));
  CHECK(redactor.redact("password1") == "password1");
  CHECK_FALSE(redactor.remove("password1"));
}

TEST_CASE("redact: secrets that are too short are not registered") {
  Redactor redactor;
  CHECK_FALSE(redactor.add(""));
  CHECK_FALSE(redactor.add("abc"));
  CHECK_FALSE(redactor.add(" abc\n"));
  CHECK_FALSE(redactor.add("    \n"));
  CHECK(redactor.add("abcd"));
  CHECK(redactor.redact("abc abcd") == "abc ***");
}

TEST_CASE("redact: blanks at the ends do not belong to a secret") {
  Redactor redactor;
  CHECK(redactor.add("from-a-file\n"));
  CHECK(redactor.redact("x from-a-file y") == "x *** y");
  CHECK(redactor.remove("from-a-file"));
}

TEST_CASE("redact: secrets that overlap leave nothing of either") {
  Redactor redactor;
  redactor.add("abcdef");
  redactor.add("defghi");
  redactor.add("bcde");
  CHECK(redactor.redact("xabcdefghix") == "x***x");
  CHECK(redactor.redact("xabcdx bcde abcdef") == "xabcdx *** ***");
}

TEST_CASE("redact: disguises of a secret") {
  const std::string secret = "p@ss/w\xC3\xB6rd's \"<1>\" & more+!";
  Redactor redactor;
  redactor.add(secret);
  const std::string json_text = sandforge::json::write(sandforge::json::Value(secret));
  CHECK(redactor.redact(json_text) == "\"***\"");
  CHECK(redactor.redact(sandforge::json::write(sandforge::json::Value(json_text))) ==
        "\"\\\"***\\\"\"");
  CHECK(redactor.redact(sandforge::percent_encode(secret)) == "***");
  CHECK(redactor.redact(sandforge::percent_encode_path(secret)) == "***");
  CHECK(redactor.redact("p%40ss%2fw%c3%b6rd%27s%20%22%3c1%3e%22%20%26%20more%2b%21") == "***");
  CHECK(redactor.redact("p%40ss%2Fw%C3%B6rd's%20%22%3C1%3E%22%20%26%20more%2B!") == "***");
  CHECK(redactor.redact("p%40ss%2Fw%C3%B6rd%27s+%22%3C1%3E%22+%26+more%2B%21") == "***");
  CHECK(redactor.redact("\"p@ss/w\xC3\xB6rd's \\\"\\u003c1\\u003e\\\" \\u0026 more+!\"") ==
        "\"***\"");
  CHECK(redactor.redact(sandforge::shell_quote(secret)) == "'***'");
  CHECK(redactor.redact(sandforge::base64_encode(secret)) == "***");
  CHECK(redactor.redact(sandforge::base64url_encode(secret)) == "***");
}

TEST_CASE("redact: base64 of a longer text that holds the secret") {
  Redactor redactor;
  redactor.add("hunter22secret");
  for (const char* before : {"", "u", "us", "user:", "someone:"}) {
    for (const char* after : {"", "x", "\n", ":more"}) {
      const std::string text = std::string(before) + "hunter22secret" + after;
      const std::string out = redactor.redact(sandforge::base64_encode(text));
      INFO(text << " " << out);
      CHECK(out.find("***") != std::string::npos);
      // Nothing that is left decodes to three bytes of the secret in a row.
      const std::string whole = sandforge::base64_encode(text);
      CHECK(out.size() < whole.size() - 12);
    }
  }
}

TEST_CASE("redact: lines of a secret") {
  Redactor redactor;
  redactor.add("-----BEGIN KEY-----\nMIIabcdefgh\n}\nijklmnopqrs\r\n-----END KEY-----\n");
  CHECK(redactor.redact("[1] MIIabcdefgh\n[2] ijklmnopqrs\n}") == "[1] ***\n[2] ***\n}");
}

TEST_CASE("redact: a long secret is known as it is and by its lines, in no disguise") {
  std::string secret;
  for (int i = 0; secret.size() < (16U << 10); ++i)
    secret += "line number " + std::to_string(i) + "\n";
  secret += "and its \"last\" line";
  Redactor redactor;
  REQUIRE(redactor.add(secret));
  CHECK(redactor.redact("a " + secret + " b") == "a *** b");
  CHECK(redactor.redact("[1] line number 17\n[2] and its \"last\" line") == "[1] ***\n[2] ***");
  CHECK(redactor.redact("and its \\\"last\\\" line") == "and its \\\"last\\\" line");
}

TEST_CASE("redact: userinfo of URLs") {
  CHECK(shapes("https://user:pass@host/x") == "https://***@host/x");
  CHECK(shapes("'https://token@host'") == "'https://***@host'");
  CHECK(shapes("a //u:p@h b //u2:p2@h2") == "a //***@h b //***@h2");
  CHECK(shapes("https://u:p@ss@host/") == "https://***@host/");
  CHECK(shapes("https://u:%40@host") == "https://***@host");
  CHECK(shapes("///u:p@h") == "///***@h");
  CHECK(shapes("https://host/a@b") == "https://host/a@b");
  CHECK(shapes("https://host?x=a@b") == "https://host?x=a@b");
  CHECK(shapes("https://host:80/ mail a@b") == "https://host:80/ mail a@b");
  CHECK(shapes("// comment, a@b") == "// comment, a@b");
  CHECK(shapes("https://@host") == "https://@host");
  CHECK(shapes("//***@host") == "//***@host");
  CHECK(shapes("//") == "//");
  CHECK(shapes("/") == "/");
}

TEST_CASE("redact: the bound on userinfo") {
  const std::string longest(4095, 'p');
  CHECK(shapes("//" + longest + "@host") == "//***@host");
  CHECK(shapes("//" + longest + "p@host") == "//" + longest + "p@host");
}

TEST_CASE("redact: tokens of GitHub") {
  const std::string body = "0123456789abcdefghijABCDEFGHIJ012345";
  for (const char* prefix : {"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}) {
    CHECK(shapes("x " + (prefix + body) + ", y") == "x ***, y");
    CHECK(shapes(prefix + body) == "***");
    CHECK(shapes(prefix + std::string("abc")) == prefix + std::string("abc"));
    CHECK(shapes(prefix + std::string("abc def")) == prefix + std::string("abc def"));
  }
  CHECK(shapes("ghs_12345_eyJhbGci.eyJpc3Mi-x.c2ln_x;") == "***;");
  CHECK(shapes("ghx_" + body) == "ghx_" + body);
  CHECK(shapes("aghp_" + body) == "a***");
}

TEST_CASE("redact: the Authorization header") {
  CHECK(shapes("Authorization: Bearer abc.def\r\nHost: x") ==
        "Authorization: Bearer ***\r\nHost: x");
  CHECK(shapes("authorization: basic dTpw") == "authorization: basic ***");
  CHECK(shapes("AUTHORIZATION:token t0k") == "AUTHORIZATION:token ***");
  CHECK(shapes("Authorization: rawvalue next") == "Authorization: *** next");
  CHECK(shapes(R"({"Authorization":"Bearer abc","x":1})") ==
        R"({"Authorization":"Bearer ***","x":1})");
  CHECK(shapes(R"("{\"Authorization\": \"Bearer abc\"}")") ==
        R"("{\"Authorization\": \"Bearer ***\"}")");
  CHECK(shapes("-H 'Authorization: Bearer abc' url") == "-H 'Authorization: Bearer ***' url");
  CHECK(shapes("Proxy-Authorization: Basic abc") == "Proxy-Authorization: Basic ***");
  CHECK(shapes("Authorization: Bearertoken x") == "Authorization: *** x");
  CHECK(shapes("Authorization: Bearer *** x") == "Authorization: Bearer *** x");
  CHECK(shapes("authorization is needed") == "authorization is needed");
  CHECK(shapes("Authorization: ") == "Authorization: ");
  CHECK(shapes("Authorization:\n") == "Authorization:\n");
  CHECK(shapes("Authorization") == "Authorization");
}

TEST_CASE("redact: secrets and shapes together") {
  Redactor redactor;
  redactor.add("swordfish");
  CHECK(redactor.redact("https://u:swordfish@h swordfish") == "https://***@h ***");
  CHECK(redactor.redact("Authorization: Bearer swordfish.x y") == "Authorization: Bearer *** y");
}

TEST_CASE("redact: a stream holds back no more than it must") {
  Redactor redactor;
  redactor.add("secretsecret1");
  RedactingStream stream(redactor);
  CHECK(stream.feed("hello ") == "hello ");
  CHECK(stream.feed("secretsecret").empty());
  CHECK(stream.feed("secret1.") == "secret***.");
  CHECK(stream.feed("sec") == "");
  CHECK(stream.flush() == "sec");
  CHECK(stream.feed("ret1") == "ret1");
  CHECK(stream.feed("see https:") == "see https:");
  CHECK(stream.feed("//user:") == "");
  CHECK(stream.feed("pass@h/x") == "//***@h/x");
}

TEST_CASE("redact: a stream follows the registrations") {
  Redactor redactor;
  redactor.add("first-secret");
  RedactingStream stream(redactor);
  CHECK(stream.feed("first-sec") == "");
  redactor.add("sec-second");
  CHECK(stream.feed("-second.") == "first-***.");
  redactor.add("first-secret-and-more");
  CHECK(stream.feed("first-secret-and") == "");
  redactor.remove("first-secret-and-more");
  CHECK(stream.feed("-less ") == "***-and-less ");
  redactor.remove("first-secret");
  redactor.remove("sec-second");
  CHECK(stream.feed("first-secret") == "first-secret");
}

TEST_CASE("redact: chunks of any size give the same text") {
  Redactor redactor;
  redactor.add("abcabd");
  redactor.add("bdab");
  redactor.add("\"quoted\" value/+");
  const std::string pieces[] = {"abc",   "abd",
                                "ab",    "bd",
                                "//u:",  "@",
                                "h/",    " ",
                                "ghp_",  "012345",
                                "6789_", "x",
                                "gith",  "ub_pat_",
                                "Autho", "rization",
                                ": ",    "Bea",
                                "rer ",  "\"",
                                "tok",   "\\\"quoted\\\" val",
                                "ue/+",  "\n",
                                "%2F",   "g",
                                "a",     "/"};
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += pieces[random() % std::size(pieces)];
    const std::string whole = redactor.redact(text);
    REQUIRE(whole.find("abcabd") == std::string::npos);
    REQUIRE(whole.find("bdab") == std::string::npos);
    for (std::size_t size : {1U, 2U, 3U, 7U, 50U})
      REQUIRE(in_chunks(redactor, text, size) == whole);
  }
}

TEST_CASE("redact: hostile texts and secrets stay linear") {
  Redactor redactor;
  for (std::size_t length = 4; length < 200; ++length) {
    redactor.add(std::string(length, 'a') + "b");
  }
  const std::string text(1U << 20, 'a');
  CHECK(redactor.redact(text) == text);
  const std::string slashes(1U << 20, '/');
  CHECK(in_chunks(redactor, slashes, 1000) == slashes);
  const std::string open = "//" + std::string(1U << 18, 'u');
  CHECK(in_chunks(redactor, open, 1) == open);
}

TEST_CASE("redact: threads register while others redact") {
  Redactor redactor;
  redactor.add("always-here");
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int n = 0; n < 200; ++n)
        wrong += redactor.redact("x always-here y") == "x *** y" ? 0 : 1;
    });
  }
  for (int i = 0; i < 200; ++i) {
    redactor.add("secret-" + std::to_string(i));
    if (i > 10) redactor.remove("secret-" + std::to_string(i - 10));
  }
  for (std::thread& reader : readers)
    reader.join();
  CHECK(wrong == 0);
}

TEST_CASE("redact: of secrets that pass, the newest are known") {
  sandforge::Redactor redactor;
  const auto token = [](std::size_t i) { return "token-" + std::to_string(1000000 + i); };
  for (std::size_t i = 0; i < sandforge::Redactor::kPassing; ++i)
    redactor.add_passing(token(i));
  // One that is given again is no other one.
  redactor.add_passing(token(sandforge::Redactor::kPassing - 1));
  CHECK(redactor.redact(token(0)) == "***");
  redactor.add_passing(token(sandforge::Redactor::kPassing));
  CHECK(redactor.redact(token(0)) == token(0));
  CHECK(redactor.redact(token(1)) == "***");
  CHECK(redactor.redact(token(sandforge::Redactor::kPassing)) == "***");
  redactor.add_passing("abc");
  CHECK(redactor.redact(token(1)) == "***");
}
