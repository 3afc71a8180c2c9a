// What containers and images are called.
#pragma once

#include <string>
#include <string_view>

namespace sandforge::wire::docker {

// "<prefix>-<id>-<8 digits of its SHA-256>": characters of the id that an engine does not take
// become '-', a long id is cut, and different ids never share a name. The prefix is made of the
// characters that remain, too; an empty one is left out.
std::string container_name(std::string_view prefix, std::string_view id);
// Whether it is one of these, with any prefix. Labels say less: images, and with them containers of
// others, inherit them.
bool is_container_name(std::string_view name, std::string_view id);

// "sandforge-checkpoint:<name>-<16 digits of its SHA-256>", made in the same way.
inline constexpr std::string_view kCheckpointRepository = "sandforge-checkpoint";
std::string checkpoint_image(std::string_view name);

// "node" and "latest"; "registry:5000/a/b" and "1.2"; "a@sha256:…" and "".
struct ImageReference {
  std::string repository;  // with the digest, where there is one
  std::string tag;         // "latest" where neither tag nor digest was given: never all tags
};
ImageReference split_image(std::string_view reference);
// What stands for the registry of images whose names have none.
inline constexpr std::string_view kDefaultRegistry = "docker.io";
// The host of the registry that an image comes from, or kDefaultRegistry.
std::string registry_of(std::string_view reference);

// "a=1&b=x%20y" from pairs of names and values.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value);
  // With the '?' in front; empty when nothing was added.
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

}  // namespace sandforge::wire::docker
