#include "runner/caller.hpp"

#include "plugin/abi_lane.hpp"

namespace sandforge::runner {
namespace {

template <class Proxy>
void tell(const Proxy& proxy, Method method, std::string_view payload = {}) noexcept {
  const Route& route = proxy.route;
  route.peer->send(wire::Kind::call, method, route.lane, route.target, 0, payload);
}

OpProxy& of(sf_op* self) noexcept {
  return *static_cast<OpProxy*>(self);
}
StreamProxy& of(sf_stream* self) noexcept {
  return *static_cast<StreamProxy*>(self);
}
ProcessProxy& of(sf_process* self) noexcept {
  return *static_cast<ProcessProxy*>(self);
}

// The other side drops its handle at the end of the operation, whoever holds this one.
const sf_op_vtbl kOp = {
    sizeof(sf_op_vtbl),
    [](sf_op* self) noexcept { tell(of(self), wire::method_of(&sf_op_vtbl::cancel)); },
    [](sf_op* self) noexcept { delete &of(self); },
};

void grant(sf_stream* self, std::uint64_t bytes) noexcept {
  char raw[sizeof bytes];
  wire::store(raw, bytes);
  tell(of(self), wire::method_of(&sf_stream_vtbl::grant), std::string_view(raw, sizeof raw));
}

sf_status write(sf_stream* self, sf_bytes data, std::uint32_t flags, std::size_t* accepted,
                const sf_error_sink* err) noexcept {
  StreamProxy& stream = of(self);
  try {
    auto taken = stream.input->take(data.len);
    if (!taken) return plugin::refuse(err, taken.error());
    std::size_t done = 0;
    do {
      const sf_bytes piece{data.ptr + done, std::min(*taken - done, wire::kMaxData)};
      done += piece.len;
      if (piece.len == 0 && (data.len > 0 || (flags & SF_DATA_END) == 0)) break;
      wire::Writer out;
      out.value(done == data.len ? flags : flags & ~SF_DATA_END);
      out.value(piece);
      tell(stream, wire::method_of(&sf_stream_vtbl::write), out.out);
    } while (done < *taken);
    *accepted = *taken;
    return SF_OK;
  } catch (...) {
    return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

sf_status shutdown_write(sf_stream* self, const sf_error_sink*) noexcept {
  StreamProxy& stream = of(self);
  tell(stream, wire::method_of(&sf_stream_vtbl::shutdown_write));
  bool ignored = false;
  stream.input->close(Error(Status::conflict, "the input was closed"), ignored);
  return SF_OK;
}

void cancel(sf_stream* self) noexcept {
  tell(of(self), wire::method_of(&sf_stream_vtbl::cancel));
}

const sf_stream_vtbl kOwnedStream = {
    sizeof(sf_stream_vtbl), &grant, &write, &shutdown_write, &cancel, [](sf_stream* self) noexcept {
      tell(of(self), wire::method_of(&sf_stream_vtbl::release));
      delete &of(self);
    }};
// Of a process: it goes with it.
const sf_stream_vtbl kProcessStream = {sizeof(sf_stream_vtbl), &grant,  &write,
                                       &shutdown_write,        &cancel, [](sf_stream*) noexcept {}};

const sf_process_vtbl kProcess = {
    sizeof(sf_process_vtbl),
    [](sf_process* self) noexcept -> sf_stream* { return &of(self).stream; },
    &Call<&sf_process_vtbl::signal>::call,
    [](sf_process* self) noexcept {
      tell(of(self), wire::method_of(&sf_process_vtbl::release));
      delete &of(self);
    },
};

}  // namespace

OpProxy::OpProxy(std::shared_ptr<Peer> peer, Id lane, Id call)
    : sf_op{&kOp}, route{std::move(peer), lane, call} {}

StreamProxy::StreamProxy(Route r, std::shared_ptr<InputWindow> i, bool owned)
    : sf_stream{owned ? &kOwnedStream : &kProcessStream},
      route(std::move(r)),
      input(std::move(i)) {}

ProcessProxy::ProcessProxy(const Route& r, std::shared_ptr<InputWindow> input)
    : sf_process{&kProcess}, route(r), stream(r, std::move(input), false) {}

Result<Route> route_of(sf_process* self, Method) {
  const Route& route = of(self).route;
  if (route.peer->lost()) return route.peer->loss();
  return route;
}

void set_lane(Callbacks& callbacks, sf_lane* lane) {
  callbacks.lane = plugin::HostLane::lane_of(lane);
}

}  // namespace sandforge::runner
