#include "redact_disguises.hpp"

#include <algorithm>
#include <set>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/redact.hpp"

namespace sandforge::redaction {
namespace {

// Shorter pieces of base64 would match by chance.
constexpr std::size_t kShortestPiece = 6;
// Shorter lines are braces and the like.
constexpr std::size_t kShortestLine = 8;
// Of a longer secret no disguises are known: they take up to a thousand times its size.
constexpr std::size_t kLongestDisguised = 16U << 10;

using Forms = std::set<std::string>;

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t hit = text.find(what); hit != std::string_view::npos;
       hit = text.find(what, at)) {
    out.append(text, at, hit - at).append(by);
    at = hit + what.size();
  }
  return out.append(text.substr(at));
}

// Standard and URL alphabet of the same digits.
void add_both_alphabets(std::string text, Forms& forms) {
  forms.insert(text);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  forms.insert(std::move(text));
}

void add_base64(std::string_view secret, Forms& forms) {
  const std::string whole = base64_encode(secret);
  add_both_alphabets(whole, forms);
  add_both_alphabets(whole.substr(0, whole.find('=')), forms);
  // Within a longer encoded text: the digits that depend on the secret alone.
  for (std::size_t offset = 0; offset < 3; ++offset) {
    const std::string text = base64_encode(std::string(offset, '\0').append(secret));
    const std::size_t from = (offset * 8 + 5) / 6;
    const std::size_t to = (offset + secret.size()) * 8 / 6;
    if (to - from >= kShortestPiece) add_both_alphabets(text.substr(from, to - from), forms);
  }
}

void add_percent(std::string_view secret, Forms& forms) {
  const std::string strict = percent_encode(secret);
  std::string browser = strict;  // encodeURIComponent keeps five more
  for (const auto& [code, c] : {std::pair("%21", "!"), std::pair("%27", "'"), std::pair("%28", "("),
                                std::pair("%29", ")"), std::pair("%2A", "*")}) {
    browser = replaced(browser, code, c);
  }
  for (const std::string& text : {strict, browser, percent_encode_path(secret)}) {
    forms.insert(text);
    forms.insert(replaced(text, "%20", "+"));
    std::string small = text;
    for (std::size_t i = 0; i < small.size(); ++i) {
      if (small[i] != '%') continue;
      for (std::size_t k = i + 1; k < i + 3; ++k) {
        if (small[k] >= 'A' && small[k] <= 'F') small[k] = static_cast<char>(small[k] - 'A' + 'a');
      }
      i += 2;
    }
    forms.insert(std::move(small));
  }
}

std::string json_text(std::string_view text) {
  const std::string quoted = json::write(json::Value(text));
  return quoted.substr(1, quoted.size() - 2);
}

void add_json(std::string_view secret, Forms& forms) {
  const std::string text = json_text(secret);
  forms.insert(text);
  forms.insert(json_text(text));  // JSON within a JSON string
  forms.insert(replaced(text, "/", "\\/"));
  std::string html = text;  // safe within HTML, as some writers make it
  for (const auto& [c, code] :
       {std::pair("&", "\\u0026"), std::pair("<", "\\u003c"), std::pair(">", "\\u003e")}) {
    html = replaced(html, c, code);
  }
  forms.insert(std::move(html));
}

void add_forms(std::string_view secret, Forms& forms) {
  forms.insert(std::string(secret));
  add_base64(secret, forms);
  add_percent(secret, forms);
  add_json(secret, forms);
  forms.insert(replaced(secret, "'", "'\\''"));
  forms.insert(replaced(secret, "'", "'\"'\"'"));
}

}  // namespace

std::string_view trimmed(std::string_view secret) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t from = secret.find_first_not_of(kBlank);
  if (from == std::string_view::npos) return {};
  return secret.substr(from, secret.find_last_not_of(kBlank) + 1 - from);
}

std::vector<std::string> disguises(std::string_view secret) {
  Forms forms;
  const auto add = [&, plain = secret.size() > kLongestDisguised](std::string_view text) {
    if (plain) {
      forms.emplace(text);
    } else {
      add_forms(text, forms);
    }
  };
  add(secret);
  std::string_view rest = secret;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    if (line.size() >= kShortestLine && line.size() < secret.size()) add(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {forms.begin(), forms.end()};
}

}  // namespace sandforge::redaction
