// One process under faults: what the provider tells and what the core asks go through here.
#pragma once

#include <deque>

#include "faults/script.hpp"

namespace sandforge::faults {

// Held by the provider as its sink and by the core's handle. Everything on the lane but for crash.
class Stream final : public ProcessSink,
                     public Crashable,
                     public std::enable_shared_from_this<Stream> {
 public:
  using Launch =
      std::function<Result<std::shared_ptr<ProcessBackend>>(std::shared_ptr<ProcessSink>)>;

  Stream(Ground ground, Lane lane, std::shared_ptr<ProcessSink> outer, Launch launch);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() override;

  // Launches it under what strikes the spawn or attach.
  Result<void> run(std::optional<Shot> shot);

  // The core's side.
  void grant(std::uint64_t bytes);
  Result<std::size_t> write(Bytes data);
  Result<void> shutdown_write();
  void cancel();
  void signal(int signal, bool tree, Handler<void> done);
  void resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done);
  // The core has dropped its handle.
  void let_go();

  void on_started(ProcessId id, std::int64_t pid) override;
  void on_data(Channel channel, Bytes data) override;
  void on_writable() override;
  void on_exit(const Exit& exit) override;
  void done(std::optional<Error> error, StreamEnd end) override;
  void crash() override;  // [any]

 private:
  using Event = std::function<void(ProcessSink&)>;

  Result<void> deliver();
  void deliver_late();
  void fail(Error error);
  void fail_later(Error error);
  void go_silent(const Shot& shot);
  void strike();
  bool silent() const noexcept { return silent_ || !outer_; }
  bool end_is(FaultKind kind) const noexcept { return end_ && end_->kind == kind; }
  std::optional<std::chrono::milliseconds> delay_of(const std::optional<Shot>& shot) const;
  void tell(std::optional<std::chrono::milliseconds> delay, Event event);
  void tell_due();
  void finish(std::optional<Error> error, StreamEnd end, bool twice);
  void answer_signals();

  const Ground ground_;
  const Lane lane_;
  std::shared_ptr<ProcessSink> outer_;  // null: its end was told
  Launch launch_;
  std::shared_ptr<ProcessBackend> inner_;  // null: not delivered, or let go
  std::optional<Shot> shot_;               // of its launch
  std::optional<Shot> output_;
  std::optional<Shot> end_;
  bool silent_ = false;  // nothing comes back
  bool delivered_ = false;
  bool started_ = false;
  bool write_waits_ = false;
  bool shut_ = false;
  std::uint64_t granted_ = 0;  // before it was delivered
  std::uint64_t passed_ = 0;   // bytes of output
  std::shared_ptr<Pending> timer_;
  std::vector<std::shared_ptr<Handler<void>>> unanswered_;  // on a silent connection

  struct Late {
    std::chrono::steady_clock::time_point due;
    Event event;
  };
  std::deque<Late> late_;  // in order; bounded by the credit that the core gave
  std::shared_ptr<Pending> late_timer_;
};

// What the core holds of it.
class StreamHandle final : public ProcessBackend {
 public:
  StreamHandle(Lane lane, std::shared_ptr<Stream> stream)
      : lane_(std::move(lane)), stream_(std::move(stream)) {}
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;
  ~StreamHandle() override {
    lane_.post([stream = std::move(stream_)] { stream->let_go(); });
  }

  void grant(std::uint64_t bytes) noexcept override {
    lane_.dispatch([stream = stream_, bytes] { stream->grant(bytes); });
  }
  Result<std::size_t> write(Bytes data) override { return stream_->write(data); }
  Result<void> shutdown_write() override { return stream_->shutdown_write(); }
  void cancel() noexcept override {
    lane_.dispatch([stream = stream_] { stream->cancel(); });
  }
  void signal(int signal, bool tree, Handler<void> done) override {
    stream_->signal(signal, tree, std::move(done));
  }
  void resize(std::uint32_t cols, std::uint32_t rows, Handler<void> done) override {
    stream_->resize(cols, rows, std::move(done));
  }

 private:
  const Lane lane_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace sandforge::faults
