// Every struct of the boundary as tag, length, value: one field table drives it, nothing is written
// by hand for a single struct. A member that the reader does not know is skipped, one that the
// writer does not know reads as zero. Reading is safe on any bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sandforge/wire/runner/bytes.hpp"
#include "sandforge/wire/runner/fields.hpp"

namespace sandforge::wire::runner {

inline constexpr std::size_t kMaxElements = 100'000;  // of one array

class Writer;
class Reader;

// How objects that stand inside records cross; by default as the number of their address.
class Handles {
 public:
  virtual ~Handles() = default;
  virtual void write(Writer& out, sf_context* context) = 0;
  virtual sf_context* read_context(Reader& in) = 0;
  virtual sf_lane* lane() = 0;  // stands for every lane that is read
};

// ---- Writing ----------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(Handles* handles = nullptr) : handles_(handles) {}
  std::string out;

  template <class T>
  void value(const T& v) {
    if constexpr (std::is_integral_v<T>) {
      char bytes[sizeof(T)];
      store(bytes, v);
      out.append(bytes, sizeof(T));
    } else if constexpr (is_text<T>) {
      value<std::uint8_t>(v.ptr != nullptr);
      value(static_cast<std::uint32_t>(v.ptr != nullptr ? v.len : 0));
      if (v.ptr != nullptr) out.append(reinterpret_cast<const char*>(v.ptr), v.len);
    } else if constexpr (std::is_same_v<T, sf_context*>) {
      handles_ != nullptr ? handles_->write(*this, v) : number_of(v);
    } else if constexpr (std::is_same_v<T, sf_lane*>) {
      if (handles_ == nullptr) number_of(v);
    } else if constexpr (is_handle<T>) {
      number_of(v);
    } else if constexpr (is_record_pointer<T>) {
      value<std::uint8_t>(v != nullptr);
      if (v != nullptr) value(*v);
    } else {
      static_assert(Fields<T>::known, "a type that the codec does not know");
      framed([&] { record(v); });
    }
  }

  template <class T>
  void array(const T* first, std::size_t count, std::size_t stride) {
    if (first == nullptr) count = 0;
    value(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      value(*reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + i * stride));
  }

 private:
  void number_of(const void* object) { value(reinterpret_cast<std::uint64_t>(object)); }

  template <class Body>
  void framed(Body body) {
    const std::size_t at = out.size();
    value(std::uint32_t{0});
    body();
    store(out.data() + at, static_cast<std::uint32_t>(out.size() - at - 4));
  }

  // Members that whoever filled the struct did not know are left out.
  template <class T, class M>
  static bool present(const T& v, M member) {
    if constexpr (requires { v.struct_size; }) {
      const auto end = reinterpret_cast<const char*>(&(v.*member)) + sizeof(v.*member);
      return v.struct_size >= static_cast<std::size_t>(end - reinterpret_cast<const char*>(&v));
    } else {
      return true;
    }
  }

  template <class T>
  void record(const T& v) {
    std::uint16_t tag = 0;
    bool is_count = false;
    Fields<T>::visit([&](std::string_view name, auto member) {
      using M = std::remove_cv_t<std::remove_reference_t<decltype(v.*member)>>;
      ++tag;
      if (name == "struct_size" || !present(v, member)) return;  // each side has its own size
      if (std::exchange(is_count, false)) return;                // travels with its array
      value(tag);
      framed([&] {
        if constexpr (is_array_member<M>) {
          using E = std::remove_const_t<std::remove_pointer_t<M>>;
          array(v.*member, count_after(v, member), sizeof(E));
          is_count = true;
        } else {
          value(v.*member);
        }
      });
    });
  }
  // The count is the member right behind the pointer.
  template <class T, class M>
  static std::size_t count_after(const T& v, M member) {
    std::size_t count = 0;
    std::memcpy(&count, reinterpret_cast<const char*>(&(v.*member)) + sizeof(void*), sizeof count);
    return count;
  }

  Handles* handles_;
};

// ---- Reading ----------------------------------------------------------------------------------

// Owns what decoded pointers point at.
class Arena {
 public:
  char* bytes(std::size_t size) {
    // Zeroed, and one more than asked for: no empty block.
    return reinterpret_cast<char*>(
        blocks_.emplace_back(new std::max_align_t[size / kUnit + 1]()).get());
  }
  template <class T>
  T* make(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<T*>(bytes(sizeof(T) * count));
  }

 private:
  static constexpr std::size_t kUnit = sizeof(std::max_align_t);
  std::deque<std::unique_ptr<std::max_align_t[]>> blocks_;
};

// Refuses what is too short or too long; never reads past the frame. Texts point into the frame.
class Reader {
 public:
  Reader(std::string_view in, Arena& arena, Handles* handles = nullptr)
      : in_(in), arena_(arena), handles_(handles) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return in_.empty(); }
  std::string_view rest() const noexcept { return in_; }  // what was not read yet
  bool whole() const noexcept { return ok_ && in_.empty(); }
  void fail() noexcept { ok_ = false; }
  Arena& arena() noexcept { return arena_; }

  template <class T>
  void value(T& v) {
    if constexpr (std::is_integral_v<T>) {
      v = fetch<T>(take(sizeof(T)));
    } else if constexpr (is_text<T>) {
      const bool present = flag();
      const std::string_view raw = take(read<std::uint32_t>());
      ok_ = ok_ && (present || raw.empty());
      v.ptr = present && ok_ ? reinterpret_cast<decltype(v.ptr)>(raw.data()) : nullptr;
      v.len = v.ptr != nullptr ? raw.size() : 0;
    } else if constexpr (std::is_same_v<T, sf_context*>) {
      v = handles_ != nullptr ? handles_->read_context(*this) : number<T>();
    } else if constexpr (std::is_same_v<T, sf_lane*>) {
      v = handles_ != nullptr ? handles_->lane() : number<T>();
    } else if constexpr (is_handle<T>) {
      v = number<T>();
    } else if constexpr (is_record_pointer<T>) {
      using R = std::remove_const_t<std::remove_pointer_t<T>>;
      v = nullptr;
      if (!flag() || !ok_) return;
      R* record = arena_.make<R>(1);
      value(*record);
      v = record;
    } else {
      record(v);
    }
  }

  template <class T>
  T read() {
    T v{};
    value(v);
    return v;
  }

  template <class T>
  void array(const T*& first, std::size_t& count) {
    const auto n = read<std::uint32_t>();
    // Every element takes at least four bytes: a count beyond that is a lie, and allocates nothing.
    ok_ = ok_ && n <= in_.size() / 4 && n <= kMaxElements;
    if (!ok_) return;
    T* elements = arena_.make<T>(n);
    for (std::size_t i = 0; i < n && ok_; ++i)
      value(elements[i]);
    first = elements;
    count = n;
  }

 private:
  template <class T>
  T number() {
    return reinterpret_cast<T>(read<std::uint64_t>());
  }
  bool flag() {
    const auto raw = read<std::uint8_t>();
    ok_ = ok_ && raw <= 1;
    return raw == 1;
  }
  std::string_view take(std::size_t n) {
    ok_ = ok_ && n <= in_.size();
    if (!ok_) return {};
    const std::string_view taken = in_.substr(0, n);
    in_.remove_prefix(n);
    return taken;
  }

  template <class T>
  void record(T& v) {
    v = {};
    std::uint16_t last = 0;
    Reader inner(take(read<std::uint32_t>()), arena_, handles_);
    while (ok_ && inner.ok_ && !inner.at_end()) {
      const auto tag = inner.read<std::uint16_t>();
      last = std::max(last, tag);
      Reader field(inner.take(inner.read<std::uint32_t>()), arena_, handles_);
      if (inner.ok_) field.member(v, tag);
      inner.ok_ = inner.ok_ && field.ok_;
    }
    ok_ = ok_ && inner.ok_;
    if constexpr (requires { v.struct_size; }) v.struct_size = size_through(v, last);
  }

  // Up to the member with that tag: who filled a short struct did not know the others.
  template <class T>
  static std::size_t size_through(const T& v, std::uint16_t last) {
    std::size_t size = sizeof(v.struct_size);
    std::uint16_t tag = 0;
    bool is_count = false;
    Fields<T>::visit([&](std::string_view, auto at) {
      using M = std::remove_cv_t<std::remove_reference_t<decltype(v.*at)>>;
      if (++tag > last && !is_count) return;
      is_count = is_array_member<M>;
      const auto end = reinterpret_cast<const char*>(&(v.*at)) + sizeof(M);
      size = static_cast<std::size_t>(end - reinterpret_cast<const char*>(&v));
    });
    return size;
  }

  // A tag that this side does not know belongs to a newer one: skipped.
  template <class T>
  void member(T& v, std::uint16_t wanted) {
    std::uint16_t tag = 0;
    bool is_count = false;
    Fields<T>::visit([&](std::string_view name, auto at) {
      using M = std::remove_reference_t<decltype(v.*at)>;
      const bool own = name == "struct_size" || std::exchange(is_count, is_array_member<M>);
      if (++tag != wanted || own) return;
      if constexpr (is_array_member<M>) {
        std::size_t count = 0;
        array(v.*at, count);
        std::memcpy(reinterpret_cast<char*>(&(v.*at)) + sizeof(void*), &count, sizeof count);
      } else {
        value(v.*at);
      }
      ok_ = whole();
    });
  }

  std::string_view in_;
  Arena& arena_;
  Handles* handles_;
  bool ok_ = true;
};

}  // namespace sandforge::wire::runner
