// Structs of callbacks on both ends of the wire: the caller's are kept and called by frames, the
// callee is given others that send these frames.
#pragma once

#include <atomic>
#include <bitset>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_text.hpp"
#include "runner/peer.hpp"

namespace sandforge::runner {

// Whether two members are the same one.
template <auto M>
struct MemberTag;
template <auto A, auto B>
constexpr bool is_same_member = std::is_same_v<MemberTag<A>, MemberTag<B>>;

// The last callback of a call is `done`; a list of files may take several.
template <auto M>
struct IsLast;
template <class C, class... P, void (*C::*M)(void*, P...) noexcept>
struct IsLast<M> {
  static constexpr bool may_be = [] {
    bool done = false;
    wire::Fields<C>::visit([&](std::string_view name, auto member) {
      if constexpr (std::is_same_v<decltype(member), decltype(M)>)
        done = done || (member == M && name == "done");
    });
    return done;
  }();
  static bool of(const std::tuple<P...>& args) noexcept {
    if constexpr (std::is_same_v<C, sf_file_list_completion>) return std::get<4>(args) == 0;
    return may_be;
  }
};

// "sandbox.start", of the function of a struct.
template <auto M>
struct NameOf;
template <class S, class F, F S::*M>
struct NameOf<M> {
  static const char* get() {
    static const std::string name = [] {
      std::string out(wire::Fields<S>::name);
      out = out.substr(3, out.rfind('_') - 3);
      wire::Fields<S>::visit([&](std::string_view member, auto pointer) {
        if constexpr (std::is_same_v<decltype(pointer), F S::*>) {
          if (pointer == M) out += "." + std::string(member);
        }
      });
      return out;
    }();
    return name.c_str();
  }
};

// ---- The caller's end

// An appendable struct may be shorter than ours: what is not there is null.
template <class C>
C copy_callbacks(const C& from) noexcept {
  C out{};
  if constexpr (requires { from.struct_size; }) {
    std::memcpy(static_cast<void*>(&out), &from, std::min(from.struct_size, sizeof(C)));
    out.struct_size = sizeof(C);
  } else {
    out = from;
  }
  return out;
}

// Calls the member of one struct; see Callbacks::invoke.
template <auto M>
struct Invoke;
template <class C, class... P, void (*C::*M)(void*, P...) noexcept>
struct Invoke<M> {
  static Callbacks::Outcome run(plugin::Plugin& plugin, const C& callbacks, wire::Reader& in,
                                std::uint64_t& delivered) {
    std::tuple<P...> args{};
    wire::read_call(in, args);
    if (!in.whole()) return Callbacks::Outcome::malformed;
    if constexpr (is_same_member<M, &sf_stream_events::on_data>) delivered += std::get<2>(args).len;
    if (callbacks.*M != nullptr)
      std::apply(
          [&](auto... a) {
            void (*const fn)(void*, P...) = callbacks.*M;
            plugin::call_value(plugin, "a callback", fn, callbacks.ctx, a...);
          },
          args);
    return IsLast<M>::of(args) ? Callbacks::Outcome::last : Callbacks::Outcome::more;
  }
};

using InvokeFn = Callbacks::Outcome (*)(plugin::Plugin&, const void* callbacks, wire::Reader&,
                                        std::uint64_t& delivered);
// The function of a callback by its number; null: there is none.
InvokeFn invoke_function(Method method) noexcept;
// Whether the struct of that callback is C.
template <class C>
constexpr bool is_of(Method method) noexcept {
  return method >> 8 == wire::struct_number<C>();
}

template <class... Cs>
class CallbacksOf final : public Callbacks {
 public:
  explicit CallbacksOf(const Cs&... callbacks) : all_(copy_callbacks(callbacks)...) {}

  Outcome invoke(plugin::Plugin& plugin, Method method, wire::Reader& in) override {
    const InvokeFn function = invoke_function(method);
    const void* mine = nullptr;
    std::apply(
        [&](auto&... each) {
          ((mine = is_of<std::decay_t<decltype(each)>>(method) ? &each : mine), ...);
        },
        all_);
    if (function == nullptr || mine == nullptr) return Outcome::malformed;
    const Outcome outcome = function(plugin, mine, in, delivered_);
    if (outcome == Outcome::last && input) {
      bool ignored = false;
      input->close(Error(Status::conflict, "the stream has ended"), ignored);
    }
    return outcome;
  }

  void fail(plugin::Plugin& plugin, const sf_error& error) override {
    std::apply([&](auto&... each) { (fail_one(plugin, each, error), ...); }, all_);
  }

  void writable(plugin::Plugin& plugin) override {
    if constexpr ((std::is_same_v<Cs, sf_stream_events> || ...)) {
      const auto& io = std::get<sf_stream_events>(all_);
      if (io.on_writable != nullptr)
        plugin::call_value(plugin, "on_writable", io.on_writable, io.ctx);
    }
  }

 private:
  template <class C>
  void fail_one(plugin::Plugin& plugin, const C& callbacks, const sf_error& error) {
    if constexpr (requires { callbacks.done; })
      fail_done(plugin, callbacks.ctx, callbacks.done, error);
  }
  template <class... P>
  void fail_done(plugin::Plugin& plugin, void* ctx,
                 void (*done)(void*, const sf_error*, P...) noexcept, const sf_error& error) {
    if (done == nullptr) return;
    const sf_stream_end end{sizeof(end), delivered_, 0};
    const sf_error* given = &error;
    plugin::call_value(plugin, "done", done, ctx, given, rest<P>(end)...);
  }
  template <class P>
  static P rest(const sf_stream_end& end) noexcept {
    if constexpr (std::is_same_v<P, const sf_stream_end*>) return &end;
    return P{};
  }

  std::tuple<Cs...> all_;
  std::uint64_t delivered_ = 0;
};

// The structs of callbacks among the arguments of a call.
template <class T>
auto pick_callbacks(const T& argument) {
  if constexpr (wire::is_callbacks<T>) {
    return std::tuple<T>(argument);
  } else if constexpr (wire::is_callbacks_pointer<T>) {
    using C = std::remove_const_t<std::remove_pointer_t<T>>;
    return std::tuple<C>(argument != nullptr ? copy_callbacks(*argument) : C{});
  } else {
    return std::tuple<>();
  }
}

template <class... P>
std::shared_ptr<Callbacks> keep_callbacks(const P&... arguments) {
  return std::apply(
      [](const auto&... each) -> std::shared_ptr<Callbacks> {
        return std::make_shared<CallbacksOf<std::decay_t<decltype(each)>...>>(each...);
      },
      std::tuple_cat(pick_callbacks(arguments)...));
}

// ---- The callee's end

// What stands behind the ctx of the callbacks that a callee is given: a token of its plugin.
class Remote {
 public:
  static constexpr char kKind = 0;
  Remote(std::shared_ptr<Peer> p, Id l, Id c) : peer(std::move(p)), lane(l), call(c) {}

  const std::shared_ptr<Peer> peer;
  const Id lane;
  const Id call;
  std::bitset<256> structs;  // of callbacks that belong to it, by number
  // The thread that is inside the start, where that is the plugin's.
  std::atomic<std::thread::id> starting{};
  std::function<void()> ended;     // after the last callback; may be empty
  std::function<void()> writable;  // instead of a frame: the input of a stream stays here
};

template <auto M>
struct SendEvent;
template <class C, class... P, void (*C::*M)(void*, P...) noexcept>
struct SendEvent<M> {
  static void call(void* ctx, P... p) noexcept {
    const std::tuple<P...> args(p...);
    const bool last = IsLast<M>::of(args);
    const char* const name = NameOf<M>::get();
    auto object = plugin::object_of(ctx, &Remote::kKind, false, name);
    if (!object) return;
    auto& remote = *std::static_pointer_cast<Remote>(object);
    auto& faults = remote.peer->plugin().faults;
    if (!remote.structs.test(wire::struct_number<C>()))
      return faults.report(plugin::Fault::wrong_ctx, name);
    if (remote.starting.load() == std::this_thread::get_id())
      faults.report(plugin::Fault::inside_start, name);
    if (last && !plugin::object_of(ctx, &Remote::kKind, true, name)) return;
    try {
      send(remote, args);
    } catch (...) {
      remote.peer->connection().close();  // no memory: the other side must not wait for ever
    }
    if (last && remote.ended) remote.ended();
  }

 private:
  static void send(Remote& remote, const std::tuple<P...>& args) {
    if constexpr (is_same_member<M, &sf_stream_events::on_data>) {
      return send_data(remote, std::get<0>(args), std::get<1>(args), std::get<2>(args));
    } else if constexpr (is_same_member<M, &sf_stream_events::on_writable>) {
      if (remote.writable) return remote.writable();
    }
    wire::Writer out(remote.peer->handles());
    wire::write_call(out, args);
    if (out.out.size() > wire::kMaxPayload) {
      remote.peer->plugin().faults.report(plugin::Fault::bad_value,
                                          "more than 8 MiB in one callback");
      // An event is lost; whoever waits for the end must not wait for ever.
      if constexpr (!IsLast<M>::may_be) return;
      if constexpr (IsLast<M>::may_be) {
        out.out.clear();
        std::apply([&](auto... a) { write_failure(out, remote.peer->plugin(), a...); }, args);
      }
    }
    remote.peer->send(wire::Kind::event, wire::method_of(M), remote.lane, remote.call, 0, out.out);
  }
  // The same end as an error that fits into a frame.
  template <class... Q>
  static void write_failure(wire::Writer& out, plugin::Plugin& plugin, const sf_error* error,
                            Q...) {
    Error failure = error != nullptr
                        ? plugin::copy_error(plugin, error, "the call")
                        : plugin::crashed(plugin, "its answer is larger than 8 MiB", "bad_value");
    const plugin::ErrorView view(failure);
    wire::write_call(out, std::tuple<const sf_error*, Q...>(view.get(), Q{}...));
  }
  // SF_DATA_END belongs to the last piece.
  static void send_data(Remote& remote, std::uint32_t channel, std::uint32_t flags, sf_bytes data) {
    do {
      const sf_bytes piece{data.ptr, std::min(data.len, wire::kMaxData)};
      const bool last = piece.len == data.len;
      wire::Writer out;
      out.out.reserve(piece.len + 32);
      out.value(channel);
      out.value(last ? flags : flags & ~SF_DATA_END);
      out.value(piece);
      remote.peer->send(wire::Kind::event, wire::method_of(M), remote.lane, remote.call, 0,
                        out.out);
      if (last) return;
      data = {data.ptr + piece.len, data.len - piece.len};
    } while (true);
  }
};

// A struct of callbacks that send frames. Filled from the field table, in callbacks.cpp.
template <class C>
C sending_callbacks(void* ctx) noexcept;

// Sends the `done` of a call that failed at its start.
template <class C>
void send_failure(const C& callbacks, const sf_error& error) {
  if constexpr (requires { callbacks.done; }) {
    [&]<class... P>(void (*done)(void*, const sf_error*, P...) noexcept) {
      done(callbacks.ctx, &error, P{}...);
    }(callbacks.done);
  }
}

}  // namespace sandforge::runner
