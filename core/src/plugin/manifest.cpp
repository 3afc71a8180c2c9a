#include "sandforge/manifest.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/elf_section.hpp"
#include "sandforge/abi.h"
#include "sandforge/support/suggest.hpp"

#include "plugin/names.hpp"

namespace sandforge {
namespace {

constexpr std::size_t kMaxBytes = 1U << 20;
constexpr std::size_t kMaxItems = 256;

class FileSource final : public plugin::ByteSource {
 public:
  FileSource(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  std::uint64_t size() const override { return size_; }
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t n = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      out = out.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
    return true;
  }

 private:
  int descriptor_;
  std::uint64_t size_;
};

class MemorySource final : public plugin::ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  bool read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    if (!out.empty())
      std::memcpy(out.data(), bytes_.data() + static_cast<std::size_t>(offset), out.size());
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
};

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool is_variable(std::string_view text) {
  if (text.empty() || text.size() > 256 || is_digit(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; });
}

bool is_plain_text(std::string_view text, std::size_t limit) {
  return text.size() <= limit && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

// Reads members of the document and collects what is wrong with them.
class Reader {
 public:
  void mistake(const std::string& pointer, std::string message) {
    json::Object entry;
    entry.set("pointer", pointer);
    entry.set("message", std::move(message));
    mistakes_.emplace_back(std::move(entry));
  }

  void refuse_unknown(const json::Object& object, const std::string& at,
                      const std::vector<std::string>& known) {
    for (const auto& [key, value] : object) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const auto near = nearest_name(key, known);
      mistake(at + "/" + json::escape_pointer(key),
              near ? fmt::format("unknown key, did you mean \"{}\"", *near)
                   : std::string("unknown key"));
    }
  }

  const json::Value* required(const json::Object& object, const std::string& at,
                              std::string_view key) {
    const json::Value* value = object.find(key);
    if (value == nullptr) mistake(at + "/" + std::string(key), "is missing");
    return value;
  }

  std::string text(const json::Object& object, const std::string& at, std::string_view key,
                   std::size_t limit, bool is_required) {
    const json::Value* value = is_required ? required(object, at, key) : object.find(key);
    if (value == nullptr) return {};
    const std::string pointer = at + "/" + std::string(key);
    if (!value->is_string()) {
      mistake(pointer, "must be a string");
    } else if (!is_plain_text(value->as_string(), limit)) {
      mistake(pointer, fmt::format("must be one line of at most {} bytes", limit));
    } else if (is_required && value->as_string().empty()) {
      mistake(pointer, "must not be empty");
    } else {
      return value->as_string();
    }
    return {};
  }

  std::string name(const json::Object& object, const std::string& at) {
    const json::Value* value = required(object, at, "name");
    if (value == nullptr) return {};
    if (value->is_string() && plugin::is_name(value->as_string())) return value->as_string();
    mistake(at + "/name", "must be a name: a-z, 0-9, '-', '_' and '.', at most 64 bytes");
    return {};
  }

  std::uint32_t number(const json::Object& object, const std::string& at, std::string_view key) {
    const json::Value* value = required(object, at, key);
    if (value == nullptr) return 0;
    if (value->is_integer() && value->as_integer() >= 0 && value->as_integer() <= 65535)
      return static_cast<std::uint32_t>(value->as_integer());
    mistake(at + "/" + std::string(key), "must be an integer from 0 to 65535");
    return 0;
  }

  std::vector<std::string> names(const json::Object& object, std::string_view key,
                                 bool (*good)(std::string_view), std::string_view rule) {
    std::vector<std::string> out;
    const json::Value* value = object.find(key);
    if (value == nullptr) return out;
    const std::string at = "/" + std::string(key);
    if (!value->is_array() || value->as_array().size() > kMaxItems) {
      mistake(at, fmt::format("must be an array of at most {} names", kMaxItems));
      return out;
    }
    for (std::size_t i = 0; i < value->as_array().size(); ++i) {
      const json::Value& item = value->as_array()[i];
      const std::string pointer = fmt::format("{}/{}", at, i);
      if (!item.is_string() || !good(item.as_string())) {
        mistake(pointer, std::string(rule));
      } else if (std::find(out.begin(), out.end(), item.as_string()) != out.end()) {
        mistake(pointer, "is listed twice");
      } else {
        out.push_back(item.as_string());
      }
    }
    return out;
  }

  json::Array take() { return std::move(mistakes_); }

 private:
  json::Array mistakes_;
};

ManifestProvider read_provider(Reader& reader, const json::Value& value, const std::string& at) {
  ManifestProvider out;
  if (!value.is_object()) {
    reader.mistake(at, "must be an object");
    return out;
  }
  const json::Object& object = value.as_object();
  reader.refuse_unknown(object, at, {"name", "displayName", "description", "optionsSchema"});
  out.name = reader.name(object, at);
  out.display_name = reader.text(object, at, "displayName", 128, false);
  out.description = reader.text(object, at, "description", 4096, false);
  if (out.display_name.empty()) out.display_name = out.name;
  const json::Value* schema = reader.required(object, at, "optionsSchema");
  if (schema != nullptr && schema->is_object()) {
    out.options_schema = schema->as_object();
  } else if (schema != nullptr) {
    reader.mistake(at + "/optionsSchema", "must be an object");
  }
  return out;
}

void read_providers(Reader& reader, const json::Object& object, Manifest& manifest) {
  const json::Value* value = reader.required(object, "", "providers");
  if (value == nullptr) return;
  if (!value->is_array() || value->as_array().empty() || value->as_array().size() > kMaxItems)
    return reader.mistake("/providers",
                          fmt::format("must be an array of 1 to {} providers", kMaxItems));
  for (std::size_t i = 0; i < value->as_array().size(); ++i) {
    const std::string at = fmt::format("/providers/{}", i);
    auto provider = read_provider(reader, value->as_array()[i], at);
    const bool twice =
        !provider.name.empty() &&
        std::any_of(manifest.providers.begin(), manifest.providers.end(),
                    [&](const ManifestProvider& other) { return other.name == provider.name; });
    if (twice) reader.mistake(at + "/name", "is declared twice");
    manifest.providers.push_back(std::move(provider));
  }
}

void read_abi(Reader& reader, const json::Object& object, Manifest& manifest) {
  const json::Value* value = reader.required(object, "", "abi");
  if (value == nullptr) return;
  if (!value->is_object()) return reader.mistake("/abi", "must be an object");
  reader.refuse_unknown(value->as_object(), "/abi", {"major", "minor"});
  manifest.abi_major = reader.number(value->as_object(), "/abi", "major");
  manifest.abi_minor = reader.number(value->as_object(), "/abi", "minor");
}

Error invalid(std::string message) {
  return Error(Status::invalid, std::move(message), "plugin.manifest_invalid");
}

}  // namespace

bool plugin::is_name(std::string_view text) {
  if (text.empty() || text.size() > 64 || (!is_lower(text[0]) && !is_digit(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower(c) || is_digit(c) || c == '-' || c == '_' || c == '.';
  });
}

std::vector<std::string> plugin::unknown_services(const Manifest& manifest) {
  std::vector<std::string> out;
  for (const std::string& name : manifest.services)
    if (std::find(kServiceNames.begin(), kServiceNames.end(), name) == kServiceNames.end())
      out.push_back(name);
  return out;
}

std::string plugin::list_unknown_services(const std::vector<std::string>& names) {
  const std::vector<std::string> known(kServiceNames.begin(), kServiceNames.end());
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : ", ") + name;
    if (const auto near = nearest_name(name, known))
      out += fmt::format(" (did you mean {}?)", *near);
  }
  return out;
}

Result<Manifest> parse_manifest(std::string_view text) {
  json::Limits limits;
  limits.bytes = kMaxBytes;
  limits.nodes = 20'000;
  auto parsed = json::parse(text, limits);
  if (!parsed)
    return invalid(fmt::format("the manifest is no JSON document: line {}, column {}: {}",
                               parsed.error.line, parsed.error.column, parsed.error.message));
  if (!parsed.value.is_object()) return invalid("the manifest must be a JSON object");
  const json::Object& object = parsed.value.as_object();

  // A manifest of another version is refused by that alone: its other keys are not ours to judge.
  const json::Value* version = object.find("manifest");
  if (version == nullptr || !version->is_integer() || version->as_integer() != 1)
    return invalid("/manifest must be 1, the version of manifests that this program reads");

  Reader reader;
  Manifest manifest;
  reader.refuse_unknown(object, "",
                        {"manifest", "name", "version", "abi", "providers", "env", "services",
                         "homepage", "license"});
  manifest.name = reader.name(object, "");
  manifest.version = reader.text(object, "", "version", 64, true);
  read_abi(reader, object, manifest);
  read_providers(reader, object, manifest);
  manifest.env =
      reader.names(object, "env", is_variable, "must be the name of an environment variable");
  manifest.services =
      reader.names(object, "services", plugin::is_name, "must be the name of a service");
  manifest.homepage = reader.text(object, "", "homepage", 1024, false);
  manifest.license = reader.text(object, "", "license", 128, false);

  json::Array mistakes = reader.take();
  if (mistakes.empty()) return manifest;
  const std::string first =
      mistakes[0].find("pointer")->as_string() + " " + mistakes[0].find("message")->as_string();
  Error error =
      invalid(mistakes.size() == 1 ? "the manifest is not valid: " + first
                                   : fmt::format("the manifest is not valid: {} (and {} more)",
                                                 first, mistakes.size() - 1));
  error.details.set("mistakes", std::move(mistakes));
  return error;
}

json::Value to_json(const Manifest& manifest) {
  const auto list = [](const std::vector<std::string>& names) {
    return json::Array(names.begin(), names.end());
  };
  json::Object abi;
  abi.set("major", manifest.abi_major);
  abi.set("minor", manifest.abi_minor);
  json::Array providers;
  for (const ManifestProvider& provider : manifest.providers) {
    json::Object entry;
    entry.set("name", provider.name);
    entry.set("displayName", provider.display_name);
    if (!provider.description.empty()) entry.set("description", provider.description);
    entry.set("optionsSchema", provider.options_schema);
    providers.emplace_back(std::move(entry));
  }
  json::Object out;
  out.set("manifest", 1);
  out.set("name", manifest.name);
  out.set("version", manifest.version);
  out.set("abi", std::move(abi));
  out.set("providers", std::move(providers));
  out.set("env", list(manifest.env));
  out.set("services", list(manifest.services));
  if (!manifest.homepage.empty()) out.set("homepage", manifest.homepage);
  if (!manifest.license.empty()) out.set("license", manifest.license);
  return out;
}

Result<std::string> manifest_text(std::span<const std::byte> file) {
  return plugin::read_section(MemorySource(file), SF_MANIFEST_SECTION, kMaxBytes);
}

Result<std::string> manifest_text(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || status.st_size < 0)
    return Error(Status::invalid, fmt::format("cannot be read: {}", std::strerror(errno)),
                 "plugin.truncated");
  return plugin::read_section(FileSource(descriptor, static_cast<std::uint64_t>(status.st_size)),
                              SF_MANIFEST_SECTION, kMaxBytes);
}

}  // namespace sandforge
