#include "cli.hpp"

#include <system_error>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"

namespace sandforge::cli {
namespace {

struct Dispatch {
  App& app;
  int operator()(const RunArguments& a) const { return run_command(app, a); }
  int operator()(const StartArguments& a) const { return start_command(app, a); }
  int operator()(const ExecArguments& a) const { return exec_command(app, a); }
  int operator()(const CopyArguments& a) const { return copy_command(app, a); }
  int operator()(const PsArguments& a) const { return ps_command(app, a); }
  int operator()(const LogsArguments& a) const { return logs_command(app, a); }
  int operator()(const KillArguments& a) const { return kill_command(app, a); }
  int operator()(const StopArguments& a) const { return stop_command(app, a); }
  int operator()(const RemoveArguments& a) const { return remove_command(app, a); }
  int operator()(const SnapshotArguments& a) const { return snapshot_command(app, a); }
  int operator()(const BuildArguments& a) const { return build_command(app, a); }
  int operator()(const GcArguments& a) const { return gc_command(app, a); }
  int operator()(const ProvidersArguments& a) const { return providers_command(app, a); }
  int operator()(const DescribeArguments& a) const { return describe_command(app, a); }
  int operator()(const SettingsArguments& a) const { return settings_command(app, a); }
  int operator()(const ConfigCheckArguments& a) const { return config_check_command(app, a); }
  int operator()(const PluginsDoctorArguments& a) const { return plugins_doctor_command(app, a); }
  int operator()(const ConformanceArguments& a) const { return conformance_command(app, a); }
  int operator()(const FaultProxyArguments& a) const { return fault_proxy_command(app, a); }
  int operator()(const NewArguments& a) const { return new_command(app, a); }
};

// Of what nobody expected, but for a thread of our own that could not be made.
Error internal_error(const std::exception& failure) {
  const auto* system = dynamic_cast<const std::system_error*>(&failure);
  if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
    return Error(Status::unavailable, "no thread could be made: the limit of processes is reached",
                 "runtime.no_thread");
  return Error(Status::internal, failure.what(), "cli.internal");
}

int dispatch(App& app, const Subcommand& subcommand) {
  try {
    const int code = std::visit(Dispatch{app}, subcommand);
    // One that could not tell what it did, because nobody reads, was interrupted all the same.
    return code == kFailure && app.interrupts().caught() != 0
               ? kSignalBase + app.interrupts().caught()
               : code;
  } catch (const Exception& failure) {
    app.terminal().error(failure.error());
    return failure_code(app, failure.error());
  } catch (const std::exception& failure) {
    const auto error = internal_error(failure);
    app.terminal().error(error);
    return failure_code(app, error);
  }
}

}  // namespace

int cli_main(const std::vector<std::string>& words, std::vector<ProviderDefinition> providers) {
  auto parsed = parse_arguments(words);
  if (!parsed.line) {
    const Terminal terminal(false);
    terminal.pass_on(2, parsed.err);
    const int output = terminal.exit_code_after(terminal.print(parsed.out));
    return output != kOk ? output : parsed.exit_code;
  }
  const Terminal terminal(parsed.line->global.json);
  auto& global = parsed.line->global;
  // Its report says of each plugin what the log would say once more.
  if (std::holds_alternative<PluginsDoctorArguments>(parsed.line->subcommand) && !global.log_level)
    global.log_level = LogLevel::off;
  try {
    App app(global, std::move(providers));
    return dispatch(app, parsed.line->subcommand);
  } catch (const Exception& failure) {
    terminal.error(failure.error());
  } catch (const std::exception& failure) {
    terminal.error(internal_error(failure));
  }
  return kFailure;
}

}  // namespace sandforge::cli
