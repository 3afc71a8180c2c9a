// The called end: frames become calls of real objects, and what these tell becomes frames.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/members.hpp"
#include "runner/callbacks.hpp"

namespace sandforge::runner {

// The objects that calls of the other side act on. Used by one thread at a time.
class Callee {
 public:
  virtual ~Callee() = default;
  virtual std::shared_ptr<Peer> peer() noexcept = 0;
  // The lane that stands for those of the other side.
  virtual sf_lane* lane() noexcept = 0;

  // The object and the table of functions of that struct; false: there is none.
  virtual bool find(sf_provider*& self, const sf_provider_vtbl*& table, Id target) = 0;
  virtual bool find(sf_sandbox*& self, const sf_sandbox_vtbl*& table, Id target) = 0;
  virtual bool find(sf_process*& self, const sf_process_vtbl*& table, Id target) = 0;
  virtual bool find(sf_context*& self, const sf_context_vtbl*& table, Id target) = 0;
  // Extensions and services: their table by the number of its struct.
  virtual void* object(const sf_provider*, Id target) = 0;
  virtual void* object(const sf_sandbox*, Id target) = 0;
  virtual void* object(const sf_process*, Id target) = 0;
  virtual void* object(const sf_host*, Id target) = 0;
  virtual const void* table(std::uint8_t struct_number) = 0;
  template <class Self, class S>
  bool find(Self*& self, const S*& found, Id target) {
    self = static_cast<Self*>(object(static_cast<const Self*>(nullptr), target));
    found = static_cast<const S*>(table(wire::struct_number<S>()));
    return self != nullptr && found != nullptr;
  }

  // Whether one more call may begin.
  virtual Result<void> admit() { return {}; }
  // What a call made, by the call's number, until its end or its release.
  virtual void keep(Id call, sf_op* op, const char* what) = 0;
  virtual void keep(Id call, sf_process* process, sf_stream* stream) = 0;
  virtual void keep(Id call, sf_stream* stream) = 0;
  // Prepares the callbacks of a call.
  virtual void prepare(Remote& remote) = 0;
};

// One parameter of a call as the callee gets it.
template <class T>
struct Slot {
  Slot(T v, void*) : value(v) {}
  T get() noexcept { return value; }
  T value;
};
template <class T>
requires wire::is_callbacks<T>
struct Slot<T> {
  Slot(T, void* ctx) : value(sending_callbacks<T>(ctx)) {}
  T get() noexcept { return value; }
  void fail(const sf_error& error) { send_failure(value, error); }
  T value;
};
template <class T>
requires wire::is_callbacks_pointer<const T*>
struct Slot<const T*> {
  Slot(const T*, void* ctx) : value(sending_callbacks<T>(ctx)) {}
  const T* get() noexcept { return &value; }
  void fail(const sf_error& error) { send_failure(value, error); }
  T value;
};
// An object that the call makes.
template <class T>
requires wire::is_handle<T*>
struct Slot<T**> {
  Slot(T**, void*) {}
  T** get() noexcept { return &value; }
  // What it lacks, in words, and is then let go of; null: nothing.
  const char* missing([[maybe_unused]] plugin::Plugin& plugin) {
    const char* lacks = nullptr;
    if constexpr (std::is_same_v<T, sf_process>) {
      lacks = plugin::missing_member(value);
      if (lacks != nullptr) return lacks;
      stream = plugin::call_value(plugin, "process.stream", value->vtbl->stream, value);
      lacks = plugin::missing_member(stream);
      if (lacks != nullptr)
        plugin::call_value(plugin, "process.release", value->vtbl->release, value);
    } else if constexpr (!std::is_same_v<T, sf_op>) {
      lacks = plugin::missing_member(value);
    }
    return lacks;
  }
  void keep(Callee& callee, Id call, const char* what) {
    if constexpr (std::is_same_v<T, sf_process>) {
      callee.keep(call, value, stream);
    } else if constexpr (std::is_same_v<T, sf_op>) {
      callee.keep(call, value, what);
    } else {
      callee.keep(call, value);
    }
  }
  T* value = nullptr;
  sf_stream* stream = nullptr;  // of a process
};

using ServeFn = bool (*)(Callee&, const wire::Header&, wire::Reader&);

template <auto M>
struct Serve;

template <class S, class Self, class... P, sf_status (*S::*M)(Self*, P...) noexcept>
struct Serve<M> {
  // False: the frame breaks the protocol.
  static bool run(Callee& callee, const wire::Header& header, wire::Reader& in) {
    std::tuple<P...> args{};
    wire::read_call(in, args);
    if (!in.whole()) return false;
    plugin::Plugin& plugin = callee.peer()->plugin();
    auto remote = std::make_shared<Remote>(callee.peer(), header.lane, header.id);
    (add_struct<P>(*remote), ...);
    callee.prepare(*remote);
    void* token = plugin.tokens.add(remote, &Remote::kKind);
    if (token == nullptr) return false;
    std::tuple<Slot<P>...> slots = std::apply(
        [&](const auto&... each) { return std::tuple<Slot<P>...>(Slot<P>(each, token)...); }, args);
    lanes(callee, slots);
    auto outcome = call(callee, header.target, slots, std::make_index_sequence<sizeof...(P) - 1>());
    remote->starting.store({});
    if (!outcome) {
      const plugin::ErrorView error(outcome.error());
      std::apply([&](auto&... each) { (fail(each, *error.get()), ...); }, slots);
    } else {
      std::apply([&](auto&... each) { (keep(each, callee, header.id), ...); }, slots);
    }
    return true;
  }

 private:
  using Slots = std::tuple<Slot<P>...>;

  template <class T>
  static void add_struct(Remote& remote) {
    using C = std::remove_const_t<std::remove_pointer_t<T>>;
    if constexpr (wire::is_callbacks<T> || wire::is_callbacks_pointer<T>)
      remote.structs.set(wire::struct_number<C>());
  }

  template <std::size_t... I>
  static Result<void> call(Callee& callee, Id target, Slots& slots, std::index_sequence<I...>) {
    if (auto good = callee.admit(); !good) return good;
    Self* self = nullptr;
    const S* table = nullptr;
    if (!callee.find(self, table, target))
      return Error(Status::gone, "the object of this call no longer exists", "runner.no_object");
    const auto end = reinterpret_cast<const char*>(&(table->*M)) + sizeof(table->*M);
    const bool there =
        !has_size(*table) ||
        size_of(*table) >= static_cast<std::size_t>(end - reinterpret_cast<const char*>(table));
    if (!there || table->*M == nullptr)
      return Error(Status::unsupported, "the plugin does not offer this", "feature.absent");
    plugin::Plugin& plugin = callee.peer()->plugin();
    sf_status (*const fn)(Self*, P...) = table->*M;
    auto outcome =
        plugin::call_status(plugin, NameOf<M>::get(), fn, self, std::get<I>(slots).get()...);
    if (!outcome) return outcome;
    const char* lacks = nullptr;
    ((lacks = lacks != nullptr ? lacks : missing(plugin, std::get<I>(slots))), ...);
    if (lacks == nullptr) return {};
    constexpr bool process = (std::is_same_v<P, sf_process**> || ...);
    const std::string kind = process ? "process" : "stream";
    plugin.faults.report(plugin::Fault::missing_value,
                         std::string(NameOf<M>::get()) + ": " + kind + ": " + lacks);
    Error error = plugin::crashed(plugin, "the " + kind + " lacks " + lacks, "missing_member");
    error.may_have_started = true;
    return error;
  }

  static constexpr bool has_size(const S& s) {
    return requires {
      s.struct_size;
    };
  }
  static std::size_t size_of(const S& s) { return s.struct_size; }

  static void lanes(Callee& callee, Slots& slots) {
    std::apply([&](auto&... each) { (lane(callee, each), ...); }, slots);
  }
  static void lane(Callee& callee, Slot<sf_lane*>& slot) { slot.value = callee.lane(); }
  template <class T>
  static void lane(Callee&, Slot<T>&) {}

  template <class T>
  static const char* missing(plugin::Plugin& plugin, Slot<T>& slot) {
    if constexpr (requires { slot.missing(plugin); }) return slot.missing(plugin);
    return nullptr;
  }
  template <class T>
  static void fail(Slot<T>& slot, const sf_error& error) {
    if constexpr (requires { slot.fail(error); }) slot.fail(error);
  }
  template <class T>
  static void keep(Slot<T>& slot, Callee& callee, Id id) {
    if constexpr (requires { slot.keep(callee, id, ""); }) slot.keep(callee, id, NameOf<M>::get());
  }
};

}  // namespace sandforge::runner
