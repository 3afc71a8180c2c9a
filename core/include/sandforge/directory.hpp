// What a provider has of its own sandboxes, whoever knows them, and what it left behind.
// Source: sandforge/ext/directory.h: the same in C++.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandforge/backend.hpp"

namespace sandforge {

struct FoundSandbox {
  ProviderSandboxId sandbox_id;
  std::optional<SessionId> session_id;  // absent: it carries none
  MachineState state = MachineState::unknown;
  // This host made it. False: another one did, which may be using it, or nobody can tell.
  bool own = false;
  std::optional<std::int64_t> created_at_ns;  // since the Unix epoch
  json::Object labels;
};

struct FoundPage {
  std::vector<FoundSandbox> sandboxes;
  std::string next;  // token of the next page; empty: this was the last
};

// Something that the provider made, and that no sandbox and no living host needs.
struct Leftover {
  std::string kind;  // the provider's word: "template image"
  std::string id;
  std::string reason;  // why nothing needs it, for a person
  std::optional<std::int64_t> created_at_ns;
  std::optional<std::uint64_t> bytes;
  std::string error;  // what kept it from being removed; empty: nothing, or that was not asked for
};

enum class Sweep : std::uint8_t { look, remove };

// Every call comes on the provider's lane, and its handler is given there. What the provider does
// not offer is refused as unsupported, "feature.directory" and "feature.sweep".
class DirectoryBackend {
 public:
  virtual ~DirectoryBackend() = default;
  // Sandboxes that carry all the labels; without labels all of this provider, of all hosts.
  virtual std::shared_ptr<Pending> find(json::Object labels, std::string page, std::uint32_t limit,
                                        Handler<FoundPage> done) = 0;
  // Ends and removes a sandbox, whoever uses it. What is gone succeeds.
  virtual std::shared_ptr<Pending> remove(ProviderSandboxId id, Handler<void> done) = 0;
  // One that cannot be removed does not keep the others.
  virtual std::shared_ptr<Pending> sweep(Sweep what, Handler<std::vector<Leftover>> done) = 0;
};

// A ProviderBackend that may offer it.
class OffersDirectory {
 public:
  virtual ~OffersDirectory() = default;
  virtual DirectoryBackend* directory() noexcept = 0;
};
// Null: the provider has no way to offer it. Lives as long as the provider. [any]
DirectoryBackend* directory_of(ProviderBackend& provider) noexcept;

}  // namespace sandforge
