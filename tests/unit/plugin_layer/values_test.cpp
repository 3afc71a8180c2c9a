// The values of the layer: text, errors, stops, settings, commands.
#include <sandforge/plugin/command.hpp>
#include <sandforge/plugin/settings.hpp>
#include <sandforge/plugin/stop_token.hpp>

#include <atomic>
#include <catch2/catch.hpp>

using namespace sandforge::plugin;

namespace {

Code code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.code();
  }
  FAIL("nothing was thrown");
  return Code::internal;
}

}  // namespace

TEST_CASE("absent text differs from empty text") {
  CHECK(maybe_str(std::nullopt).ptr == nullptr);
  CHECK(maybe_str(std::string()).ptr != nullptr);
  CHECK_FALSE(copy_optional(sf_bytes{nullptr, 0}));
  CHECK(copy_optional(to_str("x")) == "x");
  CHECK(view(sf_str{nullptr, 0}).empty());
}

TEST_CASE("a struct of another version is read over defaults") {
  struct Old {
    std::size_t struct_size;
    std::uint64_t first;
  };
  struct New {
    std::size_t struct_size;
    std::uint64_t first;
    std::uint64_t second;
  };
  const Old old{sizeof old, 5};
  const New read = detail::read_appendable(reinterpret_cast<const New*>(&old), New{0, 1, 7});
  CHECK(read.first == 5);
  CHECK(read.second == 7);
  const New longer[2] = {{sizeof(New), 1, 2}, {sizeof(New), 3, 4}};
  const Old second =
      detail::read_element(reinterpret_cast<const Old*>(longer), sizeof(New), 1, Old{});
  CHECK(second.first == 3);
}

TEST_CASE("an error keeps its parts over the boundary and back") {
  const Error sent = Error(Code::rate_limited, "slow down")
                         .detail("httpStatus", 429)
                         .may_have_started(true)
                         .retry_after(std::chrono::milliseconds(5));
  std::optional<Error> back;
  detail::with_error(std::make_exception_ptr(sent),
                     [&](const sf_error& e) { back = Error::from(e); });
  REQUIRE(back);
  CHECK(back->code() == Code::rate_limited);
  CHECK(back->message() == "slow down");
  CHECK(back->details().find("httpStatus")->as_integer() == 429);
  CHECK(back->may_have_started());
  CHECK(back->retry_after() == std::chrono::milliseconds(5));
}

TEST_CASE("codes, details and exceptions that are not known read as internal") {
  sf_error raw{};
  raw.struct_size = sizeof raw;
  raw.code = 999;
  raw.message = to_str("from the future");
  raw.details = to_str("no json");
  raw.retry_after_ms = SF_NONE;
  const Error read = Error::from(raw);
  CHECK(read.code() == Code::internal);
  CHECK(read.details().find("details")->as_string() == "no json");
  CHECK_FALSE(read.retry_after());
  CHECK(detail::fence(nullptr, [] { throw 5; }) == SF_INTERNAL);
  CHECK(detail::fence(nullptr, [] { throw Error(Code::gone, "x"); }) == SF_GONE);
  CHECK(detail::fence(nullptr, [] {}) == SF_OK);
  const detail::ErrorCatcher silent;
  CHECK(code_of([&] { silent.check(SF_CONFLICT); }) == Code::conflict);
  CHECK(code_of([&] { silent.check(-3); }) == Code::internal);
}

TEST_CASE("a stop is requested once, with its reason, and runs what waits for it") {
  const StopSource source;
  const StopToken token = source.token();
  int ran = 0;
  {
    const StopCallback dropped(token, [&] { ran += 100; });
  }
  const StopCallback first(token, [&] { ++ran; });
  CHECK_FALSE(token.wait_for(std::chrono::milliseconds(0)));
  CHECK(source.request_stop(StopReason::timed_out));
  CHECK_FALSE(source.request_stop());
  const StopCallback late(token, [&] { ++ran; });
  CHECK(ran == 2);
  CHECK(token.wait_for(std::chrono::hours(1)));
  CHECK(code_of([&] { token.throw_if_stopped(); }) == Code::timeout);
  CHECK_FALSE(StopToken().stop_requested());
  StopToken().throw_if_stopped();
}

TEST_CASE("a callback may drop itself, and a drop elsewhere waits for it") {
  const StopSource source;
  auto own = std::make_unique<std::optional<StopCallback>>();
  own->emplace(source.token(), [&] { own->reset(); });
  source.request_stop();
  CHECK_FALSE(own->has_value());

  const StopSource other;
  std::atomic<int> phase{0};
  auto slow = std::make_unique<StopCallback>(other.token(), [&] {
    phase = 1;
    while (phase != 2)
      std::this_thread::yield();
    phase = 3;
  });
  std::thread requests([&] { other.request_stop(); });
  while (phase != 1)
    std::this_thread::yield();
  std::thread lets_go([&] { phase = 2; });
  slow.reset();
  CHECK(phase == 3);
  requests.join();
  lets_go.join();
}

TEST_CASE("documents are read by type, with the pointer of what is wrong") {
  const Document d =
      Document::parse(R"({"s":"x","i":2.0,"n":1.5,"b":true,"o":{"k":1},"none":null,"a/b":1})");
  CHECK(d.string("s") == "x");
  CHECK(d.integer("i") == 2);
  CHECK(d.number("n") == 1.5);
  CHECK(d.boolean("b") == true);
  CHECK(d.document("o").integer("k") == 1);
  CHECK_FALSE(d.string("none"));
  CHECK_FALSE(d.has("none"));
  CHECK_FALSE(d.integer("absent"));
  CHECK(code_of([&] { d.integer("n"); }) == Code::invalid);
  CHECK(code_of([&] { d.integer("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.number("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.boolean("s"); }) == Code::invalid);
  CHECK(code_of([&] { d.document("s"); }) == Code::invalid);
  CHECK(code_of([] { Document::parse("[]"); }) == Code::invalid);
  CHECK(code_of([] { Document::parse("{"); }) == Code::invalid);
  CHECK(Document::parse("").object().empty());
  try {
    d.string("a/b");
    FAIL("a number was read as text");
  } catch (const Error& e) {
    CHECK(e.details().find("pointer")->as_string() == "/a~1b");
  }
}

TEST_CASE("a settings schema is closed and says what it was told") {
  SettingsSchema schema;
  schema.string("region").title("Region").one_of({"us", "eu"}).fallback("us");
  schema.number("share").bounds(0.5, 2).description("Part of a core");
  schema.boolean("fast").set("x-order", 3);
  schema.string("name").lengths(1, 5).pattern("^a");
  const Document text = Document::parse(schema.text());
  CHECK(text.boolean("additionalProperties") == false);
  const Document members = text.document("properties");
  CHECK(members.document("region").string("default") == "us");
  CHECK(members.document("share").number("minimum") == 0.5);
  CHECK(members.document("fast").integer("x-order") == 3);
  CHECK(members.document("name").string("pattern") == "^a");
  CHECK(SettingsSchema::from_text(R"({"type":"object"})").text() == R"({"type":"object"})");
}

TEST_CASE("a command goes over the boundary and back unchanged") {
  Command command;
  command.argv = {"a", std::string("b\0c", 3)};
  command.env.emplace_back("SET", "1");
  command.env.emplace_back("UNSET", std::nullopt);
  command.cwd = "";
  command.user = "u";
  command.tty.emplace();
  command.tty->cols = 100;
  command.tty->term = "vt100";
  command.pipe_stdin = true;
  command.combine_output = true;
  command.detach = true;
  command.timeout = std::chrono::milliseconds(1500);
  command.grace = std::chrono::milliseconds(20);
  command.window = 77;
  command.tag = "t";
  command.request_id = "r";
  const detail::CommandView view(command);
  const Command back(*view.get());
  CHECK_FALSE(back.shell);
  CHECK(back.argv == command.argv);
  REQUIRE(back.env.size() == 2);
  CHECK(back.env[0].value == "1");
  CHECK_FALSE(back.env[1].value);
  CHECK(back.cwd == "");
  CHECK(back.user == "u");
  REQUIRE(back.tty);
  CHECK(back.tty->cols == 100);
  CHECK(back.tty->rows == 24);
  CHECK(back.tty->term == "vt100");
  CHECK(back.pipe_stdin);
  CHECK(back.combine_output);
  CHECK(back.detach);
  CHECK(back.timeout == command.timeout);
  CHECK(back.grace == command.grace);
  CHECK(back.window == 77);
  CHECK(back.tag == "t");
  CHECK(back.request_id == "r");
}

TEST_CASE("an exit keeps its parts, and an outcome of the future reads as unknown") {
  Exit exit = Exit::signaled(15);
  exit.killed = true;
  exit.pipes_held = true;
  exit.started_at = 1;
  exit.ended_at = 2;
  sf_exit raw = exit.raw();
  const Exit back(raw);
  CHECK(back.outcome == ExitOutcome::signaled);
  CHECK(back.signal == 15);
  CHECK(back.killed);
  CHECK(back.pipes_held);
  CHECK(back.ended_at == 2);
  raw.outcome = 99;
  CHECK(Exit(raw).outcome == ExitOutcome::unknown);
}
