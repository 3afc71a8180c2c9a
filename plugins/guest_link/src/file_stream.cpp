#include "file_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "sandforge/guest_link/guest_process.hpp"
#include "sandforge/wire/guest/boundary.hpp"
#include "sandforge/wire/guest/file_boundary.hpp"

namespace sandforge::guest_link {
namespace {

constexpr std::uint64_t kMostCredit = std::uint64_t{1} << 62;

Failure file_cancelled(bool may_have_started) {
  return Failure{SF_CANCELLED,    "file.cancelled", "the file operation was cancelled", {}, 0,
                 may_have_started};
}

}  // namespace

Failure from_guest_file(const guest::ErrorInfo& error) {
  const auto meaning = guest::file_meaning_of(error.code, {SF_CONFLICT, "guest.stopping"});
  Failure failure;
  failure.code = meaning.status;
  failure.reason = error.error_number == EISDIR ? "file.is_directory" : meaning.reason;
  failure.message = error.message;
  failure.error_number = error.error_number;
  return failure;
}

void FileChannel::on_error(const guest::ErrorInfo& error) {
  Failure failure = from_guest_file(error);
  if (failure.code == SF_NOT_FOUND && missing_root_()) failure = folder_gone();
  finish(&failure);
}

void FileChannel::on_lost(bool may_have_started) {
  const Failure failure = link_->lost(may_have_started);
  finish(&failure);
}

void FileChannel::finish(const Failure* failure) {
  if (std::exchange(ended_, true)) return;
  told_end(failure);
}

void FileChannel::leave() {
  if (ended_) return;
  link_->leave(channel_);
  const Failure failure = file_cancelled(may_have_changed());
  finish(&failure);
}

// ---- Operations with an answer

const sf_op_vtbl FileOp::kOp = {
    sizeof(sf_op_vtbl),
    [](sf_op* self) noexcept {
      post(of(self).lane().get(), [keep = of(self).shared_from_this()] { keep->leave(); });
    },
    [](sf_op* self) noexcept {
      post(of(self).lane().get(), [keep = of(self).shared_from_this()] { keep->self_.reset(); });
    },
};

void FileOp::on_file_entries(const guest::FileEntries& entries, bool more) {
  std::vector<sf_file_info> infos;
  for (const auto& entry : entries.entries)
    infos.push_back(guest::to_abi(entry));
  if (more)
    return list_.done(list_.ctx, nullptr, infos.data(), infos.size(), sizeof(sf_file_info), 1);
  last_ = &infos;
  finish(nullptr);
  last_ = nullptr;
}

void FileOp::told_end(const Failure* failure) {
  if (list_.done == nullptr) return complete(done_, failure);
  if (failure == nullptr)
    return list_.done(list_.ctx, nullptr, last_->data(), last_->size(), sizeof(sf_file_info), 0);
  with_error(*failure, [&](const sf_error* error) {
    list_.done(list_.ctx, error, nullptr, 0, sizeof(sf_file_info), 0);
  });
}

// ---- Streams

const sf_stream_vtbl FileStream::kStream = {
    sizeof(sf_stream_vtbl),
    [](sf_stream* self, uint64_t bytes) noexcept {
      auto& stream = of(self);
      stream.on_lane([keep = stream.shared_from_this(), bytes] { keep->grant(bytes); });
    },
    [](sf_stream* self, sf_bytes data, uint32_t, size_t* accepted,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return of(self).write(view(data), accepted, err); });
    },
    [](sf_stream* self, const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        of(self).shutdown();
        return sf_status{SF_OK};
      });
    },
    // Not at once: done never comes from inside a call.
    [](sf_stream* self) noexcept {
      auto& stream = of(self);
      post(stream.lane().get(), [keep = stream.shared_from_this()] { keep->leave(); });
    },
    [](sf_stream* self) noexcept {
      auto& stream = of(self);
      post(stream.lane().get(), [keep = stream.shared_from_this()] { keep->release(); });
    },
};

void FileStream::on_lane(std::function<void()> work) {
  if (lane().current()) {
    work();
  } else {
    post(lane().get(), std::move(work));
  }
}

void FileStream::grant(std::uint64_t bytes) {
  if (ended()) return;
  if (operation_ == guest::FrameType::file_watch) {
    credit_ = std::min(kMostCredit, credit_ + std::min(bytes, kMostCredit));
    // Not from inside the call.
    post(lane().get(), [keep = shared_from_this()] { keep->deliver(); });
    return;
  }
  link().client().grant(channel(), std::min(bytes, kMostCredit));
  link().flush();
}

sf_status FileStream::write(std::string_view bytes, std::size_t* accepted,
                            const sf_error_sink* err) {
  if (ended() || !open_ || operation_ != guest::FrameType::file_write)
    return report(err,
                  Failure{SF_CONFLICT, "file.no_input", "the file takes no bytes", {}, 0, false});
  guest::GuestClient& client = link().client();
  std::size_t total = 0;
  bool more = true;
  while (more) {
    total += client.write_file(channel(), bytes.substr(total)).value_or(0);
    link().flush();
    more = total < bytes.size() && client.output().empty() && client.file_room(channel()) > 0;
  }
  *accepted = total;
  if (total < bytes.size() && !client.output().empty()) link().wait_for_room(weak_from_this());
  return SF_OK;
}

void FileStream::shutdown() {
  if (ended() || !std::exchange(open_, false)) return;
  link().client().commit_file(channel());
  link().flush();
}

// Nobody is there to grant, or to say that all was written.
void FileStream::release() {
  if (!may_have_changed()) leave();
  self_.reset();
}

void FileStream::on_file_bytes(std::string_view bytes) {
  delivered_ += bytes.size();
  io_.on_data(io_.ctx, SF_CHANNEL_DATA, 0, as_bytes(bytes));
}

void FileStream::on_file_credit() {
  if (!ended() && SF_HAS_FN(&io_, on_writable)) io_.on_writable(io_.ctx);
}

void FileStream::on_file_event(const guest::FileEvent& event) {
  Message message;
  message.text = guest::message_of(event);
  std::string payload;
  event.encode(payload);
  message.cost = payload.size();
  messages_.push_back(std::move(message));
  deliver();
}

// A grant may come from inside on_data.
void FileStream::deliver() {
  if (delivering_) return;
  delivering_ = true;
  const auto keep = shared_from_this();
  while (!messages_.empty() && credit_ > 0 && !ended()) {
    const Message& first = messages_.front();
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(credit_, first.text.size() - sent_));
    const bool last = sent_ + size == first.text.size();
    credit_ -= size;
    delivered_ += size;
    const std::string piece = first.text.substr(sent_, size);
    const std::size_t cost = first.cost;
    sent_ += size;
    if (last) {
      sent_ = 0;
      messages_.pop_front();
      link().client().grant(channel(), cost);
    }
    io_.on_data(io_.ctx, SF_CHANNEL_DATA, SF_DATA_TEXT | (last ? SF_DATA_END : 0), as_bytes(piece));
  }
  delivering_ = false;
  link().flush();
  if (messages_.empty() && source_ended_) finish(nullptr);
}

void FileStream::on_file_end() {
  source_ended_ = true;
  if (messages_.empty()) finish(nullptr);
}

void FileStream::told_end(const Failure* failure) {
  open_ = false;
  sf_stream_end end{};
  end.struct_size = sizeof end;
  end.delivered = delivered_;
  for (const Message& message : messages_)
    end.dropped += message.text.size();
  end.dropped -= sent_;
  if (failure == nullptr) return io_.done(io_.ctx, nullptr, &end);
  with_error(*failure, [&](const sf_error* error) { io_.done(io_.ctx, error, &end); });
}

}  // namespace sandforge::guest_link
