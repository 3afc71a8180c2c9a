#include "cli.hpp"

#include "commands/commands.hpp"
#include "exit_codes.hpp"

namespace sandforge::cli {
namespace {

struct Dispatch {
  App& app;
  int operator()(const RunArguments& a) const { return run_command(app, a); }
  int operator()(const StartArguments& a) const { return start_command(app, a); }
  int operator()(const ExecArguments& a) const { return exec_command(app, a); }
  int operator()(const PsArguments& a) const { return ps_command(app, a); }
  int operator()(const StopArguments& a) const { return stop_command(app, a); }
  int operator()(const RemoveArguments& a) const { return remove_command(app, a); }
  int operator()(const ProvidersArguments& a) const { return providers_command(app, a); }
  int operator()(const DescribeArguments& a) const { return describe_command(app, a); }
  int operator()(const SettingsArguments& a) const { return settings_command(app, a); }
  int operator()(const ConfigCheckArguments& a) const { return config_check_command(app, a); }
  int operator()(const PluginsDoctorArguments& a) const { return plugins_doctor_command(app, a); }
};

int dispatch(App& app, const Subcommand& subcommand) {
  try {
    return std::visit(Dispatch{app}, subcommand);
  } catch (const Exception& failure) {
    app.terminal().error(failure.error());
  } catch (const std::exception& failure) {
    app.terminal().error(Error(Status::internal, failure.what(), "cli.internal"));
  }
  const int caught = app.interrupts().caught();
  return caught != 0 ? kSignalBase + caught : kFailure;
}

}  // namespace

int cli_main(const std::vector<std::string>& words, std::vector<ProviderDefinition> providers) {
  const auto parsed = parse_arguments(words);
  if (!parsed.line) {
    write_all(2, parsed.err);
    return write_all(1, parsed.out) ? parsed.exit_code : kBrokenPipe;
  }
  const Terminal terminal(parsed.line->global.json);
  try {
    App app(parsed.line->global, std::move(providers));
    return dispatch(app, parsed.line->subcommand);
  } catch (const Exception& failure) {
    terminal.error(failure.error());
  } catch (const std::exception& failure) {
    terminal.error(Error(Status::internal, failure.what(), "cli.internal"));
  }
  return kFailure;
}

}  // namespace sandforge::cli
