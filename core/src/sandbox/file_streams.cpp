#include "sandbox/file_streams.hpp"

#include <algorithm>
#include <utility>

#include "sandbox/lane_handler.hpp"
#include "sandforge/support/encoding.hpp"

namespace sandforge::sandbox {
namespace {

class TrySink final : public FileSink {
 public:
  explicit TrySink(std::weak_ptr<FileState> state) : state_(std::move(state)) {}
  void on_data(Bytes data) override {
    if (const auto state = state_.lock()) state->on_data(data);
  }
  void on_message(std::string_view message) override {
    if (const auto state = state_.lock()) state->on_message(message);
  }
  void on_writable() override {
    if (const auto state = state_.lock()) state->on_writable();
  }
  void done(std::optional<Error> error, StreamEnd) override {
    if (const auto state = std::exchange(state_, {}).lock()) state->on_done(std::move(error));
  }

 private:
  std::weak_ptr<FileState> state_;
};

Error file_error(Status code, std::string message, std::string reason) {
  return Error(code, std::move(message), std::move(reason));
}

// What users hold: dropping it ends the state.
template <class Base, class State>
class Handle : public Base {
 public:
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Handle() override { close(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 protected:
  void close() {
    post(state_->lane(), [state = state_] { state->close(); });
  }
  template <class Work>
  void on_lane_of(Work work) {
    post(state_->lane(), [state = state_, work = std::move(work)]() mutable { work(*state); });
  }

 private:
  const std::shared_ptr<State> state_;
};

class Reader final : public Handle<FileReader, ReadState> {
 public:
  using Handle::Handle;
  void async_read(Handler<std::string> done) override {
    on_lane_of([done = std::move(done)](ReadState& state) mutable { state.read(std::move(done)); });
  }
  void cancel() override { close(); }
};

class Writer final : public Handle<FileWriter, WriteState> {
 public:
  using Handle::Handle;
  void async_write(std::string data, Handler<void> done) override {
    on_lane_of([data = std::move(data), done = std::move(done)](WriteState& state) mutable {
      state.write(std::move(data), std::move(done));
    });
  }
  void async_commit(Handler<void> done) override {
    on_lane_of(
        [done = std::move(done)](WriteState& state) mutable { state.commit(std::move(done)); });
  }
  void cancel() override { close(); }
};

class Watch final : public Handle<FileWatch, WatchState> {
 public:
  using Handle::Handle;
  void async_wait(Handler<void> done) override {
    on_lane_of(
        [done = std::move(done)](WatchState& state) mutable { state.wait(std::move(done)); });
  }
};

}  // namespace

// ---- All of them

void FileState::start() {
  attempts_.next([self = shared_from_this()](Result<FilesBackend*> files) {
    if (self->ended()) return;
    if (!files) return self->finish(std::move(files).error());
    auto stream = self->open(**files, std::make_shared<TrySink>(self));
    if (!stream) return self->failed(std::move(stream).error());
    self->stream_ = *std::move(stream);
    self->opened();
  });
}

void FileState::on_done(std::optional<Error> error) {
  if (ended()) return;
  if (error) return failed(*std::move(error));
  finish(std::nullopt);
}

void FileState::failed(Error error) {
  stream_.reset();
  const bool fresh = may_try_again();
  if (attempts_.again(error) && fresh) {
    rewind();
    return start();
  }
  finish(std::move(error));
}

void FileState::finish(std::optional<Error> error) {
  if (ended()) return;
  const auto alive = shared_from_this();
  end_.emplace(std::move(error));
  self_.reset();
  told_end();
  stream_.reset();
  attempts_.end();
}

void FileState::close() {
  Error error = file_error(Status::cancelled, "the file operation was cancelled", "file.cancelled");
  error.may_have_started = may_have_changed();
  finish(std::move(error));
}

// ---- Reading

void ReadState::on_data(Bytes data) {
  buffer_.append(reinterpret_cast<const char*>(data.data()), data.size());
  answer_open();
  pump();
}

void ReadState::answer_open() {
  if (!opened_) return;
  auto done = std::move(opened_);
  opened_ = nullptr;
  const auto self = std::static_pointer_cast<ReadState>(shared_from_this());
  given_away();
  std::move(done)(std::shared_ptr<FileReader>(std::make_shared<Reader>(self)));
}

void ReadState::read(Handler<std::string> done) {
  if (reading_)
    return std::move(done)(file_error(Status::conflict, "the file is read already", "file.read"));
  reading_ = std::move(done);
  pump();
}

void ReadState::pump() {
  if (!reading_) return;
  if (buffer_.empty() && !ended()) return;
  auto done = std::move(reading_);
  reading_ = nullptr;
  if (buffer_.empty() && error() != nullptr) return std::move(done)(*error());
  std::string bytes = std::exchange(buffer_, {});
  if (stream() != nullptr && !bytes.empty()) stream()->grant(bytes.size());
  std::move(done)(std::move(bytes));
}

void ReadState::told_end() {
  if (!opened_) return pump();
  if (error() == nullptr) return answer_open();  // an empty file
  auto done = std::move(opened_);
  opened_ = nullptr;
  std::move(done)(*error());
}

// ---- Writing

void WriteState::opened() {
  if (opened_) {
    auto done = std::move(opened_);
    opened_ = nullptr;
    const auto self = std::static_pointer_cast<WriteState>(shared_from_this());
    given_away();
    std::move(done)(std::shared_ptr<FileWriter>(std::make_shared<Writer>(self)));
  }
  pump();
}

Error WriteState::refusal() const {
  if (ended() && error() != nullptr) return *error();
  return file_error(Status::conflict, "the file was committed", "file.committed");
}

void WriteState::write(std::string data, Handler<void> done) {
  if (ended() || committed_) return std::move(done)(refusal());
  if (data.empty()) return std::move(done)(Result<void>());
  // One write of any size is fine: its bytes are here anyway.
  if (!queue_.empty() && data.size() > kQueueBytes - std::min(queued_, kQueueBytes))
    return std::move(done)(
        file_error(Status::no_space, "too many bytes wait to be written", "file.queue"));
  queued_ += data.size();
  queue_.push_back({std::move(data), 0, std::move(done)});
  pump();
}

void WriteState::commit(Handler<void> done) {
  if (ended() || committed_) return std::move(done)(refusal());
  committed_ = true;
  committing_ = std::move(done);
  pump();
}

void WriteState::pump() {
  while (stream() != nullptr && !refused_ && !queue_.empty()) {
    Write& first = queue_.front();
    const std::string_view rest = std::string_view(first.data).substr(first.taken);
    const auto taken =
        stream()->write(Bytes(reinterpret_cast<const std::byte*>(rest.data()), rest.size()));
    if (!taken) return refused(taken.error());
    if (head_.size() == accepted_ && head_.size() + *taken <= kHead)
      head_.append(rest.substr(0, *taken));
    accepted_ += *taken;
    queued_ -= *taken;
    first.taken += *taken;
    if (first.taken < first.data.size()) return;
    auto done = std::move(first.done);
    queue_.pop_front();
    if (done) std::move(done)(Result<void>());
  }
  if (stream() == nullptr || refused_ || !committed_ || shut_ || !queue_.empty()) return;
  shut_ = true;
  // What it refuses its end tells, too.
  if (auto good = stream()->shutdown_write(); !good) finish(std::move(good).error());
}

// Its end may be on the way and says more: that comes first. Where there is none, this is it.
void WriteState::refused(const Error& error) {
  refused_ = error;
  post(lane(), [self = std::static_pointer_cast<WriteState>(shared_from_this())] {
    if (self->refused_) self->finish(*self->refused_);
  });
}

// What was taken by a try that did nothing is sent again.
void WriteState::rewind() {
  shut_ = false;
  refused_.reset();
  accepted_ = 0;
  if (head_.empty()) return;
  queued_ += head_.size();
  queue_.push_front({std::exchange(head_, {}), 0, nullptr});
}

void WriteState::told_end() {
  std::optional<Error> why;
  if (error() != nullptr)
    why = *error();
  else if (!shut_)
    why = file_error(Status::crashed, "the provider ended a file that was not committed",
                     "file.ended");
  if (opened_) {
    auto done = std::move(opened_);
    opened_ = nullptr;
    std::move(done)(why.value_or(Error()));
  }
  for (Write& write : std::exchange(queue_, {}))
    if (write.done) std::move(write.done)(why.value_or(Error()));
  if (!committing_) return;
  auto done = std::move(committing_);
  committing_ = nullptr;
  std::move(done)(why ? Result<void>(*std::move(why)) : Result<void>());
}

// ---- Watching

void WatchState::on_message(std::string_view message) {
  if (ended()) return;
  const auto parsed = json::parse(message);
  const auto* name = parsed && parsed.value.is_object() ? parsed.value.find("event") : nullptr;
  if (name == nullptr || !name->is_string())
    return finish(file_error(Status::crashed, "the provider told a change that cannot be read",
                             "file.watch"));
  FileEvent event;
  event.event = name->as_string();
  if (const auto* path = parsed.value.find("path"); path != nullptr && path->is_string())
    event.path = path->as_string();
  const auto* bytes = parsed.value.find("pathBytes");
  if (bytes != nullptr && bytes->is_string())
    event.path = base64_decode(bytes->as_string()).value_or(event.path);
  const auto alive = shared_from_this();
  if (stream() != nullptr) stream()->grant(message.size());
  if (opened_) {
    auto done = std::move(opened_);
    opened_ = nullptr;
    given_away();
    std::move(done)(std::shared_ptr<FileWatch>(
        std::make_shared<Watch>(std::static_pointer_cast<WatchState>(alive))));
  }
  if (event.event == "start" || !on_event_) return;
  if (auto called = contained("the watch callback", [&] { on_event_(event); }); !called)
    finish(std::move(called).error());
}

void WatchState::wait(Handler<void> done) {
  if (waiting_)
    return std::move(done)(
        file_error(Status::conflict, "the watch is waited for already", "file.watch"));
  waiting_ = std::move(done);
  if (ended()) told_end();
}

void WatchState::told_end() {
  on_event_ = nullptr;
  if (opened_) {
    auto done = std::move(opened_);
    opened_ = nullptr;
    if (error() != nullptr) return std::move(done)(*error());
    return std::move(done)(
        file_error(Status::not_found, "what was to be watched is gone", "file.not_found"));
  }
  if (!waiting_) return;
  auto done = std::move(waiting_);
  waiting_ = nullptr;
  std::move(done)(error() != nullptr ? Result<void>(*error()) : Result<void>());
}

}  // namespace sandforge::sandbox
