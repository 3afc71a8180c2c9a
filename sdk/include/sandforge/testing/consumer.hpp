// The host's end of what a plugin does: completions, streams and processes that keep what they are
// told and watch the rules.
#pragma once

#include <string>

#include "values.hpp"

namespace sandforge::testing {

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

}  // namespace sandforge::testing
