#include "plugin/abi_directory.hpp"

#include <utility>

#include "plugin/abi_builds.hpp"
#include "plugin/abi_call.hpp"
#include "plugin/read_list.hpp"
#include "sandforge/ext/directory.h"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMaxFound = 100'000;
constexpr std::size_t kMaxToken = 4096;

std::optional<std::int64_t> known_time(std::int64_t raw) {
  return raw == 0 ? std::nullopt : std::optional(raw);
}

FoundSandbox read_found(Plugin& plugin, const sf_directory_entry& raw) {
  FoundSandbox out;
  out.sandbox_id = ProviderSandboxId(copy_text(raw.sandbox_id, 4096));
  if (raw.session_id.ptr != nullptr) out.session_id = SessionId(copy_text(raw.session_id, 4096));
  if (raw.state <= SF_STATE_STOPPED) out.state = static_cast<MachineState>(raw.state);
  out.own = (raw.flags & SF_DIRECTORY_OWN) != 0;
  out.created_at_ns = known_time(raw.created_at);
  if (view(raw.labels).empty()) return out;
  auto labels = copy_json(plugin, raw.labels, "the labels of a sandbox");
  if (labels && labels->is_object()) out.labels = std::move(labels->as_object());
  return out;
}

Result<FoundPage> read_page(Plugin& plugin, const sf_directory_entry* first, std::size_t count,
                            std::size_t stride, sf_str next) {
  auto entries = read_list(
      plugin, "sandboxes", first, count, stride, kMaxFound,
      [](const sf_directory_entry* item) { return SF_HAS(item, labels); },
      [&](const sf_directory_entry& item) { return read_found(plugin, item); });
  if (!entries.ok()) return std::move(entries).error();
  FoundPage out;
  out.sandboxes = *std::move(entries);
  out.next = copy_text(next, kMaxToken);
  return out;
}

Leftover read_leftover(const sf_leftover& raw) {
  Leftover out;
  out.kind = copy_text(raw.kind, 4096);
  out.id = copy_text(raw.id, 4096);
  out.reason = copy_text(raw.reason);
  out.created_at_ns = known_time(raw.created_at);
  if (raw.bytes != SF_NONE) out.bytes = raw.bytes;
  out.error = copy_text(raw.error);
  return out;
}

void done_found(void* ctx, const sf_error* error, const sf_directory_entry* first,
                std::size_t count, std::size_t stride, sf_str next) noexcept {
  complete<FoundPage>(ctx, error, "directory.find.done", [=](Plugin& plugin) {
    return read_page(plugin, first, count, stride, next);
  });
}

void done_sweep(void* ctx, const sf_error* error, const sf_leftover* first, std::size_t count,
                std::size_t stride) noexcept {
  complete<std::vector<Leftover>>(ctx, error, "directory.sweep.done", [=](Plugin& plugin) {
    return read_list(
        plugin, "leftovers", first, count, stride, kMaxFound,
        [](const sf_leftover* item) { return SF_HAS(item, error); }, read_leftover);
  });
}

Error lacks(const char* feature) {
  return Error(Status::unsupported, "this provider cannot list what it has", feature);
}

class AbiDirectory final : public DirectoryBackend {
 public:
  explicit AbiDirectory(std::shared_ptr<ProviderCore> core) : core_(std::move(core)) {}

  std::shared_ptr<Pending> find(json::Object labels, std::string page, std::uint32_t limit,
                                Handler<FoundPage> done) override {
    return start<FoundPage>(
        "directory.find", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          const auto* its = table();
          if (its == nullptr || !SF_HAS_FN(its, find)) return lacks("feature.directory");
          const std::string text = labels.empty() ? std::string() : json::write(labels);
          return call_status(core_->plugin, "directory.find", its->find, core_->raw, to_str(text),
                             to_str(page), limit, sf_directory_completion{ctx, &done_found}, op);
        });
  }

  std::shared_ptr<Pending> remove(ProviderSandboxId id, Handler<void> done) override {
    return start<void>(
        "directory.remove", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          const auto* its = table();
          if (its == nullptr || !SF_HAS_FN(its, remove)) return lacks("feature.directory");
          return call_status(core_->plugin, "directory.remove", its->remove, core_->raw,
                             to_str(id.str()), sf_completion{ctx, &done_void}, op);
        });
  }

  std::shared_ptr<Pending> sweep(Sweep what, Handler<std::vector<Leftover>> done) override {
    return start<std::vector<Leftover>>(
        "directory.sweep", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          const auto* its = table();
          if (its == nullptr || !SF_HAS_FN(its, sweep)) return lacks("feature.sweep");
          const std::uint32_t flags = what == Sweep::remove ? SF_SWEEP_REMOVE : 0;
          return call_status(core_->plugin, "directory.sweep", its->sweep, core_->raw, flags,
                             sf_sweep_completion{ctx, &done_sweep}, op);
        });
  }

 private:
  const sf_directory_ext* table() {
    return static_cast<const sf_directory_ext*>(provider_extension(*core_, SF_EXT_DIRECTORY));
  }

  template <class T, class Start>
  std::shared_ptr<Pending> start(const char* what, Handler<T> done, Start&& begin) {
    return run_call(
        std::make_shared<Call<T>>(core_->plugin, core_->lane, what, core_, std::move(done)),
        [&](void* ctx, sf_op** op) -> Result<void> {
          if (auto good = need_lane(core_->lane, what); !good) return good;
          return begin(ctx, op);
        });
  }

  const std::shared_ptr<ProviderCore> core_;
};

}  // namespace

std::unique_ptr<DirectoryBackend> make_directory(std::shared_ptr<ProviderCore> core) {
  return std::make_unique<AbiDirectory>(std::move(core));
}

}  // namespace sandforge::plugin

namespace sandforge {

DirectoryBackend* directory_of(ProviderBackend& provider) noexcept {
  auto* offering = dynamic_cast<OffersDirectory*>(&provider);
  return offering == nullptr ? nullptr : offering->directory();
}

}  // namespace sandforge
