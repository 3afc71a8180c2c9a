// What the compiler must get right about coroutines, run under the sanitizers: shapes that g++ 12
// compiles correctly, long loops and deep chains of awaits without use of the stack.
#include <sandforge/plugin/task.hpp>

#include <catch2/catch.hpp>

#include "unit/plugin_layer/coroutine_fixture.hpp"

using namespace sandforge::plugin;
using sandforge::test::Bench;
using sandforge::test::Counted;

namespace {

using std::chrono::milliseconds;

// Options, as a class with a constructor of its own.
class Wanted {
 public:
  Wanted() {}
  explicit Wanted(std::string text) : name(std::move(text)) {}
  std::string name;
  std::vector<std::string> words;
  std::optional<std::string> maybe;
  Counted counted;
};

Task<int> plus_one(int n) {
  co_return n + 1;
}

Task<std::string> long_text(std::string text) {
  co_return text + std::string(100, 'x');
}

Task<std::size_t> later_size(Wanted options) {
  co_await sleep_for(milliseconds(0));
  co_return options.name.size() + options.words.size();
}

Task<int> million() {
  int n = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const int next = co_await plus_one(n);
    n = next;
  }
  co_return n;
}

Task<void> ready_operation() {
  const Lane lane = co_await current_lane();
  Async<void> done(lane, [](auto* pending, sf_op** op, const sf_error_sink*) {
    *op = nullptr;
    pending->succeed(Void());
    return SF_OK;
  });
  co_await std::move(done);
}

Task<int> million_ready() {
  for (int i = 0; i < 1'000'000; ++i)
    co_await ready_operation();
  co_return 1;
}

Task<int> depth(int levels) {
  if (levels == 0) {
    co_await sleep_for(milliseconds(0));
    co_return 0;
  }
  const int below = co_await depth(levels - 1);
  co_return below + 1;
}

Task<int> deep_throw(int levels) {
  if (levels == 0) throw Error(Code::gone, "at the bottom");
  const int below = co_await deep_throw(levels - 1);
  co_return below;
}

}  // namespace

TEST_CASE("a million synchronous awaits use no stack") {
  Bench bench;
  const auto ended = bench.run<int>([] { return million(); });
  CHECK(ended.value == 1'000'000);
  CHECK(ended.done == 1);
}

TEST_CASE("a million operations that end while they begin use no stack") {
  Bench bench;
  const auto ended = bench.run<int>([] { return million_ready(); });
  CHECK(ended.value == 1);
}

TEST_CASE("a deep chain of tasks uses no stack, whether it ends or throws") {
  Bench bench;
  CHECK(bench.run<int>([] { return depth(200'000); }).value == 200'000);
  CHECK(bench.run<int>([] { return deep_throw(20'000); }).code == Code::gone);
}

namespace {

Task<std::string> by_value(Wanted options, std::string text, std::vector<int> numbers) {
  co_await sleep_for(milliseconds(0));
  co_return options.name + text + std::to_string(numbers.size());
}

Task<std::string> temporaries() {
  Wanted options(std::string(50, 'o'));
  options.words.emplace_back("word");
  options.maybe = "maybe";
  const std::vector<int> numbers(3, 7);
  // Temporaries of every argument live to the end of the whole expression.
  const std::string one = co_await by_value(options, std::string(40, 't'), numbers);
  const std::string two = co_await by_value(Wanted("made here"), "literal", numbers);
  co_return one + two;
}

Task<int> named_before_conditions() {
  int seen = 0;
  const std::optional<int> first = co_await []() -> Task<std::optional<int>> { co_return 5; }();
  if (first) seen += *first;
  for (;;) {
    const int n = co_await plus_one(seen);
    if (n > 10) break;
    seen = n;
  }
  const int more = co_await plus_one(1);
  const int chosen = more > 1 ? more : seen;
  co_return seen + chosen;
}

// The handler only notes what happened; the await comes after it.
Task<std::string> await_after_handler() {
  std::string why;
  try {
    const int never = co_await deep_throw(3);
    why = std::to_string(never);
  } catch (const Error& e) {
    why = e.message();
  }
  const std::string text = co_await long_text(why);
  co_return text;
}

Task<std::size_t> moved_in_and_out() {
  auto owned = std::make_unique<std::string>(64, 'm');
  Task<std::string> held = long_text(std::move(*owned));
  owned.reset();
  const std::string text = co_await std::move(held);
  Wanted options(text);
  const std::size_t size = co_await later_size(std::move(options));
  co_return size;
}

Task<int> in_branches_and_switch(int which) {
  int out = 0;
  if (which == 0) {
    co_await sleep_for(milliseconds(0));
    out = 1;
  } else {
    out = co_await plus_one(which);
  }
  switch (which) {
    case 1: {
      const int more = co_await plus_one(out);
      out = more;
      break;
    }
    default:
      co_await sleep_for(milliseconds(0));
  }
  co_return out;
}

class Base {
 public:
  Base() = default;
  Base(const Base&) = delete;
  Base& operator=(const Base&) = delete;
  virtual ~Base() = default;
  virtual Task<std::string> name(Wanted options) = 0;
};
class Derived final : public Base {
 public:
  Task<std::string> name(Wanted options) override {
    co_await sleep_for(milliseconds(0));
    co_return prefix_ + options.name;
  }

 private:
  std::string prefix_ = std::string(40, 'p');
};

template <class Fn>
Task<int> call(Fn fn) {
  co_await sleep_for(milliseconds(0));
  const int answer = fn();
  co_return answer;
}

// A lambda that holds something has a name; one without captures, or with references, needs none.
Task<int> lambdas() {
  const Counted counted;
  int n = 1;
  const auto holds = [counted, n] { return n; };
  const int one = co_await call(holds);
  const int two = co_await call([&n] { return n + 1; });
  const int three = co_await call([] { return 3; });
  co_return one + two + three;
}

template <class T>
Task<T> twice(Task<T> first, Task<T> second) {
  T one = co_await std::move(first);
  T two = co_await std::move(second);
  co_return one + two;
}

Task<std::string> passes_on(std::string text) {
  co_return co_await long_text(std::move(text));
}

Task<std::size_t> owns(std::unique_ptr<Wanted> one, std::optional<Wanted> two,
                       std::vector<Wanted> more, Wanted last = Wanted("default")) {
  co_await sleep_for(milliseconds(0));
  const std::size_t optional = two ? two->name.size() : 0;
  co_return one->name.size() + optional + more.size() + last.name.size();
}

// Arguments that are joined, moved, or made by default in place; one that is chosen has a name.
Task<std::size_t> arguments(bool flag) {
  const std::string a(40, 'a');
  const std::string b(50, 'b');
  const std::string chosen = flag ? std::string(60, 'c') : b;
  const std::string& preferred = flag ? a : b;
  const std::string one = co_await long_text(preferred);
  const std::string two = co_await long_text(chosen);
  const std::string three = co_await passes_on(a + b + "text");
  const std::vector<Wanted> more(2, Wanted("more"));
  const std::size_t four = co_await owns(std::make_unique<Wanted>("1"), Wanted("22"), more);
  const std::size_t five = co_await owns(std::make_unique<Wanted>("1"), std::nullopt, more,
                                         Wanted(std::string(30, 'l')));
  co_return one.size() + two.size() + three.size() + four + five;
}

Task<std::pair<std::string, Wanted>> two_values() {
  co_await sleep_for(milliseconds(0));
  co_return std::pair<std::string, Wanted>(std::string(33, 'p'), Wanted("second"));
}
Task<std::unique_ptr<Wanted>> made() {
  co_return std::make_unique<Wanted>("made");
}
Task<std::string> answers() {
  const auto [first, second] = co_await two_values();
  const std::unique_ptr<Wanted> owned = co_await made();
  std::string all = first + second.name + owned->name;
  const std::vector<std::string> list(3, std::string(20, 'e'));
  for (const std::string& element : list) {
    const std::string longer = co_await long_text(element);
    all += longer.substr(0, 1);
  }
  const auto work = [all] { return all + "!"; };
  const std::string worked = co_await run_blocking(work);
  const std::string shielded = co_await with_stop(StopToken(), passes_on(worked));
  co_return shielded.substr(0, worked.size());
}

Task<std::size_t> refuses(Wanted one, std::string two) {
  co_await sleep_for(milliseconds(0));
  if (two.empty()) co_return one.name.size();
  throw Error(Code::conflict, one.name + two);
}
std::string no_argument() {
  throw Error(Code::invalid, "no argument");
}
// What was made for a call that fails is destroyed once.
Task<std::string> failures() {
  const Counted counted;
  std::string why;
  try {
    const std::size_t never = co_await refuses(Wanted("one"), std::string(40, 't'));
    why = std::to_string(never);
  } catch (const Error& e) {
    why = e.message();
  }
  try {
    const std::size_t never = co_await refuses(Wanted("two"), no_argument());
    why += std::to_string(never);
  } catch (const Error& e) {
    why += e.message();
  }
  co_return why;
}

Task<std::string> through_reference(const std::unique_ptr<Base>& object) {
  const std::string name = co_await object->name(Wanted("ref"));
  co_return name;
}

}  // namespace

TEST_CASE("shapes of coroutines that compile to right code") {
  {
    Bench bench;
    CHECK(bench.run<std::string>([] { return temporaries(); }).value ==
          std::string(50, 'o') + std::string(40, 't') + "3" + "made here" + "literal" + "3");
    CHECK(bench.run<int>([] { return named_before_conditions(); }).value == 12);
    CHECK(bench.run<std::string>([] { return await_after_handler(); }).value ==
          "at the bottom" + std::string(100, 'x'));
    CHECK(bench.run<std::size_t>([] { return moved_in_and_out(); }).value == 164);
    CHECK(bench.run<int>([] { return in_branches_and_switch(0); }).value == 1);
    CHECK(bench.run<int>([] { return in_branches_and_switch(1); }).value == 3);
    CHECK(bench.run<int>([] { return in_branches_and_switch(2); }).value == 3);
    CHECK(bench.run<int>([] { return lambdas(); }).value == 6);
    CHECK(bench.run<std::size_t>([] { return arguments(true); }).value ==
          140 + 160 + 194 + 12 + 33);
    CHECK(bench.run<std::size_t>([] { return arguments(false); }).value ==
          150 + 150 + 194 + 12 + 33);
    CHECK(bench.run<std::string>([] { return answers(); }).value ==
          std::string(33, 'p') + "secondmadeeee!");
    CHECK(bench.run<std::string>([] { return failures(); }).value ==
          "one" + std::string(40, 't') + "no argument");
    const std::unique_ptr<Base> object = std::make_unique<Derived>();
    CHECK(bench.run<std::string>([&] { return through_reference(object); }).value ==
          std::string(40, 'p') + "ref");
    CHECK(bench.run<std::string>([] { return twice(long_text("a"), long_text("b")); }).value ==
          "a" + std::string(100, 'x') + "b" + std::string(100, 'x'));
  }
  CHECK(Counted::live == 0);
  CHECK(sandforge::testing::Lane::live == 0);
}

TEST_CASE("a task that is never awaited frees what it was given, and one that was is refused") {
  {
    const Task<std::size_t> dropped = later_size(Wanted("dropped"));
    CHECK(Counted::live == 1);
  }
  CHECK(Counted::live == 0);
  Bench bench;
  const auto ended = bench.run<int>([]() -> Task<int> {
    Task<int> once = plus_one(1);
    const int first = co_await std::move(once);
    const int second = co_await std::move(once);
    co_return first + second;
  });
  CHECK(ended.code == Code::internal);
  CHECK(ended.message == "a task was used after it was moved from");
}
