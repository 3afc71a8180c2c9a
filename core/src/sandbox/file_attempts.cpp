#include "sandbox/file_attempts.hpp"

#include <string>
#include <utility>

#include "sandbox/features.hpp"

namespace sandforge::sandbox {
namespace {

constexpr int kTries = 3;  // over connections that break before delivery

}  // namespace

// The operation keeps this object until `use` was called.
void FileAttempts::next(Use use) {
  machine_ = {};
  host_->used();
  host_->features([this, use = std::move(use)](Result<Features> features) {
    if (!features) return use(std::move(features).error());
    if (auto bad = check_feature(feature_, what_, host_->provider(), *features))
      return use(*std::move(bad));
    run(use);
  });
}

void FileAttempts::run(Use use) {
  if (auto machine = host_->machine()) return take(*std::move(machine), use);
  host_->ensure_running([this, use = std::move(use)](Result<Machine> machine) {
    if (!machine) return use(std::move(machine).error());
    take(*std::move(machine), use);
  });
}

void FileAttempts::take(Machine machine, const Use& use) {
  machine_ = std::move(machine);
  ++tries_;
  FilesBackend* files = machine_.backend->files();
  if (files != nullptr) return use(files);
  use(Error(Status::unsupported, "this provider does not serve files", "feature.files"));
}

bool FileAttempts::again(Error& error) {
  const std::uint64_t epoch = machine_.epoch;
  if (error.code == Status::transport_lost && host_->destroyed(epoch)) {
    error.code = Status::gone;
    return false;
  }
  if (error.may_have_started || !machine_.backend) return false;
  switch (error.code) {
    case Status::gone:
      // The caller must hear that its machine is gone; the next call gets another one.
      host_->machine_lost(epoch, true);
      return false;
    case Status::conflict:
      host_->machine_lost(epoch, false);
      return !machine_.in_hook && !std::exchange(restarted_, true);
    case Status::transport_lost:
      return tries_ < kTries;
    default:
      return false;
  }
}

void FileAttempts::end() {
  machine_ = {};
  host_->used();
}

}  // namespace sandforge::sandbox
