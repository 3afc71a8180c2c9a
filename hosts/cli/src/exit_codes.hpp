// What the program's exit code says. The table is part of --help and of hosts/cli/README.md.
#pragma once

#include "sandforge/command.hpp"

namespace sandforge::cli {

inline constexpr int kOk = 0;
inline constexpr int kProblems = 1;  // config check, plugins doctor, conformance and cp found some
inline constexpr int kUsage = 2;     // wrong command line
inline constexpr int kUnverified = 3;  // no problem was found, but not everything was looked at
inline constexpr int kTimeout = 124;   // the command took longer than --timeout
inline constexpr int kFailure = 125;   // sandforge itself failed
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kBrokenPipe = 141;  // nobody reads the output any more
inline constexpr int kSignalBase = 128;  // plus the number of the signal

inline constexpr const char* kExitCodeTable =
    "Exit codes:\n"
    "  0            success\n"
    "  N            run and exec pass on the command's own code: also 126 (not\n"
    "               executable) and 127 (not found), which never mean anything else\n"
    "  1            config check and plugins doctor: there are problems;\n"
    "               conformance: a case fails; cp: what it was given was skipped\n"
    "  2            wrong command line\n"
    "  3            conformance: none fails, but some cases are unverified;\n"
    "               config check: no mistakes, but not everything could be checked\n"
    "  124          the command took longer than --timeout\n"
    "  125          sandforge itself failed; standard error says why\n"
    "  129 130      interrupted by SIGHUP, SIGINT,\n"
    "  131 143      SIGQUIT or SIGTERM; the command was ended\n"
    "  141          the reader of the output went away; the command was ended\n"
    "  128+n        the command was ended by signal n\n";

// For the help of run and exec; of what has no codes of its own; and of what has 1 and 3.
inline constexpr const char* kCommandCodes =
    "Exit codes:\n"
    "  N            the command's own code: also 126 (not executable) and 127 (not\n"
    "               found), which never mean anything else\n"
    "  2            wrong command line\n"
    "  124          the command took longer than --timeout\n"
    "  125          sandforge itself failed; standard error says why\n"
    "  129 130      interrupted by SIGHUP, SIGINT,\n"
    "  131 143      SIGQUIT or SIGTERM; the command was ended\n"
    "  141          the reader of the output went away; the command was ended\n"
    "  128+n        the command was ended by signal n\n";
inline constexpr const char* kPlainCodes =
    "Exit codes: 0 success, 2 wrong command line, 125 sandforge itself failed; all of\n"
    "them: sandforge --help\n";
inline constexpr const char* kCopyCodes =
    "Exit codes: 0 success, 1 what it was given was skipped, 2 wrong command line, 125\n"
    "sandforge itself failed; all of them: sandforge --help\n";
inline constexpr const char* kCheckCodes =
    "Exit codes: 0 no mistakes, 1 mistakes, 2 wrong command line, 3 no mistakes, but not\n"
    "everything could be checked, 125 sandforge itself failed; all: sandforge --help\n";
inline constexpr const char* kDoctorCodes =
    "Exit codes: 0 no problems, 1 problems, 2 wrong command line, 125 sandforge itself\n"
    "failed; all of them: sandforge --help\n";

// Of a command that has ended. 125 for an end that is none of its own.
int exit_code_of(const CommandResult& result) noexcept;
// Of a failure: 126 and 127 for a command that could not be run, as a shell has it; else 125.
int exit_code_of(const Error& error) noexcept;

}  // namespace sandforge::cli
