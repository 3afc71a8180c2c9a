// The Files of a sandbox.
#pragma once

#include <memory>
#include <string>

#include "sandbox/file_streams.hpp"

namespace sandforge::sandbox {

class FilesImpl final : public Files {
 public:
  FilesImpl(Lane lane, std::shared_ptr<CommandHost> host)
      : lane_(std::move(lane)), host_(std::move(host)) {}

  void async_stat(std::string path, Handler<FileInfo> done) override;
  void async_list(std::string path, std::uint32_t depth,
                  Handler<std::vector<FileInfo>> done) override;
  void async_open(std::string path, ReadOptions options,
                  Handler<std::shared_ptr<FileReader>> done) override;
  void async_create(std::string path, WriteOptions options,
                    Handler<std::shared_ptr<FileWriter>> done) override;
  void async_make_directory(std::string path, MakeDirectoryOptions options,
                            Handler<void> done) override;
  void async_move(std::string from, std::string to, bool replace, Handler<void> done) override;
  void async_remove(std::string path, bool tree, Handler<void> done) override;
  void async_watch(std::string path, bool recursive, std::function<void(const FileEvent&)> on_event,
                   Handler<std::shared_ptr<FileWatch>> done) override;

 private:
  FileAttempts attempts() const { return {host_, feature::kFiles, "files"}; }
  template <class T, class Ask>
  void run(Handler<T> done, Ask ask);

  const Lane lane_;
  const std::shared_ptr<CommandHost> host_;
};

}  // namespace sandforge::sandbox
