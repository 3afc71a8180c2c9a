#include "sandforge/guest_link/guest_link.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace sandforge::guest_link {
namespace {

// Bytes of the socket that the host may read ahead: output is bounded by each process's own credit.
constexpr std::uint64_t kWindow = 1U << 20;
constexpr std::size_t kForgotten = 64;  // that wait for the next request

// Nothing depends on the answer.
class Nobody final : public ChannelListener {
 public:
  void on_error(const guest::ErrorInfo&) override {}
  void on_lost(bool) override {}
};

constexpr unsigned kRounds = 8;  // of silence

// A local socket tells when its other end is gone, but not when that is stopped.
guest::ClientOptions client_options(std::uint64_t round_ms) {
  guest::ClientOptions options;
  options.ping_interval_ms = round_ms;
  // The link counts the silence itself.
  options.ping_timeout_ms = std::numeric_limits<std::uint64_t>::max();
  return options;
}

}  // namespace

GuestLink::GuestLink(sf_host* host, const sf_executor_service* executor, LaneRef lane,
                     std::uint64_t silence_ms)
    : host_(host),
      executor_(executor),
      lane_(lane),
      client_(*this, client_options(silence_ms / kRounds)),
      round_ms_(silence_ms / kRounds),
      lost_{SF_TRANSPORT_LOST,
            "guest.lost",
            "the connection to the session's guest was lost",
            {},
            0,
            false} {}

GuestLink::~GuestLink() {
  drop_tick(true);
}

sf_status GuestLink::open(int descriptor, std::function<void(const Failure*)> ready,
                          const sf_error_sink* err) {
  const auto adopt = [&](const sf_stream_events& events, sf_stream** stream,
                         const sf_error_sink* errors) {
    return executor_->adopt_descriptor(host_, lane_.get(), descriptor, kWindow, &events, stream,
                                       errors);
  };
  return open(adopt, std::move(ready), err);
}

sf_status GuestLink::open(const Opener& opener, std::function<void(const Failure*)> ready,
                          const sf_error_sink* err) {
  sf_stream_events events{};
  events.struct_size = sizeof events;
  events.ctx = this;
  events.on_data = [](void* ctx, uint32_t, uint32_t, sf_bytes bytes) noexcept {
    static_cast<GuestLink*>(ctx)->data(view(bytes));
  };
  events.on_writable = [](void* ctx) noexcept {
    static_cast<GuestLink*>(ctx)->flush();
    static_cast<GuestLink*>(ctx)->call_stalled();
  };
  events.done = [](void* ctx, const sf_error* error, const sf_stream_end*) noexcept {
    static_cast<GuestLink*>(ctx)->ended(error);
  };
  ready_ = std::move(ready);
  const sf_status status = opener(events, &stream_, err);
  if (status != SF_OK) {
    ready_ = nullptr;
    return status;
  }
  self_ = shared_from_this();
  flush();
  return SF_OK;
}

Failure GuestLink::lost(bool may_have_started) const {
  Failure failure = lost_;
  failure.may_have_started = may_have_started;
  return failure;
}

void GuestLink::close_when_idle() noexcept {
  idle_closes_ = true;
  if (nobody_waits()) close();
}

void GuestLink::close() noexcept {
  if (stream_ != nullptr) stream_->vtbl->cancel(stream_);
}

guest::ChannelId GuestLink::request(
    const std::function<guest::ChannelId(guest::GuestClient&)>& make,
    std::shared_ptr<ChannelListener> listener) {
  const auto channel = make(ask());
  if (channel == guest::ChannelId{0}) {
    // Not sent: the connection is lost, or the request is longer than a message may be.
    post(lane_.get(), [listener = std::move(listener), lost = client_.failed()] {
      if (lost) return listener->on_lost(false);
      guest::ErrorInfo error;
      error.code = guest::ErrorCode::too_large;
      error.message = "the request is longer than a message to the guest may be";
      listener->on_error(error);
    });
    return channel;
  }
  listen(channel, std::move(listener));
  flush();
  return channel;
}

void GuestLink::leave(guest::ChannelId channel) {
  const auto gone = take(channel);
  client_.leave(channel);
  flush();
}

void GuestLink::flush() {
  if (busy_ || held_ || stream_ == nullptr) return;
  while (!client_.output().empty()) {
    std::size_t accepted = 0;
    const auto status =
        stream_->vtbl->write(stream_, as_bytes(client_.output()), 0, &accepted, nullptr);
    if (status != SF_OK || accepted == 0) return;  // on_writable or done follows
    client_.consume(accepted);
  }
}

void GuestLink::call_stalled() {
  if (!client_.output().empty()) return;
  for (const auto& weak : std::exchange(stalled_, {}))
    if (const auto to = weak.lock()) to->on_stdin_credit();
}

void GuestLink::data(std::string_view bytes) {
  const auto keep = shared_from_this();
  quiet_ = 0;
  busy_ = true;
  const bool ok = feed(bytes);
  busy_ = false;
  for (auto& work : std::exchange(after_, {}))
    work();
  if (!ok) return close();
  if (stream_ != nullptr) stream_->vtbl->grant(stream_, bytes.size());
  flush();
  call_stalled();
  if (idle_closes_ && nobody_waits()) close();
}

bool GuestLink::feed(std::string_view bytes) {
  if (!unwrap_) return client_.feed(bytes);
  bool ok = true;
  std::string_view piece;
  while (ok && unwrap_(bytes, piece))
    ok = client_.feed(piece);
  return ok;
}

void GuestLink::ended(const sf_error* error) {
  if (when_lost_ && client_.open_channels() > 0) {
    gone_ = held_ = true;
    std::exchange(when_lost_, nullptr)();
    return;
  }
  if (held_) {
    gone_ = true;
    return;
  }
  drop_tick(true);
  const auto keep = std::exchange(self_, nullptr);
  busy_ = true;
  client_.lost(error != nullptr ? view(error->message) : "the guest closed the connection");
  busy_ = false;
  after_.clear();
  if (sf_stream* stream = std::exchange(stream_, nullptr)) stream->vtbl->release(stream);
  const Failure failure{SF_TRANSPORT_LOST, "guest.guest_lost", client_.failure(), {}, 0, false};
  tell_ready(&failure);
  if (auto work = std::exchange(when_ended_, nullptr)) work();
}

void GuestLink::let_go() {
  held_ = false;
  if (gone_) return ended(nullptr);
  close();
}

void GuestLink::go_on() {
  held_ = false;
  if (gone_) return ended(nullptr);
  flush();
  watch();
}

void GuestLink::watch() {
  quiet_ = 0;
  arm();
}

void GuestLink::arm() {
  if (round_ms_ == 0 || held_ || !up()) return;
  auto self = std::make_unique<std::weak_ptr<GuestLink>>(weak_from_this());
  const sf_completion completion{self.get(), [](void* ctx, const sf_error* error) noexcept {
                                   const std::unique_ptr<std::weak_ptr<GuestLink>> own(
                                       static_cast<std::weak_ptr<GuestLink>*>(ctx));
                                   if (error != nullptr) return;
                                   if (const auto link = own->lock()) link->tick();
                                 }};
  if (executor_->timer(host_, lane_.get(), round_ms_, completion, &tick_, nullptr) == SF_OK)
    static_cast<void>(self.release());
}

void GuestLink::tick() {
  drop_tick(false);
  // With the next request it goes on.
  if (!up() || client_.open_channels() == 0) return;
  if (++quiet_ < kRounds) {
    counted_ms_ += round_ms_;
    client_.tick(counted_ms_);
    flush();
    return arm();
  }
  if (auto work = std::exchange(when_silent_, nullptr)) {
    held_ = true;
    return work();
  }
  close();
}

void GuestLink::drop_tick(bool cancel) noexcept {
  sf_op* const tick = std::exchange(tick_, nullptr);
  if (tick == nullptr) return;
  if (cancel) tick->vtbl->cancel(tick);
  tick->vtbl->release(tick);
}

void GuestLink::when_ended(std::function<void()> work) {
  if (stream_ == nullptr) return post(lane_.get(), std::move(work));
  when_ended_ = std::move(work);
}

void GuestLink::forget(guest::ProcessId process) {
  if (!up()) return;
  forgotten_.push_back(process);
  if (forgotten_.size() < kForgotten) return;
  pass_on_forgotten();
  flush();
}

void GuestLink::pass_on_forgotten() {
  static const auto nobody = std::make_shared<Nobody>();
  for (const auto process : std::exchange(forgotten_, {}))
    listen(client_.release(guest::Target(process)), nobody);
}

void GuestLink::tell_ready(const Failure* failure) {
  if (auto ready = std::exchange(ready_, nullptr)) ready(failure);
}

void GuestLink::on_hello(const guest::HelloReply& hello) {
  hello_ = hello;
  tell_ready(nullptr);
}

void GuestLink::on_lost(guest::ChannelId channel, bool may_have_started) {
  if (const auto to = take(channel)) to->on_lost(may_have_started);
}

}  // namespace sandforge::guest_link
