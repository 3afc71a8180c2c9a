// What hosts ask of files: paths beneath one folder, opened anew for each request.
#pragma once

#include <memory>
#include <string>

#include "file_task.hpp"
#include "options.hpp"
#include "sandforge/wire/guest/frame.hpp"

namespace sandforge::guest {

// Answers on the channel at once, or gives the task that will. Blocks for a few system calls.
std::shared_ptr<FileTask> serve_file(const ServeOptions& options, Connection& connection,
                                     std::uint64_t channel, wire::FrameType operation,
                                     const wire::FileRequest& request);

// A file of a folder without following it. False with errno set.
bool describe_file(int folder, const std::string& name, const std::string& shown,
                   wire::FileEntry& entry);

std::shared_ptr<FileTask> list_files(Connection& connection, std::uint64_t channel,
                                     posix::Beneath root, std::string path, std::string shown,
                                     std::uint32_t depth);
std::shared_ptr<FileTask> read_file(Connection& connection, std::uint64_t channel, posix::Fd file,
                                    const wire::FileRequest& request);
// Nothing: it was refused, and that was told.
std::shared_ptr<FileTask> write_file(Connection& connection, std::uint64_t channel,
                                     posix::Fd folder, std::string name,
                                     const wire::FileRequest& request);
std::shared_ptr<FileTask> remove_tree(Connection& connection, std::uint64_t channel,
                                      posix::Fd folder, std::string name, std::string shown);
std::shared_ptr<FileTask> watch_files(Connection& connection, std::uint64_t channel,
                                      posix::Beneath root, std::string path, std::string shown,
                                      const wire::FileRequest& request);

// `shown` with the way from there behind it.
std::string below(const std::string& shown, const std::string& way);

}  // namespace sandforge::guest
