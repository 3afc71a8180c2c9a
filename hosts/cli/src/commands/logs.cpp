#include <algorithm>
#include <array>

#include "commands/commands.hpp"
#include "commands/processes.hpp"
#include "exit_codes.hpp"
#include "foreground.hpp"
#include "sandforge/support/encoding.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::cli {
namespace {

// Of a look: what was kept when it began may be dropped before it was read, and then never comes.
constexpr std::chrono::seconds kPatience{30};

// What of a process is to be shown: all that comes, or what was kept when it was looked for.
class Share {
 public:
  Share(std::shared_ptr<OutputInbox> inbox, const ProcessInfo& process, OutputCursor from, bool all)
      : inbox_(std::move(inbox)),
        all_(all),
        left_{left(process.first.out, process.next.out, from.out),
              left(process.first.err, process.next.err, from.err)} {}

  bool nothing() const { return !all_ && left_[0] == 0 && left_[1] == 0; }
  void take(int descriptor, std::string_view data) {
    auto& left = left_[descriptor == 1 ? 0 : 1];
    if (!all_) data = data.substr(0, std::min<std::uint64_t>(left, data.size()));
    left -= std::min<std::uint64_t>(left, data.size());
    if (!data.empty()) inbox_->put(descriptor, data);
    if (nothing()) inbox_->over();
  }

 private:
  static std::uint64_t left(std::uint64_t first, std::uint64_t next, std::uint64_t from) {
    const auto begin = std::max(first, from);
    return next > begin ? next - begin : 0;
  }

  const std::shared_ptr<OutputInbox> inbox_;
  const bool all_;
  std::array<std::uint64_t, 2> left_;
};

std::shared_ptr<Process> attach(Sandbox& sandbox, const LogsArguments& arguments,
                                const std::shared_ptr<OutputInbox>& inbox,
                                const std::shared_ptr<Share>& share) {
  AttachOptions options;
  options.from = arguments.from;
  options.manual_credit = true;
  options.window = OutputInbox::kWindow;
  options.max_retained_bytes = 0;
  options.on_stdout = [share](std::string_view data) { share->take(1, data); };
  options.on_stderr = [share](std::string_view data) { share->take(2, data); };
  auto process = sandbox.attach_process(ProcessId(arguments.process), std::move(options));
  if (!process) throw_no_process(arguments.session, arguments.process);
  process->async_wait({},
                      [inbox](Result<CommandResult> result) { inbox->ended(std::move(result)); });
  return process;
}

// However the process ended, its output is whole; but not where the reader lost its connection.
void tell_of_end(App& app, OutputInbox& inbox) {
  if (inbox.gave_up())
    app.terminal().note(
        "the rest was dropped before it could be read: newer output took its place");
  const auto ended = inbox.result();
  if (!ended || !ended->error) return;
  const Outcome outcome = ended->outcome;
  if (outcome == Outcome::transport_lost || outcome == Outcome::crashed ||
      outcome == Outcome::unknown)
    throw_error(*ended->error);
}

void set_output(json::Object& to, const std::string& name, const std::string& bytes) {
  to.set(name, to_valid_utf8(bytes));
  if (!is_valid_utf8(bytes)) to.set(name + "Base64", base64_encode(bytes));
}

int print_document(App& app, const LogsArguments& arguments, const ProcessInfo& process,
                   OutputInbox& inbox, Process* reader) {
  std::string out, err;
  while (auto chunk = inbox.next()) {
    (chunk->descriptor == 1 ? out : err) += chunk->data;
    if (reader != nullptr) reader->grant(chunk->data.size());
  }
  tell_of_end(app, inbox);
  if (app.interrupts().caught() != 0) return kSignalBase + app.interrupts().caught();
  json::Object next, answer;
  next.set("out", process.next.out);
  next.set("err", process.next.err);
  answer.set("session", arguments.session);
  answer.set("process", arguments.process);
  answer.set("running", process.running);
  if (process.exit && process.exit->code) answer.set("exitCode", *process.exit->code);
  answer.set("next", std::move(next));
  set_output(answer, "stdout", out);
  set_output(answer, "stderr", err);
  return app.terminal().exit_code_after(app.terminal().print_json(answer));
}

}  // namespace

int logs_command(App& app, const LogsArguments& arguments) {
  const auto sandbox = running_sandbox(app, arguments.session);
  if (!sandbox) throw_no_process(arguments.session, arguments.process);
  const auto found = listed_process(*sandbox, arguments.session, arguments.process);

  const auto inbox = std::make_shared<OutputInbox>();
  const auto share = std::make_shared<Share>(inbox, found, arguments.from, arguments.follow);
  const std::stop_callback interrupted(app.interrupts().token(), [inbox] { inbox->over(); });
  std::shared_ptr<Process> process;
  if (share->nothing()) {
    inbox->over();
  } else {
    process = attach(*sandbox, arguments, inbox, share);
  }
  if (!arguments.follow) inbox->be_patient_for(kPatience);
  if (app.terminal().json()) return print_document(app, arguments, found, *inbox, process.get());
  if (!process) return kOk;

  ForegroundResult shown;
  std::stop_source stop;
  const std::stop_callback stopped(stop.get_token(), [inbox] { inbox->over(); });
  write_output(*inbox, *process, app.terminal(), stop, shown);
  if (app.interrupts().caught() != 0) return kSignalBase + app.interrupts().caught();
  if (shown.broken_pipe) return kBrokenPipe;
  if (shown.output_error) throw_error(*shown.output_error);
  tell_of_end(app, *inbox);
  return kOk;
}

}  // namespace sandforge::cli
