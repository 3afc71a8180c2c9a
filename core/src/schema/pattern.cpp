#include "pattern.hpp"

#include <re2/re2.h>

#include <utility>

namespace sandforge::schema_detail {

struct Pattern::Engine {
  explicit Engine(const std::string& expression, const re2::RE2::Options& options)
      : regex(expression, options) {}
  re2::RE2 regex;
};

namespace {
constexpr std::int64_t max_program_bytes = 1 << 20;
constexpr std::size_t max_expression_bytes = 8192;
}  // namespace

Pattern::Pattern(std::string expression, std::unique_ptr<Engine> engine)
    : expression_(std::move(expression)), engine_(std::move(engine)) {}
Pattern::~Pattern() = default;

std::shared_ptr<const Pattern> Pattern::compile(std::string_view expression, std::string& error) {
  if (expression.size() > max_expression_bytes) {
    error = "is longer than 8192 bytes";
    return nullptr;
  }
  std::string translated;
  if (!translate_pattern(expression, translated, error)) return nullptr;
  re2::RE2::Options options;
  options.set_max_mem(max_program_bytes);
  options.set_log_errors(false);
  auto engine = std::make_unique<Engine>(translated, options);
  if (!engine->regex.ok()) {
    error = engine->regex.error();
    return nullptr;
  }
  return std::shared_ptr<const Pattern>(new Pattern(std::string(expression), std::move(engine)));
}

bool Pattern::found_in(std::string_view text) const {
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), engine_->regex);
}

}  // namespace sandforge::schema_detail
