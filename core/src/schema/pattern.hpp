// Regular expressions of schemas. RE2 runs in linear time; the syntax is the part of ECMA 262 that
// RE2 can express with the same meaning, and everything else is refused at load.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace sandforge::schema_detail {

class Pattern {
 public:
  // Null with a reason in `error` when the expression is refused.
  static std::shared_ptr<const Pattern> compile(std::string_view expression, std::string& error);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  bool found_in(std::string_view text) const;
  const std::string& expression() const noexcept { return expression_; }

 private:
  struct Engine;
  Pattern(std::string expression, std::unique_ptr<Engine> engine);
  std::string expression_;
  std::unique_ptr<Engine> engine_;
};

// ECMA 262 to RE2 syntax. False with a reason in `error` for what has no equal in RE2.
bool translate_pattern(std::string_view expression, std::string& translated, std::string& error);

}  // namespace sandforge::schema_detail
