// Files that are read, written and watched: what a provider tells, and what the user holds.
//
// A state lives on the lane; the user's handle, dropped anywhere, ends it there. A provider holds
// the sink of one try, never a state: late events of an earlier try reach nobody.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/file_attempts.hpp"
#include "sandforge/runtime.hpp"

namespace sandforge::sandbox {

class FileState : public std::enable_shared_from_this<FileState> {
 public:
  FileState(Lane lane, FileAttempts attempts)
      : lane_(std::move(lane)), attempts_(std::move(attempts)) {}
  virtual ~FileState() = default;

  // Keeps itself until the user's handle does, or the end.
  void begin() {
    self_ = shared_from_this();
    start();
  }
  // The user's handle is gone, or was cancelled.
  void close();
  const Lane& lane() const noexcept { return lane_; }

  virtual void on_data(Bytes) {}
  virtual void on_message(std::string_view) {}
  virtual void on_writable() {}
  void on_done(std::optional<Error> error);

 protected:
  bool ended() const noexcept { return end_.has_value(); }
  // Why it ended; null: it did well.
  const Error* error() const noexcept { return *end_ ? &**end_ : nullptr; }
  FileStreamBackend* stream() noexcept { return stream_.get(); }
  void finish(std::optional<Error> error);
  void given_away() { self_.reset(); }  // the user's handle keeps it from now on

 private:
  virtual FilesBackend::Stream open(FilesBackend& files, std::shared_ptr<FileSink> sink) = 0;
  virtual void opened() {}                                 // the provider has taken the request
  virtual bool may_try_again() const { return true; }      // nothing was given to the user yet
  virtual void rewind() {}                                 // before another try
  virtual bool may_have_changed() const { return false; }  // the provider was told to
  virtual void told_end() = 0;                             // ended() holds from now on

  void start();
  void failed(Error error);

  const Lane lane_;
  FileAttempts attempts_;
  std::shared_ptr<FileStreamBackend> stream_;
  std::shared_ptr<FileState> self_;
  std::optional<std::optional<Error>> end_;
};

class ReadState final : public FileState {
 public:
  ReadState(Lane lane, FileAttempts attempts, std::string path, ReadOptions options,
            Handler<std::shared_ptr<FileReader>> done)
      : FileState(std::move(lane), std::move(attempts)),
        path_(std::move(path)),
        options_(options),
        opened_(std::move(done)) {}
  void read(Handler<std::string> done);
  void on_data(Bytes data) override;

 private:
  FilesBackend::Stream open(FilesBackend& files, std::shared_ptr<FileSink> sink) override {
    return files.read(path_, options_, std::move(sink));
  }
  bool may_try_again() const override { return static_cast<bool>(opened_); }
  void told_end() override;
  void answer_open();
  void pump();

  const std::string path_;
  const ReadOptions options_;
  Handler<std::shared_ptr<FileReader>> opened_;  // until it was answered
  Handler<std::string> reading_;
  std::string buffer_;  // bounded by the window
};

class WriteState final : public FileState {
 public:
  static constexpr std::size_t kQueueBytes = std::size_t{64} << 20;
  // What is kept to be sent again.
  static constexpr std::size_t kHead = std::size_t{256} << 10;

  WriteState(Lane lane, FileAttempts attempts, std::string path, WriteOptions options,
             Handler<std::shared_ptr<FileWriter>> done)
      : FileState(std::move(lane), std::move(attempts)),
        path_(std::move(path)),
        options_(options),
        opened_(std::move(done)) {}
  void write(std::string data, Handler<void> done);
  void commit(Handler<void> done);
  void on_writable() override { pump(); }

 private:
  struct Write {
    std::string data;
    std::size_t taken = 0;
    Handler<void> done;
  };

  FilesBackend::Stream open(FilesBackend& files, std::shared_ptr<FileSink> sink) override {
    return files.write(path_, options_, std::move(sink));
  }
  void opened() override;
  bool may_try_again() const override { return accepted_ == head_.size(); }
  void rewind() override;
  bool may_have_changed() const override { return shut_; }
  void told_end() override;
  void pump();
  void refused(const Error& error);
  Error refusal() const;

  const std::string path_;
  const WriteOptions options_;
  Handler<std::shared_ptr<FileWriter>> opened_;
  std::deque<Write> queue_;
  std::size_t queued_ = 0;
  std::string head_;  // what was taken, as long as it is all of it
  std::uint64_t accepted_ = 0;
  Handler<void> committing_;
  bool committed_ = false;        // it was asked for
  bool shut_ = false;             // and told to the provider
  std::optional<Error> refused_;  // by the provider's write
};

class WatchState final : public FileState {
 public:
  static constexpr std::uint64_t kWindow = 256U << 10;

  WatchState(Lane lane, FileAttempts attempts, std::string path, bool recursive,
             std::function<void(const FileEvent&)> on_event,
             Handler<std::shared_ptr<FileWatch>> done)
      : FileState(std::move(lane), std::move(attempts)),
        path_(std::move(path)),
        recursive_(recursive),
        on_event_(std::move(on_event)),
        opened_(std::move(done)) {}
  void wait(Handler<void> done);
  void on_message(std::string_view message) override;

 private:
  FilesBackend::Stream open(FilesBackend& files, std::shared_ptr<FileSink> sink) override {
    return files.watch(path_, recursive_, kWindow, std::move(sink));
  }
  bool may_try_again() const override { return static_cast<bool>(opened_); }
  void told_end() override;

  const std::string path_;
  const bool recursive_;
  std::function<void(const FileEvent&)> on_event_;
  Handler<std::shared_ptr<FileWatch>> opened_;
  Handler<void> waiting_;
};

}  // namespace sandforge::sandbox
