// Names that must not be used in some places: sleeping in tests, what changes the whole process in
// plugins, views that clang 14 cannot compile, provider names in core.
#include <array>
#include <string_view>

#include "lint/lint.hpp"

namespace sandforge::lint {
namespace {

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view word) {
  for (const std::string_view entry : list) {
    if (entry == word) {
      return true;
    }
  }
  return false;
}

std::string_view text_at(const std::vector<Token>& tokens, std::size_t i) {
  return i < tokens.size() && tokens[i].kind != Kind::string ? std::string_view(tokens[i].text)
                                                             : "";
}

// A call of a free function: not of a member, not of a name in a namespace other than std.
bool is_free_call(const std::vector<Token>& tokens, std::size_t i) {
  if (text_at(tokens, i + 1) != "(") {
    return false;
  }
  const std::string_view before = i > 0 ? text_at(tokens, i - 1) : "";
  if (before == "." || before == "->" || before == "~") {
    return false;
  }
  if (before == "::") {
    const bool named = i > 1 && tokens[i - 2].kind == Kind::word;
    return !named || tokens[i - 2].text == "std";
  }
  // `void exit(int)` declares something of that name.
  const bool declares = i > 0 && tokens[i - 1].kind == Kind::word && before != "return" &&
                        before != "else" && before != "do" && before != "co_return";
  return !declares;
}

bool uses_coroutines(const std::vector<Token>& tokens) {
  for (const Token& token : tokens) {
    if (token.kind == Kind::word && token.text == "co_await") {
      return true;
    }
  }
  return false;
}

// Of the layer for authors: sleep_for in a coroutine, host.sleep(…).
bool is_host_timer(const std::vector<Token>& tokens, std::size_t i, bool has_coroutines) {
  const std::string_view before = i == 0 ? "" : text_at(tokens, i - 1);
  return (has_coroutines && tokens[i].text == "sleep_for" && before != "::") ||
         (tokens[i].text == "sleep" && (before == "." || before == "->"));
}

void check_views(const std::vector<Token>& tokens, std::size_t i, Findings& findings) {
  const std::string_view word = tokens[i].text;
  const bool in_std = text_at(tokens, i + 1) == "::" && i >= 2 && tokens[i - 1].text == "::" &&
                      tokens[i - 2].text == "std";
  const bool views = word == "views" && in_std;
  const std::string_view inner = text_at(tokens, i + 2);
  const bool in_ranges =
      word == "ranges" && in_std &&
      (inner == "views" || (inner.size() > 5 && inner.substr(inner.size() - 5) == "_view"));
  if (views || in_ranges) {
    findings.add("std-views", tokens[i].line,
                 "views of libstdc++ 12 do not compile with clang 14: write the loop");
  }
}

}  // namespace

void check_calls(const Source& source, Findings& findings) {
  constexpr std::array<std::string_view, 6> sleeps = {
      "sleep", "usleep", "nanosleep", "sleep_for", "sleep_until", "clock_nanosleep"};
  constexpr std::array<std::string_view, 13> globals = {
      "getenv", "secure_getenv", "setenv", "putenv",     "unsetenv",  "clearenv", "abort",
      "exit",   "_exit",         "_Exit",  "quick_exit", "setlocale", "chdir"};
  constexpr std::array<std::string_view, 4> providers = {"docker", "e2b", "platform", "local"};

  const bool is_test = source.is_below("tests/");
  const bool is_plugin = source.is_below("plugins/") || source.is_below("sdk/include/");
  const bool is_core = source.is_below("core/");
  const std::vector<Token>& tokens = source.tokens;
  const bool has_coroutines = uses_coroutines(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.kind == Kind::string && is_core && contains(providers, token.text)) {
      findings.add("core-names-a-provider", token.line,
                   "core knows no provider by name: \"" + token.text + "\"");
    }
    if (token.kind == Kind::include && token.text == "<ranges>") {
      findings.add("std-views", token.line,
                   "<ranges> of libstdc++ 12 does not compile with clang 14");
    }
    if (token.kind != Kind::word) {
      continue;
    }
    check_views(tokens, i, findings);
    const bool is_timer = is_host_timer(tokens, i, has_coroutines);
    const bool sleeps_here =
        contains(sleeps, token.text) && text_at(tokens, i + 1) == "(" && !is_timer;
    if (is_test && sleeps_here) {
      findings.add("test-sleeps", token.line,
                   token.text + " in a test: wait on the condition, with a bound");
    }
    if (is_plugin && contains(globals, token.text) && is_free_call(tokens, i)) {
      findings.add("plugin-changes-process", token.line,
                   token.text + " in code that runs inside a host: use the host's services");
    }
  }
}

}  // namespace sandforge::lint
