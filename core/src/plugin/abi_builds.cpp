#include "plugin/abi_builds.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_command.hpp"
#include "plugin/members.hpp"
#include "plugin/read_list.hpp"
#include "sandforge/ext/builds.h"
#include "sandforge/ext/template.h"

namespace sandforge::plugin {
namespace {

constexpr std::size_t kMaxBuilds = 100'000;
constexpr std::uint64_t kLogWindow = 256U << 10;

Error no_feature(const char* name) {
  return Error(Status::unsupported, std::string("this provider has no ") + name,
               std::string("feature.") + name);
}

// A request in the form that plugins read; points into what it was made of.
class RequestView {
 public:
  RequestView(Plugin& plugin, const BuildRequest& request)
      : settings_(json::write(request.settings)),
        env_(request.ephemeral_env),
        document_(request.template_document.value_or("")) {
    if (request.context) context_ = new HostContext(plugin, request.context);
    value_.struct_size = sizeof(value_);
    value_.context = context_;
    value_.settings = to_str(settings_);
    value_.build_id = to_str(request.build.str());
    value_.ephemeral_env = env_.data();
    value_.ephemeral_env_count = env_.size();
    if (request.template_document) value_.template_document = to_str(document_);
  }
  ~RequestView() {
    if (context_ != nullptr) HostContext::release(context_);
  }
  RequestView(const RequestView&) = delete;
  RequestView& operator=(const RequestView&) = delete;
  const sf_build_request* get() const noexcept { return &value_; }

 private:
  const std::string settings_;
  const EnvView env_;
  const std::string document_;
  sf_context* context_ = nullptr;
  sf_build_request value_{};
};

Result<ResolvedTemplate> read_template(Plugin& plugin, const sf_template_result* result) {
  if (result == nullptr || !SF_HAS(result, warnings)) {
    plugin.faults.report(Fault::missing_value, "resolve answered without a template");
    return crashed(plugin, "resolve answered without a template", "missing_value");
  }
  ResolvedTemplate out;
  out.document = copy_optional(result->document);
  out.identity = copy_text(result->identity, 4096);
  out.family = copy_text(result->family, 4096);
  out.warnings = copy_strings(plugin, result->warnings, "the warnings of a template");
  return out;
}

std::optional<std::int64_t> time(std::int64_t raw) {
  return raw == 0 ? std::nullopt : std::optional(raw);
}

Build read_build(const sf_build& raw) {
  Build out;
  out.id = BuildId(copy_text(raw.build_id, 4096));
  if (raw.status <= SF_BUILD_FAILED) out.status = static_cast<BuildStatus>(raw.status);
  out.template_id = TemplateId(copy_text(raw.template_id, 4096));
  out.started_at_ns = time(raw.started_at);
  out.finished_at_ns = time(raw.finished_at);
  out.error = copy_text(raw.error);
  if (raw.retry_after_ms != SF_NONE)
    out.retry_after = std::chrono::milliseconds(
        std::min<std::uint64_t>(raw.retry_after_ms, std::numeric_limits<std::int32_t>::max()));
  return out;
}

Result<std::vector<Build>> read_builds(Plugin& plugin, const sf_build* first, std::size_t count,
                                       std::size_t stride) {
  return read_list(
      plugin, "builds", first, count, stride, kMaxBuilds,
      [](const sf_build* item) { return SF_HAS(item, retry_after_ms); }, read_build);
}

void done_template(void* ctx, const sf_error* error, const sf_template_result* result) noexcept {
  complete<ResolvedTemplate>(ctx, error, "template.resolve.done",
                             [result](Plugin& plugin) { return read_template(plugin, result); });
}

void done_builds(void* ctx, const sf_error* error, const sf_build* first, std::size_t count,
                 std::size_t stride) noexcept {
  complete<std::vector<Build>>(ctx, error, "builds.done", [=](Plugin& plugin) {
    return read_builds(plugin, first, count, stride);
  });
}

Result<Build> only(Plugin& plugin, Result<std::vector<Build>> all) {
  if (!all.ok()) return std::move(all).error();
  if (all->size() == 1) return std::move(all->front());
  plugin.faults.report(Fault::bad_value, "one build was asked for");
  return crashed(plugin, "it answered " + std::to_string(all->size()) + " builds, not one");
}

// A log on its way: its pieces come on the lane, and credit goes back for each.
class LogCall final : public Pending, public std::enable_shared_from_this<LogCall> {
 public:
  static constexpr char kKind = 0;

  LogCall(std::shared_ptr<ProviderCore> core, std::function<void(Bytes)> on_data,
          Handler<void> done)
      : core_(std::move(core)), on_data_(std::move(on_data)), done_(std::move(done)) {}

  // On the lane.
  template <class Start>
  void run(Start&& start) {
    void* ctx = core_->plugin.tokens.add(shared_from_this(), &kKind);
    if (ctx == nullptr)
      return end(Error(Status::unavailable, "too many operations of one plugin are running"));
    const sf_stream_events events{sizeof(events), ctx, &LogCall::data, [](void*) noexcept {},
                                  &LogCall::over};
    sf_stream* stream = nullptr;
    Result<void> outcome = start(&events, &stream);
    if (outcome.ok()) {
      if (const char* missing = missing_member(stream)) {
        core_->plugin.faults.report(Fault::missing_value, std::string("builds.logs: ") + missing);
        outcome = crashed(core_->plugin, std::string("the log lacks ") + missing, "missing_member");
      }
    }
    if (outcome.ok()) {
      stream_ = stream;
      return;
    }
    core_->plugin.tokens.drop(ctx);
    end(std::move(outcome));
  }

  void cancel() noexcept override {
    core_->lane.post([self = shared_from_this()] {
      if (self->stream_ != nullptr)
        call_value(self->core_->plugin, "stream.cancel", self->stream_->vtbl->cancel,
                   self->stream_);
    });
  }

  void end(Result<void> result) {
    core_->lane.post([self = shared_from_this(), result = std::move(result)]() mutable {
      if (auto* stream = std::exchange(self->stream_, nullptr))
        call_value(self->core_->plugin, "stream.release", stream->vtbl->release, stream);
      auto done = std::move(self->done_);
      std::move(done)(std::move(result));
    });
  }

 private:
  static std::shared_ptr<LogCall> of(void* ctx, bool last, const char* what) noexcept {
    return std::static_pointer_cast<LogCall>(object_of(ctx, &kKind, last, what));
  }

  static void data(void* ctx, std::uint32_t, std::uint32_t, sf_bytes bytes) noexcept {
    const auto self = of(ctx, false, "builds.logs.on_data");
    if (!self || bytes.len == 0) return;
    if (self->credit_.fetch_sub(static_cast<std::int64_t>(bytes.len)) <
        static_cast<std::int64_t>(bytes.len)) {
      self->core_->plugin.faults.report(Fault::over_credit, "builds.logs");
      self->credit_.fetch_add(static_cast<std::int64_t>(bytes.len));
      return;
    }
    try {
      self->core_->lane.post([self, piece = std::string(view(bytes))] { self->take(piece); });
    } catch (...) {
      self->core_->plugin.faults.report(Fault::bad_value, "a piece of a log was lost: no memory");
    }
  }

  static void over(void* ctx, const sf_error* error, const sf_stream_end*) noexcept {
    const auto self = of(ctx, true, "builds.logs.done");
    if (!self) return;
    self->end(error == nullptr
                  ? Result<void>()
                  : Result<void>(copy_error(self->core_->plugin, error, "builds.logs")));
  }

  void take(const std::string& piece) {
    on_data_(Bytes(reinterpret_cast<const std::byte*>(piece.data()), piece.size()));
    credit_.fetch_add(static_cast<std::int64_t>(piece.size()));
    if (stream_ != nullptr)
      call_value(core_->plugin, "stream.grant", stream_->vtbl->grant, stream_,
                 std::uint64_t{piece.size()});
  }

  const std::shared_ptr<ProviderCore> core_;
  const std::function<void(Bytes)> on_data_;
  Handler<void> done_;
  sf_stream* stream_ = nullptr;  // the lane's
  std::atomic<std::int64_t> credit_{kLogWindow};
};

class AbiBuilds final : public BuildsBackend {
 public:
  explicit AbiBuilds(std::shared_ptr<ProviderCore> core) : core_(std::move(core)) {}

  std::shared_ptr<Pending> resolve(BuildRequest request, Handler<ResolvedTemplate> done) override {
    return start_call<ResolvedTemplate>(
        core_, "template.resolve", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          const auto* table =
              static_cast<const sf_template_ext*>(provider_extension(*core_, SF_EXT_TEMPLATE));
          if (table == nullptr || !SF_HAS_FN(table, resolve)) return no_feature("template");
          const RequestView view(core_->plugin, request);
          const sf_template_request raw{sizeof(raw), view.get()->context, view.get()->settings};
          const sf_template_request* given = &raw;
          return call_status(core_->plugin, "template.resolve", table->resolve, core_->raw, given,
                             sf_template_completion{ctx, &done_template}, op);
        });
  }

  std::shared_ptr<Pending> start(BuildRequest request, Handler<Build> done) override {
    return ask("builds.start", "builds", &sf_builds_ext::start, request, one(std::move(done)));
  }
  std::shared_ptr<Pending> get(BuildRequest request, Handler<Build> done) override {
    return ask("builds.get", "builds", &sf_builds_ext::get, request, one(std::move(done)));
  }
  std::shared_ptr<Pending> list(BuildRequest request, Handler<std::vector<Build>> done) override {
    return ask("builds.list", "builds.history", &sf_builds_ext::list, request, std::move(done));
  }

  std::shared_ptr<Pending> logs(BuildRequest request, std::uint64_t cursor,
                                std::function<void(Bytes)> on_data, Handler<void> done) override {
    auto call = std::make_shared<LogCall>(core_, std::move(on_data), std::move(done));
    if (auto good = need_lane(core_->lane, "builds.logs"); !good) {
      call->end(std::move(good));
      return call;
    }
    call->run([&](const sf_stream_events* events, sf_stream** stream) -> Result<void> {
      const auto* table = builds();
      if (table == nullptr || !SF_HAS_FN(table, logs)) return no_feature("builds.logs");
      const RequestView view(core_->plugin, request);
      return call_status(core_->plugin, "builds.logs", table->logs, core_->raw, view.get(), cursor,
                         std::uint64_t{kLogWindow}, events, stream);
    });
    return call;
  }

  std::shared_ptr<Pending> cancel(BuildRequest request, Handler<void> done) override {
    return start_call<void>(
        core_, "builds.cancel", std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          const auto* table = builds();
          if (table == nullptr || !SF_HAS_FN(table, cancel)) return no_feature("builds.cancel");
          const RequestView view(core_->plugin, request);
          return call_status(core_->plugin, "builds.cancel", table->cancel, core_->raw, view.get(),
                             sf_completion{ctx, &done_void}, op);
        });
  }

 private:
  using Function = sf_status (*sf_builds_ext::*)(sf_provider*, const sf_build_request*,
                                                 sf_build_completion, sf_op**,
                                                 const sf_error_sink*) SF_NOEXCEPT;

  const sf_builds_ext* builds() {
    return static_cast<const sf_builds_ext*>(provider_extension(*core_, SF_EXT_BUILDS));
  }

  static bool has(const sf_builds_ext* table, Function function) noexcept {
    const auto* at = reinterpret_cast<const char*>(&(table->*function));
    const auto end = at - reinterpret_cast<const char*>(table) + sizeof(table->*function);
    return table->struct_size >= end && table->*function != nullptr;
  }

  Handler<std::vector<Build>> one(Handler<Build> done) {
    return [core = core_, done = std::move(done)](Result<std::vector<Build>> all) mutable {
      std::move(done)(only(core->plugin, std::move(all)));
    };
  }

  std::shared_ptr<Pending> ask(const char* what, const char* feature, Function function,
                               const BuildRequest& request, Handler<std::vector<Build>> done) {
    return start_call<std::vector<Build>>(
        core_, what, std::move(done), [&](void* ctx, sf_op** op) -> Result<void> {
          if (auto good = check_env(request.ephemeral_env); !good) return good;
          const auto* table = builds();
          if (table == nullptr || !has(table, function)) return no_feature(feature);
          const RequestView view(core_->plugin, request);
          return call_status(core_->plugin, what, table->*function, core_->raw, view.get(),
                             sf_build_completion{ctx, &done_builds}, op);
        });
  }

  const std::shared_ptr<ProviderCore> core_;
};

}  // namespace

const void* provider_extension(ProviderCore& core, const char* id) {
  return call_value(core.plugin, "provider.extension", core.raw->vtbl->extension, core.raw,
                    sf_str{id, std::string_view(id).size()});
}

std::unique_ptr<BuildsBackend> make_builds(std::shared_ptr<ProviderCore> core) {
  return std::make_unique<AbiBuilds>(std::move(core));
}

}  // namespace sandforge::plugin

namespace sandforge {

std::string_view to_string(BuildStatus status) noexcept {
  switch (status) {
    case BuildStatus::pending:
      return "pending";
    case BuildStatus::building:
      return "building";
    case BuildStatus::ready:
      return "ready";
    case BuildStatus::failed:
      return "failed";
    case BuildStatus::unknown:
      break;
  }
  return "unknown";
}

BuildsBackend* builds_of(ProviderBackend& provider) noexcept {
  auto* offering = dynamic_cast<OffersBuilds*>(&provider);
  return offering == nullptr ? nullptr : offering->builds();
}

}  // namespace sandforge
