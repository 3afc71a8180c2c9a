// Every struct and every call of the boundary goes over the wire and comes back the same.
#include <sandforge/wire/runner/codec.hpp>

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include <sandforge/wire/runner/calls.hpp>

using namespace sandforge::wire::runner;

namespace {

// Fills anything with values that differ from each other.
class Samples {
 public:
  template <class T>
  void fill(T& v) {
    if constexpr (std::is_integral_v<T>) {
      v = static_cast<T>(++next_ * 0x0101010101010101U);
    } else if constexpr (is_text<T>) {
      const std::string value = "text " + std::to_string(++next_);
      char* copy = arena_.bytes(value.size());
      std::copy(value.begin(), value.end(), copy);
      v.ptr = next_ % 3 == 0 ? nullptr : reinterpret_cast<decltype(v.ptr)>(copy);
      v.len = v.ptr == nullptr ? 0 : value.size();
    } else if constexpr (is_out<T> || is_callbacks_pointer<T>) {
      v = reinterpret_cast<T>(&arena_);
    } else if constexpr (is_handle<T>) {
      v = reinterpret_cast<T>(static_cast<std::uintptr_t>(++next_));
    } else if constexpr (is_record_pointer<T> || is_array_member<T>) {
      auto* record = arena_.make<std::remove_const_t<std::remove_pointer_t<T>>>(2);
      fill(record[0]);
      fill(record[1]);
      v = record;
    } else if constexpr (is_callbacks<T>) {
      v = {};
    } else if constexpr (!is_function_pointer<T>) {
      v = {};
      bool count = false;
      Fields<T>::visit([&](std::string_view, auto member) {
        using M = std::remove_reference_t<decltype(v.*member)>;
        fill(v.*member);
        if constexpr (std::is_same_v<M, std::size_t>) {
          if (count) v.*member = 2;
        }
        count = is_array_member<M>;
      });
      if constexpr (requires { v.struct_size; }) v.struct_size = sizeof(T);
    }
  }

  template <class... Ps>
  void fill_call(std::tuple<Ps...>& args) {
    std::apply([&](auto&... each) { (fill(each), ...); }, args);
    correct_arrays<0>(args);
  }

 private:
  template <std::size_t I, class... Ps>
  void correct_arrays(std::tuple<Ps...>& args) {
    if constexpr (I + 2 < sizeof...(Ps)) {
      using P = std::tuple_element_t<I, std::tuple<Ps...>>;
      using Q = std::tuple_element_t<I + 1, std::tuple<Ps...>>;
      if constexpr (is_record_pointer<P> && std::is_same_v<Q, std::size_t>) {
        std::get<I + 1>(args) = 2;
        std::get<I + 2>(args) = sizeof(*std::get<I>(args));
      }
      correct_arrays<I + 1>(args);
    }
  }
  Arena arena_;
  std::uint64_t next_ = 0;
};

// Neither a table of functions, nor an object, nor callbacks.
template <class T>
constexpr bool is_data() {
  bool data = true;
  Fields<T>::visit([&](std::string_view name, auto member) {
    using M = std::remove_reference_t<decltype(std::declval<T&>().*member)>;
    data = data && !is_function_pointer<M> && name != "vtbl";
  });
  return data;
}

int records = 0;
int calls = 0;

template <class T>
void round_trip_record() {
  INFO(Fields<T>::name);
  ++records;
  Samples samples;
  T value{};
  samples.fill(value);
  Writer first;
  first.value(value);
  Arena arena;
  T back{};
  Reader reader(first.out, arena);
  reader.value(back);
  CHECK(reader.ok());
  CHECK(reader.at_end());
  Writer second;
  second.value(back);
  CHECK(first.out == second.out);
  for (std::size_t cut = 0; cut < first.out.size(); ++cut) {
    Arena scratch;
    T partial{};
    Reader short_reader(std::string_view(first.out).substr(0, cut), scratch);
    short_reader.value(partial);
    if (short_reader.ok()) FAIL("accepted " << cut << " of " << first.out.size());
  }
}

template <class R, class... Ps>
void round_trip_call(std::string_view name, R (*)(Ps...) noexcept) {
  INFO(name);
  ++calls;
  Samples samples;
  std::tuple<Ps...> args;
  samples.fill_call(args);
  Writer first;
  write_call(first, args);
  Arena arena;
  std::tuple<Ps...> back;
  Reader reader(first.out, arena);
  read_call(reader, back);
  CHECK(reader.ok());
  CHECK(reader.at_end());
  Writer second;
  write_call(second, back);
  CHECK(first.out == second.out);
}

// These run inside the runner: what they take are functions or objects of its own.
template <class T>
constexpr bool stays_inside =
    std::is_same_v<T, sf_lane_vtbl> || std::is_same_v<T, sf_executor_service> ||
    std::is_same_v<T, sf_http_service>;

template <class T>
void round_trip_calls() {
  if constexpr (!stays_inside<T>) {
    Fields<T>::visit([](std::string_view name, auto member) {
      using M = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<T&>().*member)>>;
      if constexpr (is_function_pointer<M>) round_trip_call(name, M{});
    });
  }
}

}  // namespace

TEST_CASE("every struct without functions comes back the same, and no prefix of it is accepted") {
  for_each_struct([]<class S>() {
    if constexpr (is_data<S>() && !is_text<S>) round_trip_record<S>();
  });
  CHECK(records >= 30);
}

TEST_CASE("every call comes back the same") {
  for_each_struct([]<class S>() { round_trip_calls<S>(); });
  CHECK(calls >= 100);
}

TEST_CASE("functions have numbers of their own") {
  std::set<Method> seen;
  int functions = 0;
  for_each_struct([&]<class S>() {
    Fields<S>::visit([&](std::string_view, auto member) {
      if constexpr (is_function_pointer<std::decay_t<decltype(std::declval<S&>().*member)>>) {
        ++functions;
        seen.insert(method_of(member));
      }
    });
  });
  CHECK(seen.size() == static_cast<std::size_t>(functions));
  CHECK(method_of(&sf_sandbox_vtbl::start) != method_of(&sf_sandbox_vtbl::stop));
}

TEST_CASE("a member of a newer side is skipped, one that an older side lacks reads as zero") {
  sf_tty tty{80, 24, {"xterm", 5}};
  Writer writer;
  writer.value(tty);
  const std::string unknown("\x63\x00\x01\x00\x00\x00!", 7);  // tag 99, one byte
  std::string newer = writer.out + unknown;
  newer[0] = static_cast<char>(newer.size() - 4);
  Arena arena;
  sf_tty back{};
  Reader reader(newer, arena);
  reader.value(back);
  CHECK(reader.ok());
  CHECK(back.rows == 24);

  std::string older = writer.out.substr(0, 4 + 10);  // only the first member
  older[0] = 10;
  Reader older_reader(older, arena);
  older_reader.value(back);
  CHECK(older_reader.ok());
  CHECK(back.cols == 80);
  CHECK(back.rows == 0);
  CHECK(back.term.ptr == nullptr);
}

TEST_CASE("a member that whoever filled the struct did not know is not read") {
  sf_command command{};
  command.struct_size = offsetof(sf_command, tag);
  command.window = 7;
  command.tag = {reinterpret_cast<const char*>(1), 1000};  // rubbish behind the end
  Writer writer;
  writer.value(command);
  Arena arena;
  Reader reader(writer.out, arena);
  const auto back = reader.read<sf_command>();
  CHECK(reader.whole());
  CHECK(back.window == 7);
  CHECK(back.tag.ptr == nullptr);
  CHECK(back.struct_size == command.struct_size);
}

TEST_CASE("a count that the frame cannot hold is refused before anything is allocated") {
  sf_command command{};
  command.struct_size = sizeof command;
  const sf_bytes word{reinterpret_cast<const uint8_t*>("x"), 1};
  command.argv = &word;
  command.argc = 1;
  Writer writer;
  writer.value(command);
  const std::string one("\x01\x00\x00\x00\x01\x01\x00\x00\x00x", 10);
  const auto at = writer.out.find(one);
  REQUIRE(at != std::string::npos);
  writer.out[at + 3] = '\x7f';
  Arena arena;
  sf_command back{};
  Reader reader(writer.out, arena);
  reader.value(back);
  CHECK_FALSE(reader.ok());
}
