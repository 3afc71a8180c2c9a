// A channel of a connection that shows one process.
#pragma once

#include <cstdint>

#include "sandforge/posix/log.hpp"

namespace sandforge::guest {

class Connection;
class Process;

struct Attachment {
  Connection* connection = nullptr;
  std::uint64_t channel = 0;
  Process* process = nullptr;

  std::uint64_t credit = 0;  // bytes that may still be sent
  bool hold_back = false;    // the producer waits for this channel
  bool owns_stdin = false;
  bool queued = false;  // waits in the connection's turn list
  bool closed = false;  // its last frame is on its way, or it was left
  bool exit_told = false;

  posix::OutputLog::Position at = 0;     // next byte of the log to send
  posix::OutputLog::Position until = 0;  // once the command is over: where its output ends
  bool bounded = false;                  // `until` and `total` are set
  std::uint64_t next[2] = {0, 0};        // offset in each stream from which on bytes are wanted
  std::uint64_t from[2] = {0, 0};        // `next` at the start
  std::uint64_t delivered[2] = {0, 0};
  std::uint64_t total[2] = {0, 0};
};

}  // namespace sandforge::guest
