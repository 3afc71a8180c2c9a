/*
 * A sandbox of a plugin, for a test that says what should happen and stops where it does not:
 *
 *   testing::Host host;
 *   testing::Session box(host, testing::linked_plugin(), "my-cloud", R"({"root":"/tmp"})");
 *   box.start();
 *   const auto ran = box.exec("echo hello");
 *   testing::expect_equal(ran.out, "hello\n", "output");
 *   box.destroy();
 *
 * What fails without a way to say so, and a broken rule of the boundary, throws Failed.
 */
#pragma once

#include "driver.hpp"

namespace sandforge::testing {

// How a command ended.
struct Ran {
  std::string out;
  std::string err;
  std::uint32_t outcome = SF_EXIT_UNKNOWN;  // SF_EXIT_*
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool started = false;
  Failure failure;  // of a command that was refused, or whose end is not known
};

class Session {
 public:
  Context context;  // changed before create

  // Opens the provider. The options are not checked against the manifest, as a host would.
  Session(Host& host, const sf_plugin* plugin, const std::string& provider,
          const std::string& options = "{}")
      : driver_(host, plugin) {
    Failure failure;
    must(driver_.open(provider, options, failure), "open", failure);
  }
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // With settings as a host gives them: the schema's defaults filled in.
  void create(const std::string& settings = "{}") {
    Failure failure;
    must(driver_.create(&context, settings, failure), "create", failure);
  }
  // Creates the sandbox first where there is none.
  Driver::Started start(const Pairs& env = {}) {
    if (driver_.sandbox == nullptr) create();
    const Driver::Started started = driver_.start(env);
    ended(started.done, started.failure, "start");
    if (started.late_identity || started.identities > 1)
      throw Failed("start: on_identity came twice, or after done");
    return started;
  }
  void stop() { end(&sf_sandbox_vtbl::stop, "stop"); }
  void destroy() { end(&sf_sandbox_vtbl::destroy, "destroy"); }
  Driver::Description describe() {
    const Driver::Description description = driver_.describe();
    ended(description.done, description.failure, "describe");
    return description;
  }

  Ran exec(const std::string& shell) {
    CommandLine line;
    line.shell = shell;
    return exec(line);
  }
  // To its end. Input is at its end; the output is granted as it comes.
  Ran exec(CommandLine& line) {
    const auto running = spawn(line);
    return finish(*running);
  }
  // A command that the test goes on with: running.stream takes input, grants and a cancel.
  std::shared_ptr<Running> spawn(CommandLine& line) {
    const auto running = std::make_shared<Running>(line.window);
    Failure failure;
    must(driver_.spawn(line, *running, failure), "spawn", failure);
    running_.push_back(running);
    return running;
  }
  Ran finish(Running& running) {
    if (!driver_.wait([&] { return running.done > 0; }))
      throw Failed("the command does not end: " + stuck());
    if (!running.rules_kept()) throw Failed("exec: more output than was granted, or after done");
    if (running.disorder) throw Failed("exec: events out of their order, or twice");
    if (!running.failure && running.exited == 0) throw Failed("exec: done came without an exit");
    running.release();
    return {running.out,         running.err,         running.exit.outcome, running.exit.code,
            running.exit.signal, running.started > 0, running.failure};
  }

  // For what this class has no words for.
  Driver& driver() { return driver_; }

  // Ends the commands that were not finished, gives the sandbox and the provider back, and waits
  // for what runs on threads.
  void close() {
    for (const auto& running : running_) {
      if (running->process == nullptr) continue;
      running->stream->vtbl->cancel(running->stream);
      driver_.wait([&] { return running->done > 0; });
      running->release();
    }
    driver_.release();
    driver_.host.join();
    driver_.host.loop.drain();
  }

 private:
  void end(sf_status (*sf_sandbox_vtbl::*member)(sf_sandbox*, sf_completion, sf_op**,
                                                 const sf_error_sink*) SF_NOEXCEPT,
           const char* what) {
    if (driver_.sandbox == nullptr) create();
    const Result result = driver_.run(member);
    ended(result.done, result.failure, what);
  }
  static void must(sf_status status, const std::string& what, const Failure& failure) {
    if (status != SF_OK) fail(what, failure ? failure : Failure(status, "no reason was reported"));
  }
  void ended(int done, const Failure& failure, const std::string& what) {
    if (done == 0) throw Failed(what + " does not end: " + stuck());
    if (done > 1) throw Failed(what + ": done came twice");
    if (failure) fail(what, failure);
  }
  [[noreturn]] static void fail(const std::string& what, const Failure& failure) {
    throw Failed(what + ": " + failure.message + " (status " + std::to_string(failure.code) + ")");
  }
  std::string stuck() const {
    const std::size_t timers = driver_.host.loop.timers();
    return timers == 0 ? "nothing is left to do"
                       : std::to_string(timers) + " timers wait for the time to be moved";
  }

  std::vector<std::shared_ptr<Running>> running_;
  Driver driver_;
};

}  // namespace sandforge::testing
