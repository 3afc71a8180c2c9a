// C: what is kept of output, and what is counted.
#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

const std::string kSmile = "\xf0\x9f\x98\x80";
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

SpawnOptions keeping(std::uint64_t bytes) {
  SpawnOptions options;
  options.max_retained_bytes = bytes;
  return options;
}

void nothing(Host& host) {
  const auto sandbox = host.started();
  std::string seen;
  auto options = keeping(0);
  options.on_stdout = [&](std::string_view chunk) { seen += chunk; };
  const auto result = sandbox->spawn(shell("echo hello"), options)->wait();
  CHECK(result.out.empty());
  CHECK(result.stdout_truncated);
  CHECK(result.stdout_dropped_bytes == 6);
  CHECK_FALSE(result.stderr_truncated);
  CHECK(seen == "hello\n");
}

void newest(Host& host) {
  const auto sandbox = host.started();
  const auto five = sandbox->spawn(shell("printf 'hello world'"), keeping(5))->wait();
  CHECK(five.out == "world");
  CHECK(five.stdout_dropped_bytes == 6);

  // Four-byte characters on the edge: bytes are exact, the text holds no torn character.
  const auto torn = sandbox->spawn(shell("printf '" + kSmile + kSmile + "'"), keeping(5))->wait();
  CHECK(torn.out == kSmile.substr(3) + kSmile);
  CHECK(torn.stdout_dropped_bytes == 3);
  CHECK(torn.stdout_text().find(kSmile) != std::string::npos);
  const auto whole = sandbox->spawn(shell("printf '" + kSmile + "'"), keeping(4))->wait();
  CHECK(whole.out == kSmile);
  CHECK_FALSE(whole.stdout_truncated);
}

// A mebibyte of whole characters, and then 0 to 4 bytes more, which push as many out.
void characters_on_the_edge(Sandbox& sandbox, std::size_t more) {
  CAPTURE(more);
  const auto result =
      sandbox
          .spawn(shell("yes '" + kSmile + "' | tr -d '\\n' | head -c 1048576; printf '%s' '" +
                       std::string(more, 'x') + "'"))
          ->wait();
  CHECK(result.out.size() == kMebibyte);
  CHECK(result.stdout_dropped_bytes == more);
  CHECK(result.stdout_truncated == (more > 0));
  CHECK(result.out.compare(0, 4 - more % 4, kSmile.substr(more % 4)) == 0);
  // The text begins with a whole character.
  const std::string text = result.stdout_text();
  CHECK(text.compare(0, 4, kSmile) == 0);
  CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
  CHECK(text.size() == (more == 0 ? kMebibyte : kMebibyte - (4 - more % 4) % 4));
}

void mebibyte(Host& host) {
  const auto sandbox = host.started();
  const auto result = sandbox->spawn(shell("head -c 1048580 /dev/zero"))->wait();
  CHECK(result.out.size() == kMebibyte);
  CHECK(result.stdout_dropped_bytes == 4);
  if (host.has("stderr.separate")) {
    const auto err = sandbox->spawn(shell("head -c 1048577 /dev/zero >&2"))->wait();
    CHECK(err.err.size() == kMebibyte);
    CHECK(err.stderr_dropped_bytes == 1);
  }
  const auto command = sandbox->execute_command("head -c 2097152 /dev/zero");
  CHECK(command.out.size() == 2 * kMebibyte);
  CHECK_FALSE(command.stdout_truncated);
  for (std::size_t more = 0; more <= 4; ++more)
    characters_on_the_edge(*sandbox, more);
}

}  // namespace

void add_retention(Procedures& to) {
  to["retention.nothing"] = nothing;
  to["retention.newest"] = newest;
  to["retention.mebibyte"] = mebibyte;
}

}  // namespace sandforge::conformance
