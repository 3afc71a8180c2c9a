// Identifiers of different kinds are different types.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace sandforge {

template <class Tag>
class Id {
 public:
  Id() = default;
  explicit Id(std::string text) : text_(std::move(text)) {}
  const std::string& str() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the 0 of a comparison for a pointer
  friend auto operator<=>(const Id&, const Id&) = default;
  friend bool operator==(const Id&, const Id&) = default;

 private:
  std::string text_;
};

using SessionId = Id<struct SessionIdTag>;  // ours, chosen by the host or its caller
using ProviderSandboxId = Id<struct ProviderSandboxIdTag>;  // the provider's own
using ProcessId = Id<struct ProcessIdTag>;                  // of a process within its sandbox
using BuildId = Id<struct BuildIdTag>;
using TemplateId = Id<struct TemplateIdTag>;

}  // namespace sandforge

template <class Tag>
struct std::hash<sandforge::Id<Tag>> {
  std::size_t operator()(const sandforge::Id<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.str());
  }
};
