// The tries of one file operation: each on a machine that runs, another one only where the last
// provably changed nothing. On the lane.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "sandbox/machine.hpp"
#include "sandforge/files.hpp"

namespace sandforge::sandbox {

class FileAttempts {
 public:
  // feature: that the operation needs, and what it is, for the message.
  FileAttempts(std::shared_ptr<CommandHost> host, std::string_view feature, std::string_view what)
      : host_(std::move(host)), feature_(feature), what_(what) {}

  using Use = std::function<void(Result<FilesBackend*>)>;
  // The files of a machine that runs, which is kept until the next call of next or end.
  void next(Use use);
  // What became of the last try. True: next is worth another one. Else the error is the caller's.
  bool again(Error& error);
  // The operation is over.
  void end();

 private:
  void run(Use use);
  void take(Machine machine, const Use& use);

  const std::shared_ptr<CommandHost> host_;
  const std::string_view feature_, what_;
  Machine machine_;
  int tries_ = 0;
  bool restarted_ = false;  // after a machine that was stopped from outside
};

}  // namespace sandforge::sandbox
