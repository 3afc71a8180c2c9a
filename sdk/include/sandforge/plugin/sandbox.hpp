// Sandbox: the class that an author derives one sandbox from.
#pragma once

#include "files.hpp"
#include "process.hpp"
#include "sandbox_parts.hpp"

namespace sandforge::plugin {

/*
 * One sandbox, unstarted at first. Style is Blocking (Sandbox, below) or Coroutine (CoSandbox in
 * coroutine.hpp); Result<T> is T or Task<T>. Every function may throw, an Error for choice.
 *
 * An override of the accessor of a part declares the capability; it returns the same pointer all
 * the time, often this.
 */
template <class Style>
class BasicSandbox : public SandboxBase {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;

  /*
   * Finds and connects the machine, or creates it. Only Code::not_found and Code::gone of the
   * provider's own look-up mean that it is absent: any other failure is an error, never a second
   * machine. Call starting.identify as soon as the machine exists. May be called again after an
   * error, and after stop.
   */
  virtual Result<Started> start(Starting& starting) = 0;
  // Stops the machine so that start can go on. What is stopped already succeeds.
  virtual Result<void> stop(StopToken stop) = 0;
  // Removes the machine, found by the session id or the provider's id, also when this object never
  // started. What is gone succeeds. Never removes a checkpoint.
  virtual Result<void> destroy(StopToken stop) = 0;

  // Looks, starts nothing.
  virtual Result<SandboxInfo> info(StopToken) { return Style::ready(SandboxInfo()); }
  // The default text that tells an agent where it works.
  virtual Result<std::string> instructions(StopToken) {
    return Style::ready(std::string("Commands run in a sandbox of their own."));
  }

  /*
   * Runs a command to its end: output through io, and how it ended as the result. Say io.started
   * first. A refused command throws before it: Code::not_found for a missing cwd, Code::gone when
   * the machine no longer exists, Code::conflict when it is stopped. The layer enforces the time
   * limit by a stop; end the whole tree then.
   */
  virtual Result<Exit> run(Command command, ProcessIo io) {
    static_cast<void>(command);
    static_cast<void>(io);
    throw Error(Code::unsupported, "this sandbox runs no commands");
  }

  /*
   * Takes a command, on the lane: within a millisecond, without blocking. Override it instead of
   * run to pass commands on (spawn.delegate) or to answer by callbacks (spawn.accept).
   */
  virtual void spawn(Spawn& spawn) {
    spawn.accept(
        [this, keep = detail::Ref<Object>(*this), command = spawn.command()](const ProcessIo& io) {
          Style::template launch<Exit>(
              lane(), io.stop(), [this, keep, command, io] { return run(command, io); },
              [io](const std::exception_ptr& error, Exit* exit) { io.settle(error, exit); });
        });
  }

  virtual BasicProcesses<Style>* processes() { return nullptr; }
  virtual BasicFiles<Style>* files() { return nullptr; }
  virtual BasicPorts<Style>* ports() { return nullptr; }
  virtual BasicMetrics<Style>* metrics() { return nullptr; }
  virtual BasicLifetime<Style>* lifetime() { return nullptr; }
  virtual BasicSnapshots<Style>* snapshots() { return nullptr; }
  // True: commands may have a terminal, and ProcessIo::on_resize hears of its size.
  virtual bool pty() { return false; }

  void* part(Part which) final {
    switch (which) {
      case Part::processes:
        return processes();
      case Part::files:
        return files();
      case Part::ports:
        return ports();
      case Part::metrics:
        return metrics();
      case Part::lifetime:
        return lifetime();
      case Part::snapshots:
        return snapshots();
      default:
        return nullptr;
    }
  }

  // An override answers tables of its own, for handles whose object it finds by SandboxBase::of.
  const void* extension(std::string_view id) override {
    if (id == SF_EXT_PROCESSES && processes() != nullptr) return &detail::processes_table<Style>();
    if (id == SF_EXT_FILES && files() != nullptr) return detail::files_table<Style>(*files());
    if (id == SF_EXT_PORTS && ports() != nullptr) return detail::ports_table<Style>(*ports());
    if (id == SF_EXT_METRICS && metrics() != nullptr) return &detail::metrics_table<Style>();
    if (id == SF_EXT_LIFETIME && lifetime() != nullptr) {
      return detail::lifetime_table<Style>(*lifetime());
    }
    if (id == SF_EXT_SNAPSHOT && snapshots() != nullptr) return &detail::snapshot_table<Style>();
    if (id == SF_EXT_PTY && pty()) return &detail::pty_table();
    return nullptr;
  }

  const sf_sandbox_vtbl& table() const noexcept final {
    static constexpr sf_sandbox_vtbl functions = {
        sizeof(sf_sandbox_vtbl), do_start, do_stop,      do_destroy, do_info,
        do_instructions,         do_spawn, do_extension, do_release};
    return functions;
  }

 private:
  using Me = detail::Ref<BasicSandbox>;
  static Me me(sf_sandbox* self) { return Me(static_cast<BasicSandbox&>(of(self))); }

  static sf_status do_start(sf_sandbox* self, const sf_start_request* request,
                            const sf_start_events* events, sf_op** op,
                            const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      const auto starting = std::make_shared<Starting>(of(self).lane(), *request, *events);
      detail::operate<Style, Started>(
          of(self).lane(), op,
          [box = me(self), starting](StopToken stop) {
            starting->bind(std::move(stop));
            return box->start(*starting);
          },
          [starting](const sf_error* e, Started* started) { starting->end(e, started); });
    });
  }
  static sf_status do_stop(sf_sandbox* self, sf_completion done, sf_op** op,
                           const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      detail::operate_void<Style>(of(self).lane(), done, op,
                                  [box = me(self)](StopToken stop) { return box->stop(stop); });
    });
  }
  static sf_status do_destroy(sf_sandbox* self, sf_completion done, sf_op** op,
                              const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      detail::operate_void<Style>(of(self).lane(), done, op,
                                  [box = me(self)](StopToken stop) { return box->destroy(stop); });
    });
  }
  static sf_status do_info(sf_sandbox* self, sf_info_completion done, sf_op** op,
                           const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      detail::operate<Style, SandboxInfo>(
          of(self).lane(), op, [box = me(self)](StopToken stop) { return box->info(stop); },
          [done](const sf_error* e, SandboxInfo* info) {
            if (e != nullptr) return done.done(done.ctx, e, nullptr);
            info->tell(done);
          });
    });
  }
  static sf_status do_instructions(sf_sandbox* self, sf_text_completion done, sf_op** op,
                                   const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      detail::operate<Style, std::string>(
          of(self).lane(), op, [box = me(self)](StopToken stop) { return box->instructions(stop); },
          [done](const sf_error* e, std::string* text) {
            done.done(done.ctx, e, e != nullptr ? sf_str{nullptr, 0} : to_str(*text));
          });
    });
  }
  static sf_status do_spawn(sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
                            const sf_process_events* events, sf_process** process,
                            const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      Spawn call(of(self).lane(), *command, io, events);
      const auto timeout = call.command().timeout;
      detail::take_process(call, process, timeout, [&] { me(self)->spawn(call); });
    });
  }
  static const void* do_extension(sf_sandbox* self, sf_str id) noexcept {
    const void* found = nullptr;
    detail::fence(nullptr, [&] { found = of(self).extension(view(id)); });
    return found;
  }
  static void do_release(sf_sandbox* self) noexcept { of(self).drop(); }
};

// Straight-line code that may block.
using Sandbox = BasicSandbox<Blocking>;

}  // namespace sandforge::plugin
