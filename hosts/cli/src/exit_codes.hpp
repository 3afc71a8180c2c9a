// What `sandforge` exits with. A command's own code is passed on by run and exec.
#pragma once

namespace sandforge::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 125;         // sandforge itself failed: provider, session, set-up
inline constexpr int kUsage = 2;            // wrong arguments or a configuration that is refused
inline constexpr int kTimedOut = 124;       // the command's time limit ended it
inline constexpr int kNotExecutable = 126;  // the command exists and cannot be run
inline constexpr int kNotFound = 127;       // there is no such command
inline constexpr int kSignalBase =
    128;  // + n: signal n ended the command, or sandforge (Ctrl-C: 130)
inline constexpr int kBrokenPipe = 141;  // nobody reads the output any more

}  // namespace sandforge::cli
