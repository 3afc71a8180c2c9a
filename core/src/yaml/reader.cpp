#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>

#include "builder.hpp"
#include "text.hpp"

namespace sandforge {
namespace {

namespace yd = yaml_detail;

// Reads from memory without a copy.
class MemoryBuffer final : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // never written: there is no output area
    setg(begin, begin, begin + text.size());
  }
};

SourcePosition position(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {static_cast<std::size_t>(mark.line) + 1, static_cast<std::size_t>(mark.column) + 1};
}

std::size_t offset(const YAML::Mark& mark) {
  return mark.pos < 0 ? 0 : static_cast<std::size_t>(mark.pos);
}

// Passes events on, or only counts documents.
class Events final : public YAML::EventHandler {
 public:
  explicit Events(yd::Builder* builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    throw yd::Refused{
        "another document starts here, only one is allowed; is the indentation right?",
        position(mark)};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_ != nullptr) builder_->null({position(mark), offset(mark)}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (builder_ != nullptr) builder_->alias({position(mark), offset(mark)}, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (builder_ == nullptr) return;
    builder_->scalar({position(mark), offset(mark)}, tag, anchor, yd::with_whole_escapes(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (builder_ != nullptr) builder_->open_sequence({position(mark), offset(mark)}, tag, anchor);
  }
  void OnSequenceEnd() override {
    if (builder_ != nullptr) builder_->close();
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    const bool block = style == YAML::EmitterStyle::Block;
    if (builder_ != nullptr) builder_->open_map({position(mark), offset(mark)}, tag, anchor, block);
  }
  void OnMapEnd() override {
    if (builder_ != nullptr) builder_->close();
  }

 private:
  yd::Builder* builder_;
  int documents_ = 0;
};

void run_parser(std::string_view text, yd::Builder* builder) {
  MemoryBuffer buffer(text);
  std::istream stream(&buffer);
  YAML::Parser parser(stream);
  Events events(builder);
  while (parser.HandleNextDocument(events)) {
  }
}

std::string_view without_trailing_space(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
}

YamlResult failed(std::string message, SourcePosition at) {
  YamlResult out;
  out.error = {std::move(message), at};
  return out;
}

bool indented_by_tab(std::string_view text, const YAML::Mark& mark) {
  const std::size_t end = std::min(offset(mark), text.size());
  const std::size_t newline = text.substr(0, end).rfind('\n');
  const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  const std::string_view line = text.substr(start);
  const std::size_t content = line.find_first_not_of(" \t");
  return line.substr(0, content).find('\t') != std::string_view::npos;
}

// What the parser says, where that helps nobody.
std::string readable(const YAML::Exception& error, std::string_view text) {
  if (error.msg == "bad file") return "the document nests too deep";
  if (error.msg == "illegal EOF in scalar") return "a quote is not closed";
  if (error.msg.substr(0, 15) == "invalid unicode") {
    return "an escape that is no character; write the character itself";
  }
  if (indented_by_tab(text, error.mark)) return "tabs cannot indent a line; use spaces";
  if (error.msg == "illegal map value") {
    return "a value is not expected here; is a quote or a line break missing?";
  }
  if (error.msg == "end of map flow not found") {
    return "a { is not closed; a text with braces, such as \"${NAME}\", wants quotes here";
  }
  if (error.msg == "end of sequence flow not found") return "a [ is not closed";
  return error.msg;
}

}  // namespace

YamlResult parse_yaml(std::string_view text, const YamlLimits& limits) {
  text = yd::without_byte_order_mark(text);
  YamlError refused = yd::check_text(text, limits);
  if (!refused.message.empty()) return failed(std::move(refused.message), refused.at);
  try {
    // An unclosed quote is an error only where the text ends in it at once; with a newline after
    // it, the rest of the file would become part of the string.
    run_parser(without_trailing_space(text), nullptr);
    YamlResult out;
    yd::Builder builder(text, limits, out.source);
    run_parser(text, &builder);
    out.value = builder.take();
    return out;
  } catch (const yd::Refused& error) {
    return failed(error.message, error.at);
  } catch (const YAML::Exception& error) {
    return failed(readable(error, text), position(error.mark));
  } catch (const std::exception& error) {
    return failed(std::string("the document cannot be read: ") + error.what(), {1, 1});
  }
}

}  // namespace sandforge
