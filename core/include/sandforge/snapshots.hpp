// Checkpoints: kept states of a sandbox's file system. A fresh machine boots from the checkpoint
// that bears the sandbox's own name; a snapshot is the act of capturing one.
// Source: sandforge/ext/snapshot.h: the same in C++; the FactorySandbox document, "Checkpoint
// recovery".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sandforge/handler.hpp"
#include "sandforge/runtime.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge {

struct Checkpoint {
  std::string name;
  std::optional<std::int64_t> created_at_ns;  // since the Unix epoch; absent: not known
  std::optional<std::uint64_t> bytes;         // of its files; absent: not known
  std::vector<std::string> warnings;          // what could not be captured; for a person
};
json::Value to_json(const Checkpoint& checkpoint);

struct SnapshotOptions {
  SnapshotOptions() = default;
  // Absent: the sandbox's own: its configuration's checkpoint_name, else the id that the caller
  // chose. The seed checkpoint is refused: it is read only.
  std::optional<std::string> name;
  // Ends the capture: cancelled, and a checkpoint of that name is what it was before.
  std::stop_token stop;
};

struct SnapshotResult {
  std::optional<Checkpoint> checkpoint;  // absent: nothing was captured
  std::string why_not;                   // for a person; empty where something was captured
};

// What core needs of a provider. Every call comes on the sandbox's lane and every handler is given
// there, exactly once and never from inside the call.
class SnapshotsBackend {
 public:
  virtual ~SnapshotsBackend() = default;
  // Captures under the name, as a whole or not at all. Nothing: the machine does not run.
  virtual std::shared_ptr<Pending> create(std::string name,
                                          Handler<std::optional<Checkpoint>> done) = 0;
  virtual std::shared_ptr<Pending> list(Handler<std::vector<Checkpoint>> done) = 0;  // newest first
  virtual std::shared_ptr<Pending> remove(std::string name, Handler<void> done) = 0;
  // The next fresh start boots from it. not_found: there is no such checkpoint.
  virtual std::shared_ptr<Pending> start_from(std::string name, Handler<void> done) = 0;
};

}  // namespace sandforge
