// Which folder may include which, and the headers that have one place each.
#include <array>
#include <string_view>
#include <vector>

#include "lint/lint.hpp"

namespace sandforge::lint {
namespace {

// Headers that are heavy, or dangerous without the guards in front of them: each has one place,
// which allow.txt names.
struct OnePlace {
  std::string_view prefix;
  std::string_view rule;
};
constexpr std::array<OnePlace, 8> one_place = {{
    {"rapidjson/", "include-rapidjson"},
    {"valijson/", "include-valijson"},
    {"yaml-cpp/", "include-yaml-cpp"},
    {"boost/dll", "include-boost-dll"},
    {"boost/beast", "include-boost-beast"},
    {"CLI/", "include-cli11"},
    {"sqlite3.h", "include-sqlite"},
    {"re2/", "include-re2"},
}};

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> forbidden;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> list = {
      {"core/", {"plugins/", "hosts/"}},
      {"plugins/", {"core/", "hosts/"}},
      {"sdk/", {"core/", "plugins/", "hosts/"}},
  };
  return list;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

// The file of the tree that an #include means, empty for headers from elsewhere. The file's own
// neighbourhood and folder come first, as for the compiler.
std::string resolve(const Source& source, const Tree& tree, const std::string& name) {
  const std::filesystem::path beside = folder_of(source.path) + name;
  std::vector<std::string> found;
  if (std::string path = beside.lexically_normal().generic_string(); tree.paths.count(path) != 0) {
    return path;
  }
  const std::string ending = "/" + name;
  for (const std::string& path : tree.paths) {
    if (path == name || (path.size() > ending.size() &&
                         path.compare(path.size() - ending.size(), ending.size(), ending) == 0)) {
      found.push_back(path);
    }
  }
  const std::string top = source.path.substr(0, source.path.find('/') + 1);
  for (const std::string& preferred : {top, std::string("sdk/")}) {
    for (const std::string& path : found) {
      if (path.rfind(preferred, 0) == 0) {
        return path;
      }
    }
  }
  return found.empty() ? "" : found.front();
}

}  // namespace

void check_includes(const Source& source, const Tree& tree, Findings& findings) {
  for (const Token& token : source.tokens) {
    if (token.kind != Kind::include || token.text.size() < 3) {
      continue;
    }
    const std::string name = token.text.substr(1, token.text.size() - 2);
    for (const OnePlace& heavy : one_place) {
      if (name.rfind(heavy.prefix, 0) == 0) {
        findings.add(std::string(heavy.rule), token.line,
                     token.text + " has one place, behind a small header of ours");
      }
    }
    const std::string target = resolve(source, tree, name);
    for (const Layer& layer : layers()) {
      if (!source.is_below(layer.folder)) {
        continue;
      }
      for (const std::string_view folder : layer.forbidden) {
        if (target.rfind(folder, 0) == 0) {
          findings.add("include-layer", token.line,
                       std::string(layer.folder) + " must not include " + target);
        }
      }
    }
  }
}

}  // namespace sandforge::lint
