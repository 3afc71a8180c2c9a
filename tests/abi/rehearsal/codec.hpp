// What a runner puts on the wire: every struct and every call of the boundary as tag, length,
// value. One field table (layout.inc) drives it; nothing is written by hand for a single struct or
// call. Objects and callbacks travel as numbers, which the two sides look up.
#pragma once

#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../all_headers.h"

namespace sandforge::rehearsal::codec {

// ---- The table as something that a template can walk ------------------------------------------

template <class S>
struct Fields {
  static constexpr bool known = false;
};
#define SF_STRUCT(s, kind, size)            \
  template <>                               \
  struct Fields<s> {                        \
    static constexpr bool known = true;     \
    static constexpr const char* name = #s; \
    template <class V>                      \
    static constexpr void visit(V&& v) {
#define SF_MEMBER(s, m, offset, size) v(#m, &s::m);
#define SF_STRUCT_END(s, last) \
  }                            \
  }                            \
  ;
#include "../layout.inc"
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END

template <class T>
inline constexpr bool is_function_pointer =
    std::is_pointer_v<T>&& std::is_function_v<std::remove_pointer_t<T>>;

// Structs of callbacks are a token on the wire: their ctx.
template <class T, class = void>
inline constexpr bool has_ctx = false;
template <class T>
inline constexpr bool has_ctx<T, std::void_t<decltype(std::declval<T>().ctx)>> = true;

template <class T>
inline constexpr bool is_text = std::is_same_v<T, sf_str> || std::is_same_v<T, sf_bytes>;

// Members that point at the first of several elements; the count is the next member.
template <class T>
inline constexpr bool is_array_member =
    std::is_same_v<T, const sf_bytes*> || std::is_same_v<T, const sf_env_entry*> ||
    std::is_same_v<T, const sf_http_header*>;

template <class T>
inline constexpr bool is_record_pointer =
    std::is_pointer_v<T>&& std::is_const_v<std::remove_pointer_t<T>>&&
        Fields<std::remove_const_t<std::remove_pointer_t<T>>>::known;

// Objects, by pointer: a vtable behind it, or opaque.
template <class T>
inline constexpr bool is_handle =
    std::is_pointer_v<T> && !std::is_const_v<std::remove_pointer_t<T>> && !is_function_pointer<T> &&
    !std::is_pointer_v<std::remove_pointer_t<T>> && !std::is_integral_v<std::remove_pointer_t<T>>;

// ---- Writing ----------------------------------------------------------------------------------

class Writer {
 public:
  std::string out;

  template <class T>
  void value(const T& v) {
    if constexpr (std::is_integral_v<T>) {
      for (std::size_t i = 0; i < sizeof(T); ++i) {
        out += static_cast<char>(static_cast<std::uint64_t>(v) >> (8 * i) & 0xFF);
      }
    } else if constexpr (is_text<T>) {
      value<std::uint8_t>(v.ptr != nullptr);
      value(static_cast<std::uint32_t>(v.len));
      out.append(reinterpret_cast<const char*>(v.ptr), v.len);
    } else if constexpr (is_handle<T>) {
      value(reinterpret_cast<std::uint64_t>(v));
    } else if constexpr (is_record_pointer<T>) {
      value<std::uint8_t>(v != nullptr);
      if (v != nullptr) value(*v);
    } else if constexpr (has_ctx<T>) {
      value(reinterpret_cast<std::uint64_t>(v.ctx));
    } else {
      static_assert(Fields<T>::known, "a type that the codec does not know");
      framed([&] { record(v); });
    }
  }

  template <class T>
  void array(const T* first, std::size_t count, std::size_t stride) {
    value(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      value(*reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + i * stride));
    }
  }

 private:
  template <class Body>
  void framed(Body body) {
    const std::size_t at = out.size();
    value(std::uint32_t{0});
    body();
    const auto size = static_cast<std::uint32_t>(out.size() - at - 4);
    std::memcpy(out.data() + at, &size, 4);
  }

  template <class T>
  void record(const T& v) {
    std::uint16_t tag = 0;
    const void* array_start = nullptr;
    Fields<T>::visit([&](std::string_view name, auto member) {
      using M = std::remove_cv_t<std::remove_reference_t<decltype(v.*member)>>;
      ++tag;
      if (name == "struct_size") return;  // each side has its own
      if constexpr (is_array_member<M>) {
        value(tag);
        framed([&] { array_of(v.*member, count_after(v, member)); });
        array_start = v.*member;
      } else if constexpr (std::is_same_v<M, std::size_t>) {
        if (std::exchange(array_start, nullptr) != nullptr) return;
        if (name == "argc" || name.find("_count") == name.size() - 6) return;  // of an empty array
        value(tag);
        framed([&] { value(v.*member); });
      } else {
        value(tag);
        framed([&] { value(v.*member); });
      }
    });
  }
  template <class E>
  void array_of(const E* first, std::size_t count) {
    array(first, count, sizeof(E));
  }
  // The count is the member right behind the pointer.
  template <class T, class M>
  static std::size_t count_after(const T& v, M member) {
    std::size_t count = 0;
    const char* behind = reinterpret_cast<const char*>(&(v.*member)) + sizeof(void*);
    std::memcpy(&count, behind, sizeof count);
    return count;
  }
};

// ---- Reading ----------------------------------------------------------------------------------

// Owns what decoded pointers point at.
class Arena {
 public:
  char* bytes(std::size_t size) { return blocks_.emplace_back(size + 1).data(); }
  template <class T>
  T* make(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<T*>(bytes(sizeof(T) * count + sizeof(T)));
  }

 private:
  std::deque<std::vector<char>> blocks_;
};

// Refuses what is too short or too long; never reads past the frame.
class Reader {
 public:
  Reader(std::string_view in, Arena& arena) : in_(in), arena_(arena) {}
  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }

  template <class T>
  void value(T& v) {
    if constexpr (std::is_integral_v<T>) {
      const std::string_view raw = take(sizeof(T));
      std::uint64_t number = 0;
      for (std::size_t i = raw.size(); i-- > 0;) {
        number = number << 8 | static_cast<unsigned char>(raw[i]);
      }
      v = static_cast<T>(number);
    } else if constexpr (is_text<T>) {
      const bool present = read<std::uint8_t>() != 0;
      const std::string_view raw = take(read<std::uint32_t>());
      char* copy = arena_.bytes(raw.size());
      raw.copy(copy, raw.size());
      v.ptr = present ? reinterpret_cast<decltype(v.ptr)>(copy) : nullptr;
      v.len = raw.size();
    } else if constexpr (is_handle<T>) {
      v = reinterpret_cast<T>(read<std::uint64_t>());
    } else if constexpr (is_record_pointer<T>) {
      using R = std::remove_const_t<std::remove_pointer_t<T>>;
      v = nullptr;
      if (read<std::uint8_t>() == 0 || !ok_) return;
      R* record = arena_.make<R>(1);
      value(*record);
      v = record;
    } else if constexpr (has_ctx<T>) {
      v = {};
      v.ctx = reinterpret_cast<void*>(read<std::uint64_t>());
    } else {
      v = {};
      if constexpr (requires { v.struct_size; }) v.struct_size = sizeof(T);
      Reader inner(take(read<std::uint32_t>()), arena_);
      while (ok_ && inner.ok_ && !inner.at_end()) {
        const auto tag = inner.read<std::uint16_t>();
        Reader field(inner.take(inner.read<std::uint32_t>()), arena_);
        if (inner.ok_) field.member(v, tag);
        inner.ok_ = inner.ok_ && field.ok_;
      }
      ok_ = ok_ && inner.ok_;
    }
  }

  template <class T>
  void array(const T*& first, std::size_t& count) {
    const auto n = read<std::uint32_t>();
    // Every element takes at least a byte: a count beyond that is a lie, and allocates nothing.
    ok_ = ok_ && n <= in_.size();
    if (!ok_) return;
    T* elements = arena_.make<T>(n);
    for (std::size_t i = 0; i < n && ok_; ++i)
      value(elements[i]);
    first = elements;
    count = n;
  }

 private:
  template <class T>
  T read() {
    T v{};
    value(v);
    return v;
  }
  std::string_view take(std::size_t n) {
    ok_ = ok_ && n <= in_.size();
    if (!ok_) return {};
    const std::string_view taken = in_.substr(0, n);
    in_.remove_prefix(n);
    return taken;
  }
  // A tag that this side does not know belongs to a newer one: skipped.
  template <class T>
  void member(T& v, std::uint16_t wanted) {
    std::uint16_t tag = 0;
    Fields<T>::visit([&](std::string_view, auto at) {
      using M = std::remove_reference_t<decltype(v.*at)>;
      if (++tag != wanted) return;
      if constexpr (is_array_member<M>) {
        std::size_t count = 0;
        array(v.*at, count);
        char* behind = reinterpret_cast<char*>(&(v.*at)) + sizeof(void*);
        std::memcpy(behind, &count, sizeof count);
      } else {
        value(v.*at);
      }
    });
  }

  std::string_view in_;
  Arena& arena_;
  bool ok_ = true;
};

// ---- Calls ------------------------------------------------------------------------------------

// How one parameter crosses. Out-parameters and sinks are empty in a request: the reply brings
// them.
template <class P>
inline constexpr bool comes_back = std::is_same_v<P, const sf_error_sink*> ||
                                   std::is_same_v<P, const sf_text_sink*> ||
                                   std::is_same_v<P, std::size_t*> ||
                                   (std::is_pointer_v<P> &&
                                    std::is_pointer_v<std::remove_pointer_t<P>>);

// The parameters of a call as a tuple, written in order; (first, count, stride) is one array.
template <std::size_t I = 0, class... Ps>
void write_call(Writer& w, const std::tuple<Ps...>& args) {
  if constexpr (I < sizeof...(Ps)) {
    using P = std::tuple_element_t<I, std::tuple<Ps...>>;
    if constexpr (I + 2 < sizeof...(Ps) && is_record_pointer<P>) {
      using Q = std::tuple_element_t<I + 1, std::tuple<Ps...>>;
      if constexpr (std::is_same_v<Q, std::size_t>) {
        w.array(std::get<I>(args), std::get<I + 1>(args), std::get<I + 2>(args));
        return write_call<I + 3>(w, args);
      }
    }
    if constexpr (comes_back<P>) {
      w.value<std::uint8_t>(std::get<I>(args) != nullptr);
    } else {
      w.value(std::get<I>(args));
    }
    write_call<I + 1>(w, args);
  }
}

template <std::size_t I = 0, class... Ps>
void read_call(Reader& r, std::tuple<Ps...>& args) {
  if constexpr (I < sizeof...(Ps)) {
    using P = std::tuple_element_t<I, std::tuple<Ps...>>;
    if constexpr (I + 2 < sizeof...(Ps) && is_record_pointer<P>) {
      using Q = std::tuple_element_t<I + 1, std::tuple<Ps...>>;
      if constexpr (std::is_same_v<Q, std::size_t>) {
        r.array(std::get<I>(args), std::get<I + 1>(args));
        std::get<I + 2>(args) = sizeof(*std::get<I>(args));
        return read_call<I + 3>(r, args);
      }
    }
    if constexpr (comes_back<P>) {
      std::uint8_t wanted = 0;
      r.value(wanted);
      static std::aligned_storage_t<sizeof(void*)> place;  // where a runner would collect it
      std::get<I>(args) = wanted != 0 ? reinterpret_cast<P>(&place) : nullptr;
    } else {
      r.value(std::get<I>(args));
    }
    read_call<I + 1>(r, args);
  }
}

}  // namespace sandforge::rehearsal::codec
