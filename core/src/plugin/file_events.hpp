// What a plugin tells about one stream of a file, put in order: on the lane, within the credit, and
// with one end, whatever the plugin does.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugin/abi_backend.hpp"
#include "sandforge/files.hpp"

namespace sandforge::plugin {

class FileEvents : public std::enable_shared_from_this<FileEvents> {
 public:
  static constexpr char kKind = 0;
  enum class Content : std::uint8_t { bytes, messages, none };

  FileEvents(std::shared_ptr<SandboxCore> core, const char* what, Content content,
             std::uint64_t window, std::shared_ptr<FileSink> sink);

  // Called by the plugin, from any thread.
  void data(std::uint32_t flags, sf_bytes bytes);
  void writable();
  void done(const sf_error* error, const sf_stream_end* end);
  void oops() noexcept;  // an event could not be copied

  // Called by the host. The start failed: nothing is told to the sink.
  void refuse() noexcept { refused_.store(true); }
  void add_credit(std::uint64_t bytes) noexcept;
  bool over() const noexcept { return over_.load(); }
  void set_stream(sf_stream* stream) noexcept { stream_.store(stream); }
  // The lane's, once: nobody wants to hear more.
  void let_go() noexcept { sink_.reset(); }
  SandboxCore& core() const noexcept { return *core_; }

 private:
  struct Message {
    std::string text;
  };

  bool account(std::uint32_t flags, sf_bytes bytes);
  void keep(std::uint32_t flags, sf_bytes bytes);
  void fail(Fault fault, const std::string& what);
  void wake();  // under the mutex
  void drain();
  void finish(std::optional<Error> error, StreamEnd end);

  const std::shared_ptr<SandboxCore> core_;
  const char* const what_;
  const Content content_;
  std::shared_ptr<FileSink> sink_;  // the lane's
  std::atomic<sf_stream*> stream_{nullptr};
  std::atomic<bool> refused_{false};
  std::atomic<bool> over_{false};  // its done came

  std::mutex mutex_;
  std::string bytes_;                 // or
  std::deque<std::string> messages_;  // that wait, and
  std::string piece_;                 // of a message that is not whole
  bool writable_ = false;
  std::optional<std::optional<Error>> done_;
  std::optional<Error> failure_;  // the rule that was broken: what comes later is not taken
  StreamEnd end_;
  bool draining_ = false;
  std::uint64_t granted_;
  std::uint64_t delivered_ = 0;
};

}  // namespace sandforge::plugin
