// The checkpoints of all sessions below one root. Blocking: for pool threads.
//
//   <root>/.checkpoints/<encoded name>/files/      a session's folder as it was
//   <root>/.checkpoints/<encoded name>/about.json  name, time, size
//   <root>/.checkpoints/.tmp-<random>/             one that is being made or removed
//   <root>/.before-checkpoint/<session>[~2…]/      files in whose place one was booted
//
// No session id and no name of a checkpoint is encoded with a leading dot. A checkpoint is made
// aside and takes its place, or changes places with the one before, by one rename: who is
// interrupted leaves the old one or the new one. What is aside is locked by whoever works on it,
// and a checkpoint that is being read is locked against its removal; what nobody holds is a
// leftover, which the next use removes.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "guest_start.hpp"

namespace sandforge::local {

using CancelFlag = std::atomic<bool>;

struct CheckpointInfo {
  std::string name;
  std::int64_t created_at = 0;  // nanoseconds since the Unix epoch
  std::uint64_t bytes = 0;
  std::vector<std::string> warnings;
};

// Captures the session's folder. Fails with SF_GONE when that is not there, with SF_UNSUPPORTED
// when the session works in a folder outside of it.
std::optional<Failure> capture(const SessionPlace& place, const std::string& name,
                               const CancelFlag& cancelled, CheckpointInfo& out);

std::optional<Failure> list_checkpoints(const std::string& root, std::vector<CheckpointInfo>& out);
// What is gone succeeds.
std::optional<Failure> remove_checkpoint(const std::string& root, const std::string& name);
// Fails with SF_NOT_FOUND where there is none.
std::optional<Failure> find_checkpoint(const std::string& root, const std::string& name);

// From what a session whose machine does not exist is made, the first that there is.
struct BootNames {
  std::optional<std::string> wanted;  // by start_from; it must be there
  std::optional<std::string> own;
  std::optional<std::string> seed;  // only into a folder that is missing or empty
};

enum class BootedFrom { nothing, wanted, own, seed };

struct Booted {
  BootedFrom from = BootedFrom::nothing;
  std::vector<std::string> warnings;
};

// Before the guest is started. A session has a machine while both its folder and its guest's are
// there: then nothing is done, as when there is no checkpoint. The files that destroy kept are
// moved, and stay.
std::optional<Failure> boot(const SessionPlace& place, const BootNames& names,
                            const CancelFlag& cancelled, Booted& out);

}  // namespace sandforge::local
