// The snapshot extension of a plugin's sandbox.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "plugin/abi_backend.hpp"
#include "sandforge/snapshots.hpp"

namespace sandforge::plugin {

// The table when it is whole; null when it is absent, or lacks a function, which is a fault.
const sf_snapshot_ext* usable_snapshots(Plugin& plugin, const sf_snapshot_ext* table);

// Null where the sandbox has no such extension.
std::unique_ptr<SnapshotsBackend> make_snapshots(std::shared_ptr<SandboxCore> core);

// Says what a fresh machine boots from, then starts it, unless the first was refused or all of it
// was cancelled meanwhile. `start` keeps `snapshots` alive, which may be null.
std::shared_ptr<Pending> boot_from(
    const Lane& lane, SnapshotsBackend* snapshots, std::string name,
    std::function<std::shared_ptr<Pending>(Handler<StartResult>)> start, Handler<StartResult> done);

}  // namespace sandforge::plugin
