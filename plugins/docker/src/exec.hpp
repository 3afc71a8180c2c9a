// Commands in a container, by the engine's execs.
#pragma once

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/wire/docker/frames.hpp>
#include <sandforge/wire/docker/messages.hpp>

#include "engine.hpp"

namespace sandforge::docker {

// Where a command runs.
class ExecPlace {
 public:
  ExecPlace() {}
  std::string container;
  std::string directory;  // where a command names none, and what its relative one is below
  std::string user;       // empty: the container's
};

/*
 * One command, from the request to the end of its tree. Shared by its coroutines, all of them on
 * the lane of the engine.
 *
 * The engine has no call that ends an exec, and says of its end no more than a number. So a small
 * script becomes the command and tells its process id first; helpers in the container signal its
 * session and whatever carries its mark. Exit codes from 129 on whose remainder is a signal that
 * ends a process read as that signal: for the engine both are one number.
 */
class Exec : public std::enable_shared_from_this<Exec> {
 public:
  // keep: lives as long as this does, such as the sandbox with its engine.
  Exec(Engine& engine, ExecPlace place, plugin::Command command, plugin::ProcessIo io,
       std::shared_ptr<void> keep);

  // Runs it to its end. A stop of io ends the tree first: terminate, the grace, kill.
  Task<plugin::Exit> run();
  // Whether its process was there, as far as is known.
  bool started() const noexcept { return started_; }
  // The machine is ended on purpose, and with it this command.
  void machine_ends() noexcept { machine_ends_ = true; }

  // Runs a small command and answers its exit code; its output is dropped. Bounded in time.
  static Task<std::int64_t> run_helper(Engine& engine, std::string container, std::string user,
                                       std::vector<std::string> words);

 private:
  static Task<plugin::Exit> drive(std::shared_ptr<Exec> me);
  static Task<void> pump(std::shared_ptr<Exec> me);
  static Task<void> pump_some(std::shared_ptr<Exec> me);
  static Task<void> feed(std::shared_ptr<Exec> me);
  static Task<void> watch(std::shared_ptr<Exec> me);
  static Task<void> try_keep_output(std::shared_ptr<Exec> me);
  static Task<void> keep_output(std::shared_ptr<Exec> me);
  static Task<void> end_tree(std::shared_ptr<Exec> me);
  static Task<void> signal_tree(std::shared_ptr<Exec> me, std::int32_t number, int rounds);
  static Task<void> deliver(std::shared_ptr<Exec> me, std::string data, std::uint32_t channel);
  static Task<plugin::Exit> exit_of(std::shared_ptr<Exec> me);
  static Task<plugin::Exit> missing_exit(std::shared_ptr<Exec> me,
                                         std::optional<std::int64_t> code);
  static Task<std::optional<wire::ExecInfo>> look(std::shared_ptr<Exec> me);
  static Task<void> refuse_start(std::shared_ptr<Exec> me);
  static Task<void> refuse_sent(std::shared_ptr<Exec> me, HttpAnswer answer);
  static Task<void> signal(std::shared_ptr<Exec> me, std::int32_t number,
                           plugin::SignalScope scope);

  wire::ExecRequest request() const;
  void take_piece(const wire::FramePiece& piece);
  void take_first_line();
  bool take_line(std::string_view line);
  void tell_started();
  void give_up_line();
  void begin_end();
  void answer_signal(std::int32_t number, plugin::SignalScope scope, plugin::Reply reply);
  plugin::Exit exit_from(std::int64_t code) const;
  std::string mark() const;

  Engine& engine_;
  const plugin::Lane lane_;
  const ExecPlace place_;
  const plugin::Command command_;
  const plugin::ProcessIo io_;
  const std::shared_ptr<void> keep_;
  const std::string nonce_;
  std::string exec_id_;
  std::optional<HttpStream> stream_;
  wire::Demultiplexer frames_;

  // A line of stderr is the script's; what comes before it may be an engine's word that nothing was
  // started, or a shell's warning, and waits.
  bool has_line_ = false;  // it came, or is waited for no longer
  bool started_ = false;
  std::string process_;  // its id in the container; empty: not known yet
  std::string out_pipe_, err_pipe_;
  std::string refusal_;  // why the script started nothing
  std::string first_err_, first_out_;
  std::size_t looked_at_ = 0;  // of first_err_: whole lines that are not the script's
  std::string ready_out_, ready_err_;

  std::uint64_t received_ = 0;
  bool waits_for_credit_ = false;
  int naps_without_credit_ = 0;
  bool pipes_held_ = false;
  bool machine_ends_ = false;
  bool ending_ = false;
  bool unconfirmed_ = false;
  std::exception_ptr lost_;
  std::vector<std::int32_t> sent_;  // signals of ours
  plugin::StopSource over_;         // the output has ended
  plugin::StopSource ended_;        // and the tree, where that was asked for
};

// A word for printf %b that has no byte outside of ASCII and no special character.
std::string printf_word(std::string_view bytes);
// A new nonce: 32 hexadecimal digits.
std::string make_nonce();
// What a container that takes no command is: gone, stopped, or refusing for the reason of `answer`.
Task<void> refuse_by_state(Engine& engine, std::string container, HttpAnswer answer,
                           std::string what);

}  // namespace sandforge::docker
