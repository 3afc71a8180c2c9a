// Providers and sandboxes of a plugin in another process, as the host holds them. They outlive that
// process: in a later one they are opened and created again, by the same requests.
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "plugin/abi_text.hpp"
#include "runner/caller.hpp"
#include "runner/extensions.hpp"
#include "runner/remote_plugin.hpp"

namespace sandforge::runner {
namespace {

// ---- Extensions: tables whose functions send frames, as far as the plugin has them

template <class E>
struct Table {
  E functions{};
  bool there = false;
};

template <class List>
struct TablesOf;
template <class... E>
struct TablesOf<const std::tuple<Extension<E>...>> {
  using Tables = std::tuple<Table<E>...>;
};

template <class E>
struct SendingTable;
#define SF_STRUCT(s, kind, size) \
  template <>                    \
  struct SendingTable<s> {       \
    template <class E>           \
    static void fill([[maybe_unused]] E& table) noexcept {
#define SF_MEMBER(s, m, offset, size) set_function<E, &s::m>(table);
#define SF_STRUCT_END(s, last) \
  }                            \
  }                            \
  ;
template <class E, auto M>
void set_function(E& table) noexcept {
  if constexpr (wire::is_function_pointer<std::decay_t<decltype(table.*M)>>)
    table.*M = &Call<M>::call;
}
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END

template <class List>
class ExtensionTables {
 public:
  explicit ExtensionTables(const List& list) : list_(list) {}

  // From the reply that opened or created the object. False: it is damaged.
  bool read(std::string_view reply) {
    wire::Arena arena;
    wire::Reader in(reply, arena);
    std::apply([&](auto&... table) { (read_one(table, in.read<std::uint32_t>()), ...); }, tables_);
    return in.whole();
  }

  const void* find(std::string_view id) const {
    const void* found = nullptr;
    const auto look = [&]<class E>(const Extension<E>& extension) {
      const auto& table = std::get<Table<E>>(tables_);
      if (extension.id == id && table.there) found = &table.functions;
    };
    std::apply([&](const auto&... each) { (look(each), ...); }, list_);
    return found;
  }

 private:
  template <class E>
  static void read_one(Table<E>& table, std::uint32_t bits) {
    table.there = bits != 0;
    table.functions.struct_size = sizeof(E);
    SendingTable<E>::fill(table.functions);
    keep_functions(table.functions, bits);
  }

  const List& list_;
  typename TablesOf<const List>::Tables tables_;
};

using ProviderTables = ExtensionTables<std::decay_t<decltype(kProviderExtensions)>>;
using SandboxTables = ExtensionTables<std::decay_t<decltype(kSandboxExtensions)>>;

std::optional<std::string> keep(sf_str text) {
  if (text.ptr == nullptr) return std::nullopt;
  return std::string(text.ptr, text.len);
}

// Calls and waits. The lanes of others go on.
Result<std::string> ask(const RemotePlugin& plugin, HostPeer& peer, Method method,
                        const Route& route, std::string_view payload) {
  std::optional<Result<std::string>> out;
  plugin.waiting([&] { out = peer.ask(method, route.lane, route.target, peer.next(), payload); });
  return std::move(*out);
}

// ---- Provider

class ProviderProxy {
 public:
  ProviderProxy(RemotePlugin& plugin, const sf_open_request& request);
  ~ProviderProxy();

  RemotePlugin& plugin() const noexcept { return plugin_; }
  const ProviderTables& tables() const noexcept { return tables_; }
  // Opened in the process that lives now. From any of the lanes of its sandboxes, too.
  Result<Route> route();

 private:
  RemotePlugin& plugin_;
  const std::string name_;
  const std::string options_;
  std::mutex mutex_;
  std::shared_ptr<HostPeer> peer_;
  Id lane_ = 0;
  bool first_ = true;
  ProviderTables tables_{kProviderExtensions};
};

ProviderProxy::ProviderProxy(RemotePlugin& plugin, const sf_open_request& request)
    : plugin_(plugin),
      name_(plugin::view(request.provider)),
      options_(plugin::view(request.options)) {}

ProviderProxy::~ProviderProxy() {
  if (peer_)
    peer_->send(wire::Kind::call, wire::method_of(&sf_provider_vtbl::release), lane_, lane_, 0, {});
}

Result<Route> ProviderProxy::route() {
  auto live = plugin_.live();
  if (!live) return std::move(live).error();
  const auto lock = plugin_.lock(mutex_);
  if (peer_ == *live) return Route{peer_, lane_, lane_};
  sf_open_request request{};
  request.struct_size = sizeof request;
  request.provider = plugin::to_str(name_);
  request.options = plugin::to_str(options_);
  wire::Writer out((*live)->handles());
  out.value(request);
  const Id lane = (*live)->next();
  auto opened =
      ask(plugin_, **live, wire::method_of(&sf_plugin::open), {*live, lane, lane}, out.out);
  if (!opened) return std::move(opened).error();
  // Extensions never change: those of the first process hold.
  if (std::exchange(first_, false) && !tables_.read(*opened))
    return plugin::crashed(plugin_.plugin(), "its answer to open is damaged", "bad_value");
  peer_ = *live;
  lane_ = lane;
  return Route{peer_, lane_, lane_};
}

// ---- Sandbox

class SandboxProxy final : public sf_sandbox {
 public:
  SandboxProxy(std::shared_ptr<ProviderProxy> provider, const sf_create_request& request);
  ~SandboxProxy();

  static SandboxProxy& of(sf_sandbox* self) noexcept { return *static_cast<SandboxProxy*>(self); }
  const SandboxTables& tables() const noexcept { return tables_; }
  // Created in the process that lives now. On the sandbox's lane.
  Result<Route> route();
  Result<Route> route_for(Method method);
  // What start told, from any thread.
  void identified(std::string id);
  void started() noexcept { started_in_.store(epoch_.load()); }

 private:
  Result<std::string> create(HostPeer& peer, const Route& provider, Id lane);

  const std::shared_ptr<ProviderProxy> provider_;
  sf_context* const context_;
  const std::string settings_;
  const std::optional<std::string> working_directory_, checkpoint_, seed_;
  const std::uint64_t idle_timeout_ms_;
  std::shared_ptr<Peer> peer_;
  Id lane_ = 0;
  std::atomic<std::uint64_t> epoch_{0};  // counts the processes that it was created in
  std::atomic<std::uint64_t> started_in_{0};
  std::mutex mutex_;
  std::string sandbox_id_;
  SandboxTables tables_{kSandboxExtensions};
};

Result<Route> SandboxProxy::route() {
  auto provider = provider_->route();
  if (!provider) return std::move(provider).error();
  if (peer_ == provider->peer) return Route{peer_, lane_, lane_};
  auto& peer = static_cast<HostPeer&>(*provider->peer);
  const Id lane = peer.next();
  auto created = create(peer, *provider, lane);
  if (!created) return std::move(created).error();
  if (epoch_.load() == 0 && !tables_.read(*created))
    return plugin::crashed(peer.plugin(), "its answer to create is damaged", "bad_value");
  peer_ = provider->peer;
  lane_ = lane;
  epoch_.fetch_add(1);
  return Route{peer_, lane_, lane_};
}

Result<std::string> SandboxProxy::create(HostPeer& peer, const Route& provider, Id lane) {
  sf_create_request request{};
  request.struct_size = sizeof request;
  request.context = context_;
  request.settings = plugin::to_str(settings_);
  request.working_directory = plugin::to_str(working_directory_);
  request.checkpoint_name = plugin::to_str(checkpoint_);
  request.seed_checkpoint_name = plugin::to_str(seed_);
  request.idle_timeout_ms = idle_timeout_ms_;
  wire::Writer out(peer.handles());
  out.value(lane);
  {
    const std::lock_guard lock(mutex_);
    out.value(plugin::to_str(sandbox_id_));
  }
  out.value(request);
  return ask(provider_->plugin(), peer, wire::method_of(&sf_provider_vtbl::create), provider,
             out.out);
}

// A command, a file or a capture needs a machine that this process has started or connected: the
// host starts it again, and the provider finds the machine that runs.
Result<Route> SandboxProxy::route_for(Method method) {
  auto out = route();
  const bool needs_machine = method == wire::method_of(&sf_sandbox_vtbl::spawn) ||
                             method >> 8 == wire::struct_number<sf_files_ext>() ||
                             method == wire::method_of(&sf_snapshot_ext::create);
  if (out && needs_machine && started_in_.load() != 0 && started_in_.load() != epoch_.load())
    return Error(
        Status::conflict,
        "the process of the plugin was started again and has not connected the machine yet",
        "plugin.restarted");
  return out;
}

void SandboxProxy::identified(std::string id) {
  const std::lock_guard lock(mutex_);
  sandbox_id_ = std::move(id);
}

// Listens to the events of a start on their way to the host.
struct StartWatch {
  SandboxProxy& sandbox;  // lives at least until done: the host keeps it for the operation
  const sf_start_events events;

  static StartWatch& of(void* ctx) noexcept { return *static_cast<StartWatch*>(ctx); }
  static void on_identity(void* ctx, sf_str id) noexcept {
    of(ctx).sandbox.identified(std::string(plugin::view(id)));
    of(ctx).events.on_identity(of(ctx).events.ctx, id);
  }
  static void done(void* ctx, const sf_error* error, const sf_start_result* result) noexcept {
    const std::unique_ptr<StartWatch> self(&of(ctx));
    if (error == nullptr) {
      self->sandbox.started();
      if (result != nullptr && result->sandbox_id.ptr != nullptr)
        self->sandbox.identified(std::string(plugin::view(result->sandbox_id)));
    }
    self->events.done(self->events.ctx, error, result);
  }
};

sf_status start(sf_sandbox* self, const sf_start_request* request, const sf_start_events* events,
                sf_op** op, const sf_error_sink* err) noexcept {
  auto* watch = new (std::nothrow) StartWatch{SandboxProxy::of(self), *events};
  if (watch == nullptr) return plugin::refuse(err, Error(Status::internal, "no memory"));
  const sf_start_events ours{sizeof ours, watch, &StartWatch::on_identity, &StartWatch::done};
  const sf_status status = Call<&sf_sandbox_vtbl::start>::call(self, request, &ours, op, err);
  if (status != SF_OK) delete watch;
  return status;
}

const sf_sandbox_vtbl kSandbox = {
    sizeof(sf_sandbox_vtbl),
    &start,
    &Call<&sf_sandbox_vtbl::stop>::call,
    &Call<&sf_sandbox_vtbl::destroy>::call,
    &Call<&sf_sandbox_vtbl::info>::call,
    &Call<&sf_sandbox_vtbl::instructions>::call,
    &Call<&sf_sandbox_vtbl::spawn>::call,
    [](sf_sandbox* self, sf_str id) noexcept {
      return SandboxProxy::of(self).tables().find(plugin::view(id));
    },
    [](sf_sandbox* self) noexcept { delete &SandboxProxy::of(self); },
};

SandboxProxy::SandboxProxy(std::shared_ptr<ProviderProxy> provider,
                           const sf_create_request& request)
    : sf_sandbox{&kSandbox},
      provider_(std::move(provider)),
      context_(request.context),
      settings_(plugin::view(request.settings)),
      working_directory_(keep(request.working_directory)),
      checkpoint_(keep(request.checkpoint_name)),
      seed_(keep(request.seed_checkpoint_name)),
      idle_timeout_ms_(request.idle_timeout_ms) {
  if (context_ != nullptr) context_->vtbl->retain(context_);
}

SandboxProxy::~SandboxProxy() {
  if (peer_)
    peer_->send(wire::Kind::call, wire::method_of(&sf_sandbox_vtbl::release), lane_, lane_, 0, {});
  if (context_ != nullptr) context_->vtbl->release(context_);
}

// ---- Tables of a provider

// Sandboxes keep their provider, whatever becomes of the host's handle.
struct ProviderHandle : sf_provider {
  std::shared_ptr<ProviderProxy> proxy;
  static ProviderHandle& of(sf_provider* self) noexcept {
    return *static_cast<ProviderHandle*>(self);
  }
};

sf_status create(sf_provider* self, const sf_create_request* request, sf_sandbox** sandbox,
                 const sf_error_sink* err) noexcept {
  try {
    auto proxy = std::make_unique<SandboxProxy>(ProviderHandle::of(self).proxy, *request);
    const auto created = proxy->route();
    if (!created) return plugin::refuse(err, created.error());
    *sandbox = proxy.release();
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

const sf_provider_vtbl kProvider = {
    sizeof(sf_provider_vtbl),
    &Call<&sf_provider_vtbl::describe>::call,
    &create,
    [](sf_provider* self, sf_str id) noexcept {
      return ProviderHandle::of(self).proxy->tables().find(plugin::view(id));
    },
    [](sf_provider* self) noexcept { delete &ProviderHandle::of(self); },
};

}  // namespace

Result<Route> route_of(sf_provider* self, Method) {
  return ProviderHandle::of(self).proxy->route();
}

Result<Route> route_of(sf_sandbox* self, Method method) {
  return SandboxProxy::of(self).route_for(method);
}

Result<sf_provider*> open_remote(RemotePlugin& plugin, const sf_open_request& request) {
  auto handle = std::make_unique<ProviderHandle>();
  handle->vtbl = &kProvider;
  handle->proxy = std::make_shared<ProviderProxy>(plugin, request);
  const auto opened = handle->proxy->route();
  if (!opened) return opened.error();
  return handle.release();
}

}  // namespace sandforge::runner
