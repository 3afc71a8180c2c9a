#include "runner/peer.hpp"

#include <algorithm>
#include <utility>

#include "plugin/abi_text.hpp"

namespace sandforge::runner {
namespace {

constexpr std::chrono::seconds kEndLimit{10};  // of a side that was ended

}  // namespace

// ---- Input

Result<std::size_t> InputWindow::take(std::size_t wanted) {
  const std::lock_guard lock(mutex_);
  if (closed_) return *closed_;
  const std::size_t taken = std::min(wanted, left_);
  left_ -= taken;
  stalled_ = stalled_ || taken < wanted;
  return taken;
}

bool InputWindow::give_back(std::uint64_t bytes, bool& writable) {
  const std::lock_guard lock(mutex_);
  if (bytes > kInputWindow - left_) return false;
  left_ += bytes;
  writable = std::exchange(stalled_, false);
  return true;
}

void InputWindow::close(Error error, bool& writable) {
  const std::lock_guard lock(mutex_);
  if (!closed_) closed_ = std::move(error);
  writable = std::exchange(stalled_, false);
}

// ---- Calls

Error Peer::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_ ? *loss_ : plugin::crashed(plugin_, "its process has ended");
}

bool Peer::send(wire::Kind kind, Method method, Id lane, Id target, Id id,
                std::string_view payload) noexcept {
  wire::Header header;
  header.kind = kind;
  header.method = method;
  header.lane = lane;
  header.target = target;
  header.id = id;
  return payload.size() <= wire::kMaxPayload && connection_->send(header, payload);
}

bool Peer::expect(Id call, std::shared_ptr<Callbacks> callbacks) {
  const std::lock_guard lock(mutex_);
  if (loss_) return false;
  calls_.emplace(call, std::move(callbacks));
  return true;
}

Result<void> check_request(std::size_t size) {
  if (size <= wire::kMaxPayload) return {};
  return Error(Status::invalid, "the request is larger than 8 MiB");
}

Result<std::string> Peer::ask(Method method, Id lane, Id target, Id id, std::string_view payload) {
  if (auto good = check_request(payload.size()); !good) return std::move(good).error();
  Wait wait;
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return *loss_;
    waits_.emplace(id, &wait);
  }
  send(wire::Kind::call, method, lane, target, id, payload);
  std::unique_lock lock(mutex_);
  const auto answered = [&] { return wait.result.has_value(); };
  if (!wait.changed.wait_for(lock, call_limit_, answered)) {
    lock.unlock();
    hung();
    lock.lock();
    wait.changed.wait_for(lock, kEndLimit, answered);  // the end of the other side is the answer
  }
  waits_.erase(id);
  if (wait.result) return std::move(*wait.result);
  return plugin::crashed(plugin_, "it did not answer", "hung");
}

std::shared_ptr<Callbacks> Peer::find(Id call) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? nullptr : found->second;
}

void Peer::forget(Id call) {
  std::shared_ptr<Callbacks> last;
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  last = std::move(found->second);
  calls_.erase(found);
}

bool Peer::on_event(const wire::FrameView& frame) {
  const Id call = frame.header.target;
  const auto callbacks = find(call);
  // Both sides may end a call at once: what comes after its end is late, and no mistake.
  if (!callbacks) return true;
  const Method method = frame.header.method;
  if (method == kInputCredit || method == kInputClosed)
    return input_event(*callbacks, method, frame.payload);
  if (!callbacks->lane) return deliver(call, *callbacks, method, frame.payload);
  callbacks->lane.post(
      [self = shared_from_this(), callbacks, call, method, payload = std::string(frame.payload)] {
        if (!self->deliver(call, *callbacks, method, payload)) self->connection_->close(kBroken);
      });
  return true;
}

bool Peer::deliver(Id call, Callbacks& callbacks, Method method, std::string_view payload) {
  if (callbacks.over) return true;  // late, as in on_event
  wire::Arena arena;
  wire::Reader in(payload, arena, handles());
  const auto outcome = callbacks.invoke(plugin_, method, in);
  if (outcome == Callbacks::Outcome::last) {
    callbacks.over = true;
    forget(call);
  }
  return outcome != Callbacks::Outcome::malformed;
}

bool Peer::input_event(Callbacks& callbacks, Method method, std::string_view payload) {
  if (!callbacks.input) return false;
  wire::Arena arena;
  wire::Reader in(payload, arena);
  bool writable = false;
  if (method == kInputCredit) {
    const auto bytes = in.read<std::uint64_t>();
    if (!in.whole() || !callbacks.input->give_back(bytes, writable)) return false;
  } else {
    callbacks.input->close(read_error(plugin_, in, "the input of a stream"), writable);
    if (!in.whole()) return false;
  }
  if (writable) callbacks.writable(plugin_);
  return true;
}

bool Peer::on_reply(const wire::FrameView& frame) {
  wire::Arena arena;
  wire::Reader in(frame.payload, arena);
  const auto failed = in.read<std::uint8_t>();
  if (!in.ok() || failed > 1) return false;
  std::optional<Result<std::string>> result;
  if (failed == 1) {
    result.emplace(read_error(plugin_, in, "the call"));
    if (!in.whole()) return false;
  } else {
    result.emplace(std::string(frame.payload.substr(1)));
  }
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(frame.header.target);
  if (found == waits_.end()) return true;
  found->second->result = std::move(result);
  found->second->changed.notify_one();
  return true;
}

void Peer::lose(const Error& error) {
  std::unordered_map<Id, std::shared_ptr<Callbacks>> calls;
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return;
    loss_ = error;
    lost_flag_.store(true);  // before anybody hears of it and tries again
    calls.swap(calls_);
    for (auto& [id, wait] : waits_) {
      wait->result.emplace(error);
      wait->changed.notify_one();
    }
  }
  for (const auto& [id, callbacks] : calls) {
    bool ignored = false;
    if (callbacks->input) callbacks->input->close(error, ignored);
    const auto fail = [self = shared_from_this(), callbacks = callbacks, error] {
      // Its end may have been on its way there.
      if (!callbacks->over) callbacks->fail(self->plugin_, *plugin::ErrorView(error).get());
    };
    callbacks->lane ? callbacks->lane.post(fail) : fail();
  }
}

std::string error_reply(const Error& error) {
  wire::Writer out;
  out.value(std::uint8_t{1});
  out.value(*plugin::ErrorView(error).get());
  return std::move(out.out);
}

Error read_error(plugin::Plugin& plugin, wire::Reader& in, std::string_view what) {
  sf_error raw{};
  in.value(raw);
  return plugin::copy_error(plugin, &raw, what);
}

}  // namespace sandforge::runner
