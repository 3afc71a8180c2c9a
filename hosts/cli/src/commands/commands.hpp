// The subcommands. Each answers with the exit code; errors are thrown.
#pragma once

#include "app.hpp"

namespace sandforge::cli {

int run_command(App& app, const RunArguments& arguments);
int start_command(App& app, const StartArguments& arguments);
int exec_command(App& app, const ExecArguments& arguments);
int copy_command(App& app, const CopyArguments& arguments);
int ps_command(App& app, const PsArguments& arguments);
int logs_command(App& app, const LogsArguments& arguments);
int kill_command(App& app, const KillArguments& arguments);
int stop_command(App& app, const StopArguments& arguments);
int remove_command(App& app, const RemoveArguments& arguments);
int snapshot_command(App& app, const SnapshotArguments& arguments);
int build_command(App& app, const BuildArguments& arguments);
int gc_command(App& app, const GcArguments& arguments);
int providers_command(App& app, const ProvidersArguments& arguments);
int describe_command(App& app, const DescribeArguments& arguments);
int settings_command(App& app, const SettingsArguments& arguments);
int config_check_command(App& app, const ConfigCheckArguments& arguments);
int conformance_command(App& app, const ConformanceArguments& arguments);
int plugins_doctor_command(App& app, const PluginsDoctorArguments& arguments);
int fault_proxy_command(App& app, const FaultProxyArguments& arguments);
int new_command(App& app, const NewArguments& arguments);

}  // namespace sandforge::cli
