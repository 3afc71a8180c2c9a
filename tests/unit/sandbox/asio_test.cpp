#include "sandforge/asio.hpp"

// gcc 12 takes the frame allocator of Asio's coroutines for a mismatched pair.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "fixture.hpp"

namespace sandforge {
namespace {

namespace asio = boost::asio;

// What a host's coroutine passes along: as aggregates g++ 12 would destroy them twice.
static_assert(!std::is_aggregate_v<Tty> && !std::is_aggregate_v<Command> &&
              !std::is_aggregate_v<ExecOptions> && !std::is_aggregate_v<SpawnOptions> &&
              !std::is_aggregate_v<WaitOptions> && !std::is_aggregate_v<SandboxConfig> &&
              !std::is_aggregate_v<CloneOptions> && !std::is_aggregate_v<Hooks> &&
              !std::is_aggregate_v<SessionContext>);

asio::awaitable<void> session(std::shared_ptr<Sandbox> sandbox, std::string& output,
                              Status& refused, std::thread::id& thread) {
  auto info = co_await async_start(*sandbox, asio::use_awaitable);
  output += std::string(to_string(info->outcome)) + ":";
  const std::vector<std::string> args{"a b"};
  ExecOptions options;
  auto result =
      co_await async_execute_command(*sandbox, "echo", args, options, asio::use_awaitable);
  output += result->out;
  auto bad = co_await async_execute_command(*sandbox, "", args, options, asio::use_awaitable);
  refused = bad.error().code;
  auto stopped = co_await async_stop(*sandbox, asio::use_awaitable);
  output += stopped.ok() ? "stopped" : "not stopped";
  thread = std::this_thread::get_id();
}

}  // namespace

TEST_CASE("a coroutine awaits a sandbox on its own executor") {
  Fixture f;
  asio::io_context context;
  std::string output;
  Status refused = Status::ok;
  std::thread::id thread;
  asio::co_spawn(context, session(f.sandbox, output, refused, thread), asio::detached);
  context.run();
  CHECK(output == "created:'a b'\nstopped");
  CHECK(refused == Status::invalid);
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("a future waits for a sandbox") {
  Fixture f;
  auto started = async_start(*f.sandbox, asio::use_future);
  REQUIRE(started.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  CHECK(started.get()->outcome == StartOutcome::created);

  auto process = async_spawn(*f.sandbox, shell("cat"), {}, asio::use_future).get().value();
  CHECK(async_write(process, "input", asio::use_future).get().ok());
  CHECK(async_close_stdin(process, asio::use_future).get().ok());
  CHECK(async_wait(process, {}, asio::use_future).get()->out == "input");
  CHECK_FALSE(async_kill(process, asio::use_future).get().value());
  CHECK(async_signal(process, 15, true, asio::use_future).get().error().code == Status::conflict);
  CHECK(async_resize(process, 80, 24, asio::use_future).get().error().code == Status::conflict);
  CHECK(async_list_processes(*f.sandbox, asio::use_future).get()->size() == 1);
  CHECK(async_get_process(*f.sandbox, process->id(), asio::use_future).get().value() == process);
  CHECK_FALSE(async_kill_process(*f.sandbox, process->id(), asio::use_future).get().value());
  CHECK(async_info(*f.sandbox, asio::use_future).get()->status == SandboxStatus::running);
  CHECK(async_instructions(*f.sandbox, asio::use_future).get().ok());
  CHECK(async_destroy(*f.sandbox, asio::use_future).get().ok());
}

TEST_CASE("a handler keeps its executor from running out of work and runs there") {
  Fixture f;
  asio::io_context context;
  std::thread::id thread;
  async_start(*f.sandbox, asio::bind_executor(context, [&](Result<StartedInfo>) {
    thread = std::this_thread::get_id();
  }));
  context.run();
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("a handler without an executor runs on the lane") {
  Fixture f;
  std::promise<std::thread::id> ran;
  async_start(*f.sandbox,
              [&](const Result<StartedInfo>&) { ran.set_value(std::this_thread::get_id()); });
  CHECK(ran.get_future().get() != std::this_thread::get_id());
}

TEST_CASE("emitting a cancellation slot ends the command, as the caller's own stop does") {
  Fixture f;
  f.sandbox->start();
  const bool by_slot = GENERATE(true, false);
  asio::io_context context;
  asio::cancellation_signal cancel;
  std::stop_source stop;
  std::optional<Result<CommandResult>> result;
  ExecOptions options;
  options.stop = stop.get_token();
  async_exec(*f.sandbox, {"sleep"}, options,
             asio::bind_cancellation_slot(
                 cancel.slot(), asio::bind_executor(context, [&](Result<CommandResult> r) {
                   result = std::move(r);
                 })));
  REQUIRE(f.world->process(0) != nullptr);
  if (by_slot) {
    cancel.emit(asio::cancellation_type::terminal);
  } else {
    stop.request_stop();
  }
  context.run();
  REQUIRE(result.has_value());
  CHECK(result->value().outcome == Outcome::cancelled);
}

}  // namespace sandforge
