// The calling end: functions that have the types of the boundary and send frames. A call does not
// wait: an error that its start would have answered comes as its `done`.
#pragma once

#include <memory>
#include <tuple>
#include <utility>

#include "runner/callbacks.hpp"

namespace sandforge::runner {

// Where a call goes.
struct Route {
  std::shared_ptr<Peer> peer;
  Id lane = 0;
  Id target = 0;
};

// Objects of the other side, as this side holds them.
struct OpProxy : sf_op {
  OpProxy(std::shared_ptr<Peer> peer, Id lane, Id call);
  Route route;
};
struct StreamProxy : sf_stream {
  StreamProxy(Route r, std::shared_ptr<InputWindow> i, bool owned);
  Route route;
  std::shared_ptr<InputWindow> input;
};
struct ProcessProxy : sf_process {
  ProcessProxy(const Route& r, std::shared_ptr<InputWindow> input);
  Route route;
  StreamProxy stream;
};

// Each kind of object says where its calls go, or why nowhere. May restart a runner.
Result<Route> route_of(sf_provider* self, Method method);
Result<Route> route_of(sf_sandbox* self, Method method);
Result<Route> route_of(sf_process* self, Method method);
Result<Route> route_of(sf_context* self, Method method);
Result<Route> route_of(sf_host* self, Method method);

// ---- What a call makes

inline void make_object(sf_op** out, const Route& route, Callbacks&) {
  if (out != nullptr) *out = new OpProxy(route.peer, route.lane, route.target);
}
inline void make_object(sf_process** out, const Route& route, Callbacks& callbacks) {
  *out = new ProcessProxy(route, callbacks.input);
}
inline void make_object(sf_stream** out, const Route& route, Callbacks& callbacks) {
  *out = new StreamProxy(route, callbacks.input, true);
}
template <class T>
void make_object(const T&, const Route&, Callbacks&) {}

template <class T>
constexpr bool makes_stream = std::is_same_v<T, sf_process**> || std::is_same_v<T, sf_stream**>;

// Where the runner calls the completions that its plugin gave: on the lane of the call. Not null.
void set_lane(Callbacks& callbacks, sf_lane* lane);
template <class T>
void set_lane(Callbacks&, const T&) {}

// What a call needs and is null: a place for the result, a lane, or an end. Without a lane, a
// plugin's own code would run on a thread that reads.
template <class T>
constexpr bool is_missing(const T& argument) {
  if constexpr (makes_stream<T> || std::is_same_v<T, sf_lane*>) return argument == nullptr;
  if constexpr (wire::is_callbacks<T>) {
    if constexpr (requires { argument.done; }) return argument.done == nullptr;
  }
  return false;
}

template <auto M>
struct Call;

// An asynchronous start: the last parameter is the error sink.
template <class S, class Self, class... P, sf_status (*S::*M)(Self*, P...) noexcept>
struct Call<M> {
  static sf_status call(Self* self, P... p) noexcept {
    const sf_error_sink* err = std::get<sizeof...(P) - 1>(std::tie(p...));
    try {
      const auto sent = send(self, p...);
      return sent ? SF_OK : plugin::refuse(err, sent.error());
    } catch (...) {
      return plugin::refuse(err, Error(Status::internal, plugin::describe_exception()));
    }
  }

 private:
  static Result<void> send(Self* self, P... p) {
    constexpr Method method = wire::method_of(M);
    if ((is_missing(p) || ...))
      return Error(Status::invalid, std::string(NameOf<M>::get()) +
                                        " needs a lane, a completion and a place for its result");
    auto routed = route_of(self, method);
    if (!routed) return std::move(routed).error();
    Peer& peer = *routed->peer;
    wire::Writer out(peer.handles());
    wire::write_call(out, std::tuple<P...>(p...));
    if (auto good = check_request(out.out.size()); !good) return good;
    const Id id = peer.next();
    auto callbacks = keep_callbacks(p...);
    if constexpr ((makes_stream<P> || ...)) callbacks->input = std::make_shared<InputWindow>();
    (set_lane(*callbacks, p), ...);
    if (!peer.expect(id, callbacks)) return peer.loss();
    (make_object(p, Route{routed->peer, routed->lane, id}, *callbacks), ...);
    peer.send(wire::Kind::call, method, routed->lane, routed->target, id, out.out);
    return {};
  }
};

// Nothing is answered: a record of the log, a release.
template <class S, class Self, class... P, void (*S::*M)(Self*, P...) noexcept>
struct Call<M> {
  static void call(Self* self, P... p) noexcept {
    try {
      constexpr Method method = wire::method_of(M);
      const auto routed = route_of(self, method);
      if (!routed) return;
      wire::Writer out(routed->peer->handles());
      wire::write_call(out, std::tuple<P...>(p...));
      routed->peer->send(wire::Kind::call, method, routed->lane, routed->target, 0, out.out);
    } catch (...) {
      // Without memory there is nobody to tell.
    }
  }
};

}  // namespace sandforge::runner
