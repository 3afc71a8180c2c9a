// File operations as the host holds them, one channel of the guest each.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sandforge/ext/files.h"
#include "sandforge/guest_link/guest_link.hpp"

namespace sandforge::guest_link {

Failure from_guest_file(const guest::ErrorInfo& error);

// On the lane, but for what the host may call anywhere, which goes there.
class FileChannel : public ChannelListener {
 public:
  // missing_root: at an error, whether the session itself is gone.
  FileChannel(std::shared_ptr<GuestLink> link, std::function<bool()> missing_root)
      : link_(std::move(link)), missing_root_(std::move(missing_root)) {}
  // Before listen.
  void bind(guest::ChannelId channel) noexcept { channel_ = channel; }

  void on_error(const guest::ErrorInfo& error) override;
  void on_lost(bool may_have_started) override;

 protected:
  GuestLink& link() noexcept { return *link_; }
  const LaneRef& lane() const noexcept { return link_->lane(); }
  guest::ChannelId channel() const noexcept { return channel_; }
  bool ended() const noexcept { return ended_; }
  // What comes last, once; null: it went well.
  void finish(const Failure* failure);
  void leave();  // the guest gives it up: the end is a cancel

 private:
  virtual void told_end(const Failure* failure) = 0;
  // The guest was told to change something for good: a cancel does not undo it.
  virtual bool may_have_changed() const noexcept = 0;

  std::shared_ptr<GuestLink> link_;
  std::function<bool()> missing_root_;
  guest::ChannelId channel_{};
  bool ended_ = false;
};

// stat, list, make directory, move and remove.
class FileOp final : public FileChannel, public std::enable_shared_from_this<FileOp> {
 public:
  FileOp(std::shared_ptr<GuestLink> link, std::function<bool()> missing_root,
         sf_file_list_completion list)
      : FileChannel(std::move(link), std::move(missing_root)), list_(list), op_{{&kOp}, this} {}
  FileOp(std::shared_ptr<GuestLink> link, std::function<bool()> missing_root, sf_completion done)
      : FileChannel(std::move(link), std::move(missing_root)), done_(done), op_{{&kOp}, this} {}

  // The handle for the host, valid until its release.
  sf_op* handle() {
    self_ = shared_from_this();
    return &op_.base;
  }

 private:
  struct OpObject {
    sf_op base;
    FileOp* owner;
  };
  static const sf_op_vtbl kOp;
  static FileOp& of(sf_op* self) noexcept { return *reinterpret_cast<OpObject*>(self)->owner; }

  void on_file_entries(const guest::FileEntries& entries, bool more) override;
  void on_file_end() override { finish(nullptr); }
  void told_end(const Failure* failure) override;
  bool may_have_changed() const noexcept override { return list_.done == nullptr; }

  const sf_file_list_completion list_{};
  const sf_completion done_{};
  const std::vector<sf_file_info>* last_ = nullptr;  // the entries that none follow, for told_end
  OpObject op_;
  std::shared_ptr<FileOp> self_;  // while the host holds the handle
};

// read, write and watch.
class FileStream final : public FileChannel, public std::enable_shared_from_this<FileStream> {
 public:
  // window: of watch, what the host takes at first.
  FileStream(std::shared_ptr<GuestLink> link, std::function<bool()> missing_root,
             guest::FrameType operation, const sf_stream_events& io, std::uint64_t window)
      : FileChannel(std::move(link), std::move(missing_root)),
        operation_(operation),
        io_(io),
        credit_(window),
        stream_{{&kStream}, this} {}

  sf_stream* handle() {
    self_ = shared_from_this();
    return &stream_.base;
  }

 private:
  struct StreamObject {
    sf_stream base;
    FileStream* owner;
  };
  static const sf_stream_vtbl kStream;
  static FileStream& of(sf_stream* self) noexcept {
    return *reinterpret_cast<StreamObject*>(self)->owner;
  }

  void on_lane(std::function<void()> work);
  void grant(std::uint64_t bytes);
  sf_status write(std::string_view bytes, std::size_t* accepted, const sf_error_sink* err);
  void shutdown();
  void release();
  void deliver();

  void on_file_bytes(std::string_view bytes) override;
  void on_file_credit() override;
  void on_stdin_credit() override { on_file_credit(); }  // room that others took
  void on_file_event(const guest::FileEvent& event) override;
  void on_file_end() override;
  void told_end(const Failure* failure) override;
  bool may_have_changed() const noexcept override {
    return operation_ == guest::FrameType::file_write && !open_;
  }

  const guest::FrameType operation_;
  const sf_stream_events io_;
  std::uint64_t credit_;  // of watch, as the next two
  struct Message {
    std::string text;
    std::size_t cost = 0;  // of the guest's credit
  };
  std::deque<Message> messages_;  // bounded by the guest's window
  std::size_t sent_ = 0;          // bytes of the first
  bool source_ended_ = false;     // its end comes after the messages
  bool delivering_ = false;
  bool open_ = true;  // of write
  std::uint64_t delivered_ = 0;
  StreamObject stream_;
  std::shared_ptr<FileStream> self_;  // while the host holds the handle
};

}  // namespace sandforge::guest_link
