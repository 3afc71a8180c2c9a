// What a sandbox says of itself.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "sandbox/lane_handler.hpp"
#include "sandbox/sandbox_impl.hpp"

namespace sandforge {
namespace {

// 2024-01-31T23:59:59.123Z
std::string iso_time(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = ns / kSecond;
  std::int64_t rest = ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(seconds)),
                     rest / 1'000'000);
}

json::Object resources(const MachineInfo& machine) {
  json::Object out;
  const auto put = [&](const char* key, const std::optional<std::uint64_t>& value) {
    if (value) out.set(key, *value);
  };
  put("memoryMB", machine.memory_mb);
  put("memoryUsedMB", machine.memory_used_mb);
  put("diskMB", machine.disk_mb);
  put("diskUsedMB", machine.disk_used_mb);
  if (machine.cpu_millis) out.set("cpuCores", static_cast<double>(*machine.cpu_millis) / 1000);
  return out;
}

}  // namespace

json::Value to_json(const SandboxInfo& info) {
  json::Object out;
  out.set("id", info.id);
  out.set("name", info.name);
  out.set("provider", info.provider);
  out.set("status", to_string(info.status));
  out.set("createdAt", iso_time(info.created_at_ns));
  if (info.last_used_at_ns) out.set("lastUsedAt", iso_time(*info.last_used_at_ns));
  if (info.timeout_at_ns) out.set("timeoutAt", iso_time(*info.timeout_at_ns));
  if (info.error) out.set("error", *info.error);
  if (auto known = resources(info.machine); !known.empty()) out.set("resources", std::move(known));
  out.set("metadata", info.metadata);
  return out;
}

json::Value to_json(const Checkpoint& checkpoint) {
  json::Object out;
  out.set("name", checkpoint.name);
  if (checkpoint.created_at_ns) out.set("createdAt", iso_time(*checkpoint.created_at_ns));
  if (checkpoint.bytes) out.set("bytes", *checkpoint.bytes);
  if (!checkpoint.warnings.empty()) {
    json::Array warnings;
    for (const auto& warning : checkpoint.warnings)
      warnings.emplace_back(warning);
    out.set("warnings", std::move(warnings));
  }
  return out;
}

namespace sandbox {

SandboxInfo SandboxImpl::info_of(MachineInfo machine) const {
  const Snapshot now = life_.snapshot();
  SandboxInfo info;
  info.id = config_.id;
  info.name = config_.name;
  info.provider = provider();
  info.status = now.status;
  info.created_at_ns = machine.created_at_ns.value_or(created_at_ns_);
  if (const auto used = last_used_ns_.load(); used != 0) info.last_used_at_ns = used;
  info.timeout_at_ns = machine.timeout_at_ns;
  info.error = now.error;
  info.metadata = machine.metadata;
  const auto& id = machine.sandbox_id ? machine.sandbox_id : now.sandbox_id;
  if (id) info.metadata.set("sandboxId", id->str());
  info.machine = std::move(machine);
  return info;
}

void SandboxImpl::async_info(Handler<SandboxInfo> done) {
  post(lane_, [self = self(), done = std::move(done)]() mutable {
    auto& sandbox = *self;
    sandbox.life_.with_backend([self = std::move(self), done = std::move(done)](
                                   Result<std::shared_ptr<SandboxBackend>> backend) mutable {
      if (!backend) return std::move(done)(std::move(backend).error());
      (*backend)->info([self = std::move(self), backend = *backend,
                        done = std::move(done)](Result<MachineInfo> result) mutable {
        if (result) return std::move(done)(self->info_of(*std::move(result)));
        const Status code = result.error().code;
        MachineInfo machine;
        if (code == Status::gone || code == Status::not_found) {
          machine.state = MachineState::absent;
        } else if (code != Status::unsupported) {
          return std::move(done)(std::move(result).error());
        }
        std::move(done)(self->info_of(std::move(machine)));
      });
    });
  });
}

void SandboxImpl::async_instructions(Handler<std::string> done) {
  post(lane_, [self = self(), done = std::move(done)]() mutable {
    auto& sandbox = *self;
    if (const auto* text = std::get_if<std::string>(&sandbox.config_.instructions))
      return std::move(done)(*text);
    sandbox.life_.with_backend([self = std::move(self), done = std::move(done)](
                                   Result<std::shared_ptr<SandboxBackend>> backend) mutable {
      if (!backend) return std::move(done)(std::move(backend).error());
      (*backend)->instructions([self = std::move(self), backend = *backend,
                                done = std::move(done)](Result<std::string> text) mutable {
        using Function = std::function<std::string(std::string)>;
        const auto* function = std::get_if<Function>(&self->config_.instructions);
        if (text && function != nullptr && *function) {
          const auto called =
              contained("the instructions function", [&] { text = (*function)(*std::move(text)); });
          if (!called) return std::move(done)(called.error());
        }
        std::move(done)(std::move(text));
      });
    });
  });
}

}  // namespace sandbox
}  // namespace sandforge
