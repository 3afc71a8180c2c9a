// Drives a plugin over the bare boundary, as a host would, and checks the rules on the way.
#pragma once

#include <optional>

#include "fake_host.hpp"

namespace sandforge::fake {

// The end of an operation, counted.
struct Result {
  int done = 0;
  Failure failure;
  std::string text;
};
inline sf_completion completion(Result& result) {
  return {&result, [](void* ctx, const sf_error* error) noexcept {
            auto& r = *static_cast<Result*>(ctx);
            ++r.done;
            r.failure = Failure::copy(error);
          }};
}
inline sf_text_completion text_completion(Result& result) {
  return {&result, [](void* ctx, const sf_error* error, sf_str value) noexcept {
            auto& r = *static_cast<Result*>(ctx);
            ++r.done;
            r.failure = Failure::copy(error);
            r.text = text(value);
          }};
}
inline sf_error_sink sink(Failure& failure) {
  return {&failure, [](void* ctx, const sf_error* error) noexcept {
            *static_cast<Failure*>(ctx) = Failure::copy(error);
          }};
}

// A consumer of a stream. Grants what it was given, unless it is told not to.
struct Consumer {
  sf_stream* stream = nullptr;
  bool grant_back = true;
  std::uint64_t granted = 0;  // in all; more than this must never arrive
  std::string out;
  std::string err;
  std::vector<std::string> messages;
  int done = 0;
  int writable = 0;
  bool overdrawn = false;
  bool after_done = false;
  Failure failure;
  sf_stream_end end{};

  explicit Consumer(std::uint64_t window) : granted(window) {}

  sf_stream_events events() {
    return {sizeof(sf_stream_events), this,
            [](void* ctx, std::uint32_t channel, std::uint32_t flags, sf_bytes data) noexcept {
              auto& me = *static_cast<Consumer*>(ctx);
              me.after_done = me.after_done || me.done > 0;
              (channel == SF_CHANNEL_STDERR ? me.err : me.out) += text(data);
              if ((flags & (SF_DATA_TEXT | SF_DATA_BINARY)) != 0) {
                me.partial += text(data);
                if ((flags & SF_DATA_END) != 0) {
                  me.messages.push_back(std::exchange(me.partial, {}));
                }
              }
              me.overdrawn = me.overdrawn || me.out.size() + me.err.size() > me.granted;
              if (me.grant_back) me.grant(data.len);
            },
            [](void* ctx) noexcept { ++static_cast<Consumer*>(ctx)->writable; },
            [](void* ctx, const sf_error* error, const sf_stream_end* e) noexcept {
              auto& me = *static_cast<Consumer*>(ctx);
              ++me.done;
              me.failure = Failure::copy(error);
              if (e != nullptr) me.end = *e;
            }};
  }
  void grant(std::uint64_t n) {
    granted += n;
    if (stream != nullptr) stream->vtbl->grant(stream, n);
  }
  bool rules_kept() const {
    return done <= 1 && !overdrawn && !after_done && out.size() + err.size() <= granted;
  }

 private:
  std::string partial;
};

// A consumer with the events of a process.
struct Running : Consumer {
  using Consumer::Consumer;
  sf_process* process = nullptr;
  int started = 0;
  std::string id;
  std::int64_t pid = 0;
  int exited = 0;
  sf_exit exit{};
  bool disorder = false;  // output before the start, or a second start or exit

  sf_process_events process_events() {
    return {sizeof(sf_process_events), this,
            [](void* ctx, const sf_process_started* s) noexcept {
              auto& me = *static_cast<Running*>(ctx);
              me.disorder = me.disorder || ++me.started > 1 || !me.out.empty() || me.done > 0;
              me.id = text(s->id);
              me.pid = s->pid;
            },
            [](void* ctx, const sf_exit* e) noexcept {
              auto& me = *static_cast<Running*>(ctx);
              me.disorder = me.disorder || ++me.exited > 1 || me.done > 0;
              me.exit = *e;
            }};
  }
  void took(sf_process* given) {
    process = given;
    stream = given->vtbl->stream(given);
  }
  void release() {
    stream = nullptr;
    sf_process* held = std::exchange(process, nullptr);
    held->vtbl->release(held);
  }
};

// What a test says about a command.
struct CommandLine {
  std::vector<std::string> argv;
  std::string shell;
  std::string cwd;
  std::vector<std::pair<std::string, std::string>> env;
  std::uint64_t window = 1 << 16;
  std::uint32_t stdin_mode = SF_STDIN_EOF;
  std::uint64_t timeout_ms = 0;

  // Borrows from this object, which must stay where it is.
  sf_command view() {
    argv_.clear();
    env_.clear();
    for (const auto& one : argv)
      argv_.push_back(bytes(one));
    for (const auto& [name, value] : env)
      env_.push_back({bytes(name), bytes(value)});
    sf_command c{};
    c.struct_size = sizeof c;
    if (!shell.empty()) c.shell = bytes(shell);
    c.argv = argv_.data();
    c.argc = argv_.size();
    c.env = env_.data();
    c.env_count = env_.size();
    if (!cwd.empty()) c.cwd = bytes(cwd);
    c.stdin_mode = stdin_mode;
    c.timeout_ms = timeout_ms;
    c.window = window;
    return c;
  }

 private:
  std::vector<sf_bytes> argv_;
  std::vector<sf_env_entry> env_;
};

// A context of fixed values. Repository access answers what the test puts in.
class Context : public sf_context {
 public:
  std::string session_id = "session-1";
  std::string sandbox_id;
  std::string working_directory;
  std::string repo_full_name;
  std::string clone_url;
  std::string token;
  std::string head;
  std::atomic<int> refs{1};

  Context() {
    static constexpr sf_context_vtbl functions = {
        sizeof(sf_context_vtbl),
        [](sf_context* c) noexcept { ++of(c).refs; },
        [](sf_context* c) noexcept { --of(c).refs; },
        [](sf_context* c) noexcept -> const sf_context_fields* { return of(c).fill(); },
        [](sf_context* c, sf_lane* lane, std::uint32_t index, sf_access_completion done, sf_op** op,
           const sf_error_sink* err) noexcept {
          if (of(c).clone_url.empty() || index > 0)
            return refuse(err, SF_NOT_FOUND, "no repository");
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c] {
            const sf_repository_access access{sizeof access, str(of(c).clone_url), str("bearer"),
                                              str(of(c).token), str("git")};
            done.done(done.ctx, nullptr, &access);
          });
          return sf_status{SF_OK};
        },
        [](sf_context* c, sf_lane* lane, sf_str, sf_str, sf_text_completion done, sf_op** op,
           const sf_error_sink*) noexcept {
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c] {
            const bool none = of(c).head.empty();
            done.done(done.ctx, nullptr, none ? sf_str{nullptr, 0} : str(of(c).head));
          });
          return sf_status{SF_OK};
        }};
    vtbl = &functions;
  }

 private:
  static Context& of(sf_context* c) { return *static_cast<Context*>(c); }
  static sf_str maybe(const std::string& v) { return v.empty() ? sf_str{nullptr, 0} : str(v); }
  const sf_context_fields* fill() {
    fields_ = {};
    fields_.struct_size = sizeof fields_;
    fields_.session_id = maybe(session_id);
    fields_.sandbox_id = maybe(sandbox_id);
    fields_.working_directory = maybe(working_directory);
    fields_.repo_full_name = maybe(repo_full_name);
    fields_.repo_count = clone_url.empty() ? 0 : 1;
    fields_.flags = SF_CONTEXT_SESSION | (clone_url.empty() ? 0 : SF_CONTEXT_HAS_REPOSITORY) |
                    (head.empty() ? 0 : SF_CONTEXT_HAS_RESOLVE_HEAD);
    return &fields_;
  }
  sf_context_fields fields_{};
};

// A plugin with one provider and, once created, one sandbox. Every [lane] call goes through call().
class Driver {
 public:
  Host& host;
  Lane* lane;
  const sf_plugin* plugin;
  sf_provider* provider = nullptr;
  sf_sandbox* sandbox = nullptr;

  Driver(Host& on, const sf_plugin* of) : host(on), lane(Lane::create(on.loop)), plugin(of) {}
  ~Driver() {
    release();
    lane->release();
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Runs fn on the lane and turns the loop until it has run.
  template <class Fn>
  void call(Fn fn) {
    std::atomic<bool> ran{false};
    lane->post([&] {
      fn();
      ran = true;
    });
    host.loop.run_until([&] { return ran.load(); });
  }
  template <class Done>
  bool wait(Done done) {
    return host.loop.run_until(done);
  }

  sf_status open(const std::string& name, const std::string& options, Failure& failure) {
    const sf_error_sink err = sink(failure);
    sf_status status = plugin->init(&host, &err);
    if (status != SF_OK) return status;
    call([&] {
      const sf_open_request request{sizeof request, str(name), str(options), lane};
      status = plugin->open(&request, &provider, &err);
    });
    return status;
  }

  struct Description {
    int done = 0;
    Failure failure;
    std::string schema;
    std::string describe;
  };
  Description describe() {
    Description d;
    call([&] {
      const sf_describe_completion done{
          &d, [](void* ctx, const sf_error* error, const sf_describe_result* result) noexcept {
            auto& into = *static_cast<Description*>(ctx);
            ++into.done;
            into.failure = Failure::copy(error);
            if (result == nullptr) return;
            into.schema = text(result->settings_schema);
            into.describe = text(result->describe);
          }};
      Failure failure;
      const sf_error_sink err = sink(failure);
      if (provider->vtbl->describe(provider, done, nullptr, &err) != SF_OK) {
        d.failure = failure;
        d.done = 1;
      }
    });
    wait([&] { return d.done > 0; });
    return d;
  }

  sf_status create(Context* context, const std::string& settings, Failure& failure) {
    sf_status status = SF_OK;
    call([&] {
      sf_create_request request{};
      request.struct_size = sizeof request;
      request.context = context;
      request.lane = lane;
      request.settings = str(settings);
      request.idle_timeout_ms = SF_NONE;
      const sf_error_sink err = sink(failure);
      status = provider->vtbl->create(provider, &request, &sandbox, &err);
    });
    return status;
  }

  struct Started {
    int done = 0;
    int identities = 0;
    Failure failure;
    std::uint32_t outcome = 0;
    std::string sandbox_id;
    std::string working_directory;
    std::string identity;
    bool late_identity = false;
  };
  Started start(std::vector<std::pair<std::string, std::string>> env = {}) {
    Started s;
    call([&] {
      std::vector<sf_env_entry> entries;
      for (const auto& [name, value] : env)
        entries.push_back({bytes(name), bytes(value)});
      sf_start_request request{};
      request.struct_size = sizeof request;
      request.env = entries.data();
      request.env_count = entries.size();
      request.flags = env.empty() ? 0 : SF_START_ENV_GIVEN;
      const sf_start_events events{
          sizeof events, &s,
          [](void* ctx, sf_str id) noexcept {
            auto& into = *static_cast<Started*>(ctx);
            ++into.identities;
            into.identity = text(id);
            into.late_identity = into.late_identity || into.done > 0;
          },
          [](void* ctx, const sf_error* error, const sf_start_result* result) noexcept {
            auto& into = *static_cast<Started*>(ctx);
            ++into.done;
            into.failure = Failure::copy(error);
            if (result == nullptr) return;
            into.outcome = result->outcome;
            into.sandbox_id = text(result->sandbox_id);
            into.working_directory = text(result->working_directory);
          }};
      Failure failure;
      const sf_error_sink err = sink(failure);
      if (sandbox->vtbl->start(sandbox, &request, &events, nullptr, &err) != SF_OK) {
        s.failure = failure;
        s.done = 1;
      }
    });
    wait([&] { return s.done > 0; });
    return s;
  }

  sf_status spawn(CommandLine& line, Running& running, Failure& failure) {
    sf_status status = SF_OK;
    call([&] {
      const sf_command command = line.view();
      const sf_stream_events io = running.events();
      const sf_process_events events = running.process_events();
      const sf_error_sink err = sink(failure);
      sf_process* process = nullptr;
      status = sandbox->vtbl->spawn(sandbox, &command, &io, &events, &process, &err);
      if (status == SF_OK) running.took(process);
    });
    return status;
  }

  // stop, destroy: any function of the sandbox's table that ends in a plain completion.
  template <class Member>
  Result run(Member member) {
    Result result;
    call([&] {
      Failure failure;
      const sf_error_sink err = sink(failure);
      if ((sandbox->vtbl->*member)(sandbox, completion(result), nullptr, &err) != SF_OK) {
        result.failure = failure;
        ++result.done;
      }
    });
    wait([&] { return result.done > 0; });
    return result;
  }

  void release() {
    call([&] {
      if (sandbox != nullptr) sandbox->vtbl->release(sandbox);
      if (provider != nullptr) provider->vtbl->release(provider);
      sandbox = nullptr;
      provider = nullptr;
    });
    host.loop.drain();
  }
};

}  // namespace sandforge::fake
