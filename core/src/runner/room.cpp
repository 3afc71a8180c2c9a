#include "runner/room.hpp"

#include <utility>

#include "runner/context_proxy.hpp"
#include "runner/extensions.hpp"
#include "runner/serving.hpp"

namespace sandforge::runner {
namespace {

constexpr Method kOpen = wire::method_of(&sf_plugin::open);
constexpr Method kCreate = wire::method_of(&sf_provider_vtbl::create);
constexpr Method kOpCancel = wire::method_of(&sf_op_vtbl::cancel);
constexpr Method kProcessRelease = wire::method_of(&sf_process_vtbl::release);
constexpr std::uint8_t kStream = wire::struct_number<sf_stream_vtbl>();

template <class S>
struct RunnerServes
    : std::bool_constant<is_extension<S>() || std::is_same_v<S, sf_provider_vtbl> ||
                         std::is_same_v<S, sf_sandbox_vtbl> || std::is_same_v<S, sf_process_vtbl>> {
};

const ServeTable& runner_table() {
  static const ServeTable functions = [] {
    ServeTable out{};
#define SF_STRUCT(s, kind, size)
#define SF_MEMBER(s, m, offset, size) ServeEntry<RunnerServes, &s::m>::add(out);
#define SF_STRUCT_END(s, last)
#include "sandforge/wire/runner/layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
    return out;
  }();
  return functions;
}

}  // namespace

Room::Room(std::shared_ptr<RunnerPeer> runner, Id id, std::shared_ptr<Room> parent)
    : runner_(std::move(runner)),
      peer_(runner_),
      id_(id),
      parent_(std::move(parent)),
      plugin_(runner_->plugin()),
      lane_(runner_->runtime().make_lane()),
      lane_ref_(plugin_, lane_) {}

Room::~Room() {
  for (auto& [id, made] : made_)
    release(made);
  if (sandbox_ != nullptr)
    plugin::call_value(plugin_, "sandbox.release", sandbox_->vtbl->release, sandbox_);
  if (provider_ != nullptr)
    plugin::call_value(plugin_, "provider.release", provider_->vtbl->release, provider_);
  // Released on its own lane, after its sandboxes.
  if (parent_) parent_->lane_.post([parent = std::move(parent_)]() mutable { parent.reset(); });
}

bool Room::call(const wire::Header& header, std::string_view payload) {
  if (header.method == kOpen) return open(header, payload);
  if (header.method == kCreate) return create(header, payload);
  if (header.method == kOpCancel) {
    const auto found = made_.find(header.target);
    if (found != made_.end() && found->second.op != nullptr)
      plugin::call_value(plugin_, "op.cancel", found->second.op->vtbl->cancel, found->second.op);
    return true;
  }
  if (header.method == kProcessRelease) {
    release(header.target);
    return true;
  }
  if (header.method >> 8 == kStream) return stream_call(header, payload);
  const ServeFn serve = serve_function(runner_table(), header.method);
  if (serve == nullptr) return false;
  wire::Arena arena;
  RoomHandles handles(peer_, lane());
  wire::Reader in(payload, arena, &handles);
  return serve(*this, header, in);
}

// ---- Open and create: the host waits

bool Room::open(const wire::Header& header, std::string_view payload) {
  wire::Arena arena;
  RoomHandles handles(peer_, lane());
  wire::Reader in(payload, arena, &handles);
  const auto request = in.read<sf_open_request>();
  if (!in.whole() || provider_ != nullptr) return false;
  sf_open_request given = request;
  given.lane = lane();
  sf_provider* made = nullptr;
  const sf_open_request* pointer = &given;
  auto opened = plugin::call_status(plugin_, "plugin.open", plugin_.api->open, pointer, &made);
  if (opened) {
    if (const char* missing = plugin::missing_member(made)) {
      plugin_.faults.report(plugin::Fault::missing_value, std::string("provider: ") + missing);
      opened = plugin::crashed(
          plugin_, "provider " + std::string(plugin::view(request.provider)) + " lacks " + missing,
          "missing_member");
    }
  }
  if (!opened) {
    runner_->drop(id_);  // the host has nothing to let go of
    answer(header.id, opened.error());
    return true;
  }
  provider_ = made;
  answer_extensions(header.id);
  return true;
}

bool Room::create(const wire::Header& header, std::string_view payload) {
  if (provider_ == nullptr) return false;
  wire::Arena arena;
  wire::Reader head(payload, arena);
  const auto id = head.read<std::uint64_t>();
  const auto sandbox_id = head.read<sf_str>();
  if (!head.ok()) return false;
  auto room = std::make_shared<Room>(runner_, id, shared_from_this());
  RoomHandles handles(peer_, room->lane());
  handles.set_sandbox_id(std::string(plugin::view(sandbox_id)));
  wire::Reader in(head.rest(), arena, &handles);
  auto request = in.read<sf_create_request>();
  if (!in.whole()) return false;
  request.lane = room->lane();
  sf_sandbox* made = nullptr;
  const sf_create_request* pointer = &request;
  auto created = plugin::call_status(plugin_, "provider.create", provider_->vtbl->create, provider_,
                                     pointer, &made);
  if (created) {
    if (const char* missing = plugin::missing_member(made)) {
      plugin_.faults.report(plugin::Fault::missing_value, std::string("sandbox: ") + missing);
      created =
          plugin::crashed(plugin_, std::string("the sandbox lacks ") + missing, "missing_member");
    }
  }
  if (!created) {
    answer(header.id, created.error());
    return true;
  }
  room->sandbox_ = made;
  runner_->add(room);
  room->answer_extensions(header.id);
  return true;
}

void Room::answer(Id call, const Error& error) {
  peer_->send(wire::Kind::reply, 0, id_, call, 0, error_reply(error));
}

void Room::answer_extensions(Id call) {
  wire::Writer out;
  out.value(std::uint8_t{0});
  const auto all = [&](const auto&... each) {
    (out.value(functions_of(static_cast<const typename std::decay_t<decltype(each)>::Table*>(
         table(wire::struct_number<typename std::decay_t<decltype(each)>::Table>())))),
     ...);
  };
  if (provider_ != nullptr) {
    std::apply(all, kProviderExtensions);
  } else {
    std::apply(all, kSandboxExtensions);
  }
  peer_->send(wire::Kind::reply, 0, id_, call, 0, out.out);
}

// ---- Objects

bool Room::find(sf_provider*& self, const sf_provider_vtbl*& table, Id) {
  self = provider_;
  if (self != nullptr) table = self->vtbl;
  return self != nullptr;
}

bool Room::find(sf_sandbox*& self, const sf_sandbox_vtbl*& table, Id) {
  self = sandbox_;
  if (self != nullptr) table = self->vtbl;
  return self != nullptr;
}

bool Room::find(sf_process*& self, const sf_process_vtbl*& table, Id target) {
  self = static_cast<sf_process*>(object(static_cast<const sf_process*>(nullptr), target));
  if (self != nullptr) table = self->vtbl;
  return self != nullptr;
}

void* Room::object(const sf_process*, Id target) {
  const auto found = made_.find(target);
  return found == made_.end() ? nullptr : found->second.process;
}

const void* Room::table(std::uint8_t number) {
  if (const auto known = tables_.find(number); known != tables_.end()) return known->second;
  const void* found = nullptr;
  const auto ask = [&](const auto& extension) {
    using E = typename std::decay_t<decltype(extension)>::Table;
    if (wire::struct_number<E>() != number) return;
    if (provider_ != nullptr)
      found = plugin::call_value(plugin_, "provider.extension", provider_->vtbl->extension,
                                 provider_, id_text(extension.id));
    if (sandbox_ != nullptr)
      found = plugin::call_value(plugin_, "sandbox.extension", sandbox_->vtbl->extension, sandbox_,
                                 id_text(extension.id));
  };
  const auto ask_all = [&](const auto&... each) { (ask(each), ...); };
  if (provider_ != nullptr) std::apply(ask_all, kProviderExtensions);
  if (sandbox_ != nullptr) std::apply(ask_all, kSandboxExtensions);
  tables_[number] = found;
  return found;
}

void Room::keep(Id call, sf_op* op, const char* what) {
  if (plugin::is_usable(plugin_, op, what)) made_[call].op = op;
}

void Room::keep(Id call, sf_process* process, sf_stream* stream) {
  Made& made = made_[call];
  made.process = process;
  made.stream = stream;
}

void Room::keep(Id call, sf_stream* stream) {
  made_[call].stream = stream;
}

void Room::prepare(Remote& remote) {
  remote.starting.store(std::this_thread::get_id());
  const auto later = [weak = weak_from_this(), lane = lane_, call = remote.call](auto work) {
    return [weak, lane, call, work] {
      lane.post([weak, call, work] {
        if (const auto room = weak.lock()) work(*room, call);
      });
    };
  };
  remote.ended = later([](Room& room, Id call) { room.ended(call); });
  remote.writable = later([](Room& room, Id call) {
    const auto found = room.made_.find(call);
    if (found != room.made_.end()) room.pump(call, found->second);
  });
}

// The handle of an operation is of no use after its end; those of streams the host releases.
void Room::ended(Id call) {
  const auto found = made_.find(call);
  if (found == made_.end() || found->second.op == nullptr) return;
  release(found->second);
  made_.erase(found);
}

void Room::release(Made& made) noexcept {
  if (made.op != nullptr)
    plugin::call_value(plugin_, "op.release", made.op->vtbl->release, made.op);
  if (made.process != nullptr) {
    plugin::call_value(plugin_, "process.release", made.process->vtbl->release, made.process);
  } else if (made.stream != nullptr) {
    plugin::call_value(plugin_, "stream.release", made.stream->vtbl->release, made.stream);
  }
}

void Room::release(Id id) {
  const auto found = made_.find(id);
  if (found == made_.end()) return;
  release(found->second);
  made_.erase(found);
}

// ---- Streams

bool Room::stream_call(const wire::Header& header, std::string_view payload) {
  const auto found = made_.find(header.target);
  if (found == made_.end() || found->second.stream == nullptr) return true;  // its start failed
  Made& made = found->second;
  const sf_stream_vtbl& table = *made.stream->vtbl;
  wire::Arena arena;
  wire::Reader in(payload, arena);
  if (header.method == wire::method_of(&sf_stream_vtbl::grant)) {
    const auto bytes = in.read<std::uint64_t>();
    if (in.whole()) plugin::call_value(plugin_, "stream.grant", table.grant, made.stream, bytes);
    return in.whole();
  }
  if (header.method == wire::method_of(&sf_stream_vtbl::cancel)) {
    plugin::call_value(plugin_, "stream.cancel", table.cancel, made.stream);
  } else if (header.method == wire::method_of(&sf_stream_vtbl::release)) {
    release(header.target);
  } else if (header.method == wire::method_of(&sf_stream_vtbl::shutdown_write)) {
    made.shut = true;
    pump(header.target, made);
  } else if (header.method == wire::method_of(&sf_stream_vtbl::write)) {
    const auto flags = in.read<std::uint32_t>();
    const auto data = in.read<sf_bytes>();
    if (!in.whole()) return false;
    if (made.closed) return true;
    made.input.emplace_back(std::string(plugin::view(data)), flags);
    if (made.input.size() == 1) pump(header.target, made);
  } else {
    return false;
  }
  return true;
}

// Hands over input until the stream takes no more; on_writable goes on with it.
void Room::pump(Id id, Made& made) {
  std::uint64_t consumed = 0;
  while (!made.input.empty()) {
    auto& [bytes, flags] = made.input.front();
    const sf_bytes data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
    std::size_t accepted = 0;
    auto written = plugin::call_status(plugin_, "stream.write", made.stream->vtbl->write,
                                       made.stream, data, flags, &accepted);
    if (written && accepted > bytes.size()) {
      plugin_.faults.report(plugin::Fault::bad_value, "write accepted more than it was given");
      written = plugin::crashed(plugin_, "write accepted more than it was given");
    }
    if (!written) return input_over(id, made, written.error());
    consumed += accepted;
    if (accepted < bytes.size()) {
      bytes.erase(0, accepted);
      break;
    }
    made.input.pop_front();
  }
  if (consumed > 0) {
    wire::Writer out;
    out.value(consumed);
    peer_->send(wire::Kind::event, kInputCredit, id_, id, 0, out.out);
  }
  if (!made.input.empty() || !made.shut || made.closed) return;
  made.closed = true;
  const auto shut = plugin::call_status(plugin_, "stream.shutdown_write",
                                        made.stream->vtbl->shutdown_write, made.stream);
  if (!shut) input_over(id, made, shut.error());
}

void Room::input_over(Id id, Made& made, const Error& error) {
  made.input.clear();
  made.closed = true;
  wire::Writer out;
  out.value(*plugin::ErrorView(error).get());
  peer_->send(wire::Kind::event, kInputClosed, id_, id, 0, out.out);
}

}  // namespace sandforge::runner
