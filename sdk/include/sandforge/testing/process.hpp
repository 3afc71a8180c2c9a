// The process service of the fake host: commands are recorded, and answered by a script; or they
// run for real.
#pragma once

#include "impl/real_process.hpp"
#include "stream.hpp"

namespace sandforge::testing {

/*
 * A command that the plugin gave to the process service, and the end of it that the test holds.
 * Say started first, then output, then exit or signaled; or refuse alone. These may be called on
 * any thread.
 */
class Invocation : public std::enable_shared_from_this<Invocation> {
 public:
  std::string line;               // the shell text, or the words of argv with a blank between
  std::string shell;              // empty: argv
  std::vector<std::string> argv;  // empty: shell
  std::string cwd;
  std::string user;
  std::map<std::string, std::string> env;
  bool has_input = false;
  std::uint64_t timeout_ms = 0;  // 0: none

  // What happens on the lane: input of the command, its end, a signal (by default it ends the
  // command), and a cancel (the same).
  std::function<void(std::string_view)> on_input;
  std::function<void()> on_input_end;
  std::function<void(std::int32_t signal, std::uint32_t scope)> on_signal;
  std::function<void()> on_cancel;

  std::string variable(std::string_view name) const {
    const auto found = env.find(std::string(name));
    return found == env.end() ? std::string() : found->second;
  }

  void started(std::int64_t pid = 100) {
    stream_->push_call([told = told_, pid] {
      const std::string id = std::to_string(pid);
      const sf_process_started s{sizeof s, str(id), pid};
      told.on_started(told.ctx, &s);
    });
  }
  void out(std::string data) { stream_->push(SF_CHANNEL_STDOUT, 0, std::move(data)); }
  void err(std::string data) { stream_->push(SF_CHANNEL_STDERR, 0, std::move(data)); }
  void exit(std::int32_t code) { end(SF_EXIT_EXITED, code, 0); }
  void signaled(std::int32_t signal) { end(SF_EXIT_SIGNALED, 0, signal); }
  void end(std::uint32_t outcome, std::int32_t code, std::int32_t signal) {
    if (ended_.exchange(true)) return;
    drop_timer();
    stream_->push_call([told = told_, outcome, code, signal] {
      const sf_exit e{sizeof e, outcome, 0, code, signal, 0, 0};
      told.on_exit(told.ctx, &e);
    });
    stream_->finish();
  }
  // It cannot run at all.
  void refuse(Failure failure) {
    if (ended_.exchange(true)) return;
    drop_timer();
    stream_->finish(std::move(failure));
  }
  bool ended() const { return ended_; }

  // For the service.
  static std::string line_of(const sf_command& command) {
    if (command.shell.ptr != nullptr) return text(command.shell);
    std::string words;
    for (std::size_t i = 0; i < command.argc; ++i)
      words += (i > 0 ? " " : "") + text(command.argv[i]);
    return words;
  }
  static std::shared_ptr<Invocation> create(Lane& lane, const sf_command& command,
                                            const sf_stream_events& io,
                                            const sf_process_events& told, sf_process** out) {
    std::shared_ptr<Invocation> made(new Invocation(lane, command, told));
    auto& stream = *(made->stream_ = Stream::create(lane, io, command.window));
    // The stream drops these when it is over.
    stream.on_write = [made](std::string_view data, std::uint32_t) {
      if (made->on_input) made->on_input(data);
      return data.size();
    };
    stream.on_shutdown = [made] {
      if (made->on_input_end) made->on_input_end();
    };
    stream.on_cancel = [made] {
      if (made->on_cancel) return made->on_cancel();
      made->end(SF_EXIT_CANCELLED, 0, 0);
    };
    if (command.timeout_ms > 0) {
      made->timer_ = lane.loop().after(std::chrono::milliseconds(command.timeout_ms),
                                       [made] { made->end(SF_EXIT_TIMED_OUT, 0, 0); });
    }
    *out = new Handle(made);
    return made;
  }

 private:
  struct Handle : Process {
    std::shared_ptr<Invocation> of;
    explicit Handle(std::shared_ptr<Invocation> what) : of(std::move(what)) {
      static constexpr sf_process_vtbl functions = {
          sizeof(sf_process_vtbl),
          [](sf_process* p) noexcept -> sf_stream* {
            return static_cast<Handle*>(p)->of->stream_.get();
          },
          [](sf_process* p, std::int32_t signal, std::uint32_t scope, sf_completion done,
             sf_op** op, const sf_error_sink* err) noexcept -> sf_status {
            Invocation& me = *static_cast<Handle*>(p)->of;
            if (me.ended_) return testing::refuse(err, SF_GONE, "the process has ended");
            me.on_signal ? me.on_signal(signal, scope) : me.signaled(signal);
            Op::give(op, nullptr);
            me.lane_.complete(done);
            return SF_OK;
          },
          [](sf_process* p) noexcept {
            auto* me = static_cast<Handle*>(p);
            sf_stream* stream = me->of->stream_.get();
            stream->vtbl->release(stream);
            delete me;
          }};
      vtbl = &functions;
    }
  };

  Invocation(Lane& lane, const sf_command& command, const sf_process_events& told)
      : lane_(lane), told_(told) {
    line = line_of(command);
    shell = text(command.shell);
    if (command.shell.ptr == nullptr) {
      for (std::size_t i = 0; i < command.argc; ++i)
        argv.push_back(text(command.argv[i]));
    }
    env = environment_of(command);
    cwd = text(command.cwd);
    user = text(command.user);
    has_input = command.stdin_mode == SF_STDIN_PIPE;
    timeout_ms = command.timeout_ms;
    lane_.retain();
  }

 public:
  ~Invocation() { lane_.release(); }
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

 private:
  void drop_timer() {
    if (timer_ != 0) lane_.loop().drop_timer(timer_);
  }

  Lane& lane_;
  const sf_process_events told_;
  std::shared_ptr<Stream> stream_;
  std::uint64_t timer_ = 0;
  std::atomic<bool> ended_{false};
};

/*
 * Answers each command by the first unused line of the script that fits. A command that none fits
 * ends in SF_INTERNAL without having started, and is listed by unexpected(). Set handler to answer
 * by code: it gets every command, on its lane. Set real to run them on this machine.
 */
class ProcessService : public sf_process_service {
 public:
  std::function<void(const std::shared_ptr<Invocation>&)> handler;
  bool real = false;

  // What the command line must be: Invocation::line.
  void expect(std::string line, std::int32_t code = 0, std::string out = {}, std::string err = {}) {
    const std::lock_guard lock(mutex_);
    script_.push_back({std::move(line), code, std::move(out), std::move(err)});
  }
  // Every command so far, in its order.
  std::vector<std::string> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }
  std::vector<std::string> unexpected() const {
    const std::lock_guard lock(mutex_);
    return unexpected_;
  }
  std::vector<std::string> unused() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> lines;
    for (const Rule& rule : script_)
      lines.push_back(rule.line);
    return lines;
  }

  // The functions are the host's.
  ProcessService() : sf_process_service{} { struct_size = sizeof(sf_process_service); }
  sf_status start(Lane& lane, const sf_command& command, const sf_stream_events& io,
                  const sf_process_events& told, sf_process** out, const sf_error_sink* err,
                  const std::string* group = nullptr) {
    const std::lock_guard lock(mutex_);
    if (group != nullptr && groups_.count(*group) == 0)
      return testing::refuse(err, SF_CONFLICT, "the group of the command is not open");
    commands_.push_back(Invocation::line_of(command));
    std::function<void()> end;
    if (real && !handler) {
      std::thread thread;
      const sf_status status = RealProcess::start(lane, command, io, told, out, thread, end, err);
      if (thread.joinable()) threads_.push_back(std::move(thread));
      if (status != SF_OK) return status;
    } else {
      const auto invocation = Invocation::create(lane, command, io, told, out);
      lane.post([this, invocation] { handler ? handler(invocation) : play(*invocation); });
      end = [weak = std::weak_ptr<Invocation>(invocation)] {
        if (const auto running = weak.lock()) running->signaled(SIGTERM);
      };
    }
    if (group != nullptr && end) groups_[*group].push_back(std::move(end));
    return SF_OK;
  }
  void open(const std::string& name) {
    const std::lock_guard lock(mutex_);
    groups_[name];
  }
  void end(Lane& lane, const std::string& name, sf_completion done) {
    std::vector<std::function<void()>> ends;
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = groups_.find(name); found != groups_.end()) {
        ends = std::move(found->second);
        groups_.erase(found);
      }
    }
    lane.post([ends = std::move(ends)] {
      for (const auto& end : ends)
        end();
    });
    lane.complete(done);
  }
  // Groups of commands that may run, in the order of their names.
  std::vector<std::string> open_groups() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, ends] : groups_)
      names.push_back(name);
    return names;
  }

  // Moves the threads of running commands to whoever joins them.
  void take_threads(std::vector<std::thread>& to) {
    const std::lock_guard lock(mutex_);
    for (auto& thread : threads_)
      to.push_back(std::move(thread));
    threads_.clear();
  }

 private:
  struct Rule {
    std::string line;
    std::int32_t code;
    std::string out;
    std::string err;
  };

  void play(Invocation& invocation) {
    const std::lock_guard lock(mutex_);
    const std::string& line = invocation.line;
    const auto fits = std::find_if(script_.begin(), script_.end(),
                                   [&](const Rule& rule) { return rule.line == line; });
    if (fits == script_.end()) {
      unexpected_.push_back(line);
      invocation.refuse(Failure(SF_INTERNAL, "the test expects no command " + line));
      return;
    }
    const Rule rule = *fits;
    script_.erase(fits);
    invocation.started();
    invocation.out(rule.out);
    invocation.err(rule.err);
    invocation.exit(rule.code);
  }

  mutable std::mutex mutex_;
  std::vector<Rule> script_;
  std::vector<std::string> commands_;
  std::vector<std::string> unexpected_;
  std::vector<std::thread> threads_;
  std::map<std::string, std::vector<std::function<void()>>> groups_;  // how to end what runs
};

}  // namespace sandforge::testing
