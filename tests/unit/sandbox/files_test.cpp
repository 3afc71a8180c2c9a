// Files of a sandbox: its life cycle, whole files, credit, and what is sent again.
#include "sandforge/files.hpp"

#include <map>

#include "fixture.hpp"

namespace sandforge {
namespace {

// Files in memory. Every call can be made to fail first.
class FakeFiles final : public FilesBackend {
 public:
  class Stream final : public FileStreamBackend {
   public:
    Stream(FakeFiles& owner, std::string path, std::shared_ptr<FileSink> sink)
        : files(owner), path_(std::move(path)), sink_(std::move(sink)) {
      ++files.opened;
    }
    ~Stream() override { ++files.dropped; }
    void grant(std::uint64_t bytes) noexcept override {
      files.granted += bytes;
      credit += bytes;
      post([this] { feed(); });
    }
    Result<std::size_t> write(Bytes data) override {
      if (auto error = files.take(files.ends)) post([this, e = *error] { sink_->done(e, {}); });
      if (auto error = files.take(files.writes)) return *error;
      const std::size_t size = std::min(data.size(), files.room.exchange(0));
      text.append(reinterpret_cast<const char*>(data.data()), size);
      return size;
    }
    Result<void> shutdown_write() override {
      post([this] {
        files.content[path_] = text;
        sink_->done({}, {});
      });
      return {};
    }
    void cancel() noexcept override {}

    void feed() {
      if (files.held) return;
      while (credit > 0 && at < text.size()) {
        const auto size = std::min<std::size_t>(credit, text.size() - at);
        credit -= size;
        const std::string piece = text.substr(at, size);
        at += size;
        sink_->on_data(Bytes(reinterpret_cast<const std::byte*>(piece.data()), piece.size()));
      }
      if (at == text.size() && !std::exchange(over, true)) sink_->done({}, {at, 0});
    }
    void post(std::function<void()> work) {
      files.lane.post([keep = self.lock(), work = std::move(work)] {
        if (keep) work();
      });
    }

    FakeFiles& files;
    std::weak_ptr<Stream> self;
    std::string path_;
    std::shared_ptr<FileSink> sink_;
    std::string text;
    std::size_t at = 0;
    std::uint64_t credit = 0;
    bool over = false;
  };

  std::shared_ptr<Pending> stat(std::string path, Handler<FileInfo> done) override {
    FileInfo info;
    info.path = path;
    answer<FileInfo>(std::move(done), info);
    return nullptr;
  }
  std::shared_ptr<Pending> list(std::string, std::uint32_t,
                                Handler<std::vector<FileInfo>> done) override {
    answer<std::vector<FileInfo>>(std::move(done), std::vector<FileInfo>());
    return nullptr;
  }
  FilesBackend::Stream read(std::string path, const ReadOptions& options,
                            std::shared_ptr<FileSink> sink) override {
    auto stream = make(path, std::move(sink));
    if (!stream) return std::move(stream).error();
    (*stream)->text = content[path];
    (*stream)->credit = options.window;
    reader = *stream;
    start(*stream, [s = *stream] { s->feed(); });
    return std::shared_ptr<FileStreamBackend>(*stream);
  }
  FilesBackend::Stream write(std::string path, const WriteOptions&,
                             std::shared_ptr<FileSink> sink) override {
    auto stream = make(path, std::move(sink));
    if (!stream) return std::move(stream).error();
    writer = *stream;
    start(*stream, [] {});
    return std::shared_ptr<FileStreamBackend>(*stream);
  }
  std::shared_ptr<Pending> make_directory(std::string, MakeDirectoryOptions,
                                          Handler<void> done) override {
    answer<void>(std::move(done), {});
    return nullptr;
  }
  std::shared_ptr<Pending> move(std::string, std::string, bool, Handler<void> done) override {
    answer<void>(std::move(done), {});
    return nullptr;
  }
  std::shared_ptr<Pending> remove(std::string, bool, Handler<void> done) override {
    answer<void>(std::move(done), {});
    return nullptr;
  }
  FilesBackend::Stream watch(std::string path, bool, std::uint64_t,
                             std::shared_ptr<FileSink> sink) override {
    auto stream = make(path, sink);
    if (!stream) return std::move(stream).error();
    (*stream)->over = true;  // a grant does not end it
    start(*stream, [this, sink] {
      for (const std::string& message : messages)
        sink->on_message(message);
    });
    watcher = sink;
    return std::shared_ptr<FileStreamBackend>(*stream);
  }

  Lane lane;
  std::deque<Error> now, later;  // of the next calls: at once, or as their answer
  std::deque<Error> writes;      // what the next writes answer
  std::deque<Error> ends;        // and the ends that are under way then
  std::map<std::string, std::string> content;
  std::vector<std::string> messages;
  std::shared_ptr<FileSink> watcher;
  std::weak_ptr<Stream> reader, writer;
  std::atomic<bool> held{false};  // the bytes of readers
  std::atomic<int> calls{0}, opened{0}, dropped{0};
  std::atomic<std::uint64_t> granted{0};
  std::atomic<std::size_t> room{1U << 30};

 private:
  std::optional<Error> take(std::deque<Error>& errors) {
    if (errors.empty()) return std::nullopt;
    Error error = errors.front();
    errors.pop_front();
    return error;
  }
  template <class T>
  void answer(Handler<T> done, Result<T> result) {
    ++calls;
    if (auto error = take(later)) result = *error;
    lane.post([done = std::move(done), result = std::move(result)]() mutable {
      std::move(done)(std::move(result));
    });
  }
  Result<std::shared_ptr<Stream>> make(const std::string& path, std::shared_ptr<FileSink> sink) {
    ++calls;
    if (auto error = take(now)) return *error;
    auto stream = std::make_shared<Stream>(*this, path, std::move(sink));
    stream->self = stream;
    return stream;
  }
  void start(const std::shared_ptr<Stream>& stream, std::function<void()> work) {
    if (auto error = take(later)) work = [stream, e = *error] { stream->sink_->done(e, {}); };
    stream->post(std::move(work));
  }
};

struct Filed : Fixture {
  Filed() : fake(std::make_shared<FakeFiles>()) {
    world->files = fake;
    world->features.emplace_back("files");
    world->features.emplace_back("files.watch");
    // Every call is answered on the sandbox's lane.
    sandbox->start();
    fake->lane = world->creates().front().lane;
    files = sandbox->files();
  }
  ~Filed() {
    const std::lock_guard lock(world->mutex);
    fake->watcher.reset();
  }
  std::shared_ptr<FakeFiles> fake;
  std::shared_ptr<Files> files;
};

}  // namespace

TEST_CASE("files: the kinds have names") {
  CHECK(to_string(FileKind::regular) == "file");
  CHECK(to_string(FileKind::directory) == "directory");
  CHECK(to_string(FileKind::symlink) == "symlink");
  CHECK(to_string(FileKind::other) == "other");
}

TEST_CASE("files: an operation starts the sandbox, and counts as its use") {
  Filed f;
  f.sandbox->stop();
  CHECK(f.files->stat("x").path == "x");
  CHECK(f.sandbox->status() == SandboxStatus::running);
  CHECK(f.sandbox->info().last_used_at_ns.has_value());
  f.sandbox->destroy();
  CHECK(error_of([&] { f.files->stat("x"); }).code == Status::gone);
  CHECK(f.fake->calls == 1);
}

TEST_CASE("files: what is not declared is refused before anything starts") {
  Filed f;
  SECTION("files") {
    Fixture plain;
    CHECK(error_of([&] { plain.sandbox->files()->stat("x"); }).reason == "feature.files");
    CHECK(error_of([&] { plain.sandbox->files()->open("x"); }).reason == "feature.files");
    CHECK(plain.world->counts().starts == 0);
  }
  SECTION("declared, but not there") {
    f.world->files.reset();
    CHECK(error_of([&] { f.files->stat("x"); }).code == Status::unsupported);
  }
}

TEST_CASE("files: a machine that was stopped is started again, one that is gone is told") {
  Filed f;
  const Error stopped(Status::conflict, "stopped");
  SECTION("an operation") {
    f.fake->later = {stopped};
    f.files->stat("x");
    CHECK(f.fake->calls == 2);
  }
  SECTION("a second time it is an error") {
    f.fake->later = {stopped, stopped};
    CHECK(error_of([&] { f.files->stat("x"); }).code == Status::conflict);
  }
  SECTION("a file that is read") {
    f.fake->content["x"] = "text";
    f.fake->now = {stopped};
    CHECK(f.files->read_file("x") == "text");
    f.fake->later = {stopped};
    CHECK(f.files->read_file("x") == "text");
  }
  SECTION("a file that is written is sent again as long as all of it is known") {
    f.fake->later = {stopped};
    f.files->write_file("x", "text");
    CHECK(f.fake->content["x"] == "text");
  }
  SECTION("gone") {
    f.fake->later = {Error(Status::gone, "gone")};
    CHECK(error_of([&] { f.files->stat("x"); }).code == Status::gone);
    CHECK(f.fake->calls == 1);
    CHECK(f.sandbox->status() == SandboxStatus::pending);
  }
  SECTION("what may have happened is not asked for again") {
    Error lost(Status::transport_lost, "lost");
    lost.may_have_started = true;
    f.fake->later = {lost};
    CHECK(error_of([&] { f.files->remove("x"); }).may_have_started);
    CHECK(f.fake->calls == 1);
  }
  SECTION("what did not arrive is") {
    f.fake->later = {Error(Status::transport_lost, "lost"), Error(Status::transport_lost, "lost")};
    f.files->remove("x");
    CHECK(f.fake->calls == 3);
  }
}

TEST_CASE("files: a reader that does not read holds the file back") {
  Filed f;
  f.fake->content["x"] = std::string(1000, 'x');
  ReadOptions options;
  options.window = 10;
  const auto reader = f.files->open("x", options);
  CHECK(f.fake->granted == 0);
  CHECK(reader->read().size() == 10);
  CHECK(f.fake->granted == 10);
  std::size_t total = 10;
  for (std::string bytes; !(bytes = reader->read()).empty();)
    total += bytes.size();
  CHECK(total == 1000);
  CHECK(reader->read().empty());
}

TEST_CASE("files: a file that cannot be read is an error of its opening") {
  Filed f;
  f.fake->later = {Error(Status::not_found, "none")};
  CHECK(error_of([&] { f.files->open("x"); }).code == Status::not_found);
  f.fake->content["empty"] = "";
  CHECK(f.files->open("empty")->read().empty());
  f.fake->content["long"] = "12345";
  CHECK(error_of([&] { f.files->read_file("long", 4); }).code == Status::no_space);
  CHECK(f.files->read_file("long", 5) == "12345");
}

TEST_CASE("files: two reads at once are one too many") {
  Filed f;
  f.fake->content["x"] = "12";
  ReadOptions options;
  options.window = 1;
  const auto reader = f.files->open("x", options);
  f.fake->held = true;
  CHECK(reader->read() == "1");
  auto first = later<std::string>([&](auto done) { reader->async_read(std::move(done)); });
  auto second = later<std::string>([&](auto done) { reader->async_read(std::move(done)); });
  CHECK(get(second).error().reason == "file.read");
  CHECK(is_open(first));
  f.fake->held = false;
  f.fake->lane.post([&] {
    if (const auto stream = f.fake->reader.lock()) stream->feed();
  });
  CHECK(get(first).value() == "2");
}

TEST_CASE("files: one write may be of any size, and more than that is held back") {
  Filed f;
  const std::string large(std::size_t{65} << 20, 'x');
  f.fake->content["x"] = "old";
  f.files->write_file("x", large);
  CHECK(f.fake->content["x"] == large);

  f.fake->room = 0;
  const auto writer = f.files->create("y");
  auto first = later<void>([&](auto done) { writer->async_write(large, std::move(done)); });
  auto second = later<void>([&](auto done) { writer->async_write("more", std::move(done)); });
  CHECK(get(second).error().reason == "file.queue");
  CHECK(is_open(first));
}

TEST_CASE("files: a write that the provider refuses ends the file, and never commits it") {
  Filed f;
  f.fake->content["x"] = "old";
  f.fake->writes = {Error(Status::no_space, "full", "file.full")};
  std::string reason = "file.full";
  SECTION("its error is told") {}
  SECTION("but an end that is under way says more") {
    f.fake->ends = {Error(Status::forbidden, "not yours", "file.forbidden")};
    reason = "file.forbidden";
  }
  SECTION("a machine that was stopped meanwhile is started again") {
    f.fake->ends = {Error(Status::conflict, "stopped")};
    reason.clear();
  }
  auto written =
      later<void>([&](auto done) { f.files->async_write_file("x", "new", {}, std::move(done)); });
  const auto result = get(written);
  CHECK((result.ok() ? std::string() : result.error().reason) == reason);
  CHECK(eventually([&] { return f.fake->dropped == f.fake->opened; }));
  CHECK(f.fake->content["x"] == (reason.empty() ? "new" : "old"));
}

TEST_CASE("files: a commit behind a write that is refused hears of it") {
  Filed f;
  const auto writer = f.files->create("x");
  f.fake->room = 0;
  auto written = later<void>([&](auto done) { writer->async_write("x", std::move(done)); });
  auto committed = later<void>([&](auto done) { writer->async_commit(std::move(done)); });
  f.fake->lane.post([&] {
    f.fake->writes = {Error(Status::crashed, "it took more than it was given")};
    if (const auto stream = f.fake->writer.lock()) stream->sink_->on_writable();
  });
  CHECK(get(written).error().code == Status::crashed);
  CHECK(get(committed).error().code == Status::crashed);
  CHECK(f.fake->content.count("x") == 0);
}

TEST_CASE("files: a write waits for room, and a commit for the writes") {
  Filed f;
  f.fake->room = 2;
  const auto writer = f.files->create("x");
  auto written = later<void>([&](auto done) { writer->async_write("hello", std::move(done)); });
  auto committed = later<void>([&](auto done) { writer->async_commit(std::move(done)); });
  auto late = later<void>([&](auto done) { writer->async_write("late", std::move(done)); });
  CHECK(get(late).error().code == Status::conflict);
  CHECK(is_open(written));
  CHECK(is_open(committed));
  f.fake->room = 100;
  f.fake->lane.post([&] {
    if (const auto stream = f.fake->writer.lock()) stream->sink_->on_writable();
  });
  CHECK(get(written).ok());
  CHECK(get(committed).ok());
  CHECK(f.fake->content["x"] == "hello");
}

TEST_CASE("files: a writer that is dropped or cancelled lets go of its file") {
  Filed f;
  auto writer = f.files->create("x");
  writer->write("text");
  SECTION("dropped") {
    writer.reset();
  }
  SECTION("cancelled") {
    writer->cancel();
    CHECK(error_of([&] { writer->commit(); }).code == Status::cancelled);
  }
  CHECK(eventually([&] { return f.fake->dropped == 1; }));
  CHECK(f.fake->content.count("x") == 0);
}

TEST_CASE("files: a writer that is cancelled after its commit may have written") {
  Filed f;
  const auto writer = f.files->create("x");
  f.fake->room = 0;
  auto committed = later<void>([&](auto done) {
    // Before the provider can answer.
    f.fake->lane.post([writer, done = std::move(done)]() mutable {
      writer->async_commit(std::move(done));
      writer->cancel();
    });
  });
  const auto result = get(committed);
  CHECK(result.error().code == Status::cancelled);
  CHECK(result.error().may_have_started);
}

TEST_CASE("files: a provider that ends a file early has not written it") {
  Filed f;
  const auto writer = f.files->create("x");
  f.fake->lane.post([&] {
    if (const auto stream = f.fake->writer.lock()) stream->sink_->done({}, {});
  });
  CHECK(eventually([&] { return error_of([&] { writer->write("x"); }).code != Status::ok; }));
  CHECK(error_of([&] { writer->commit(); }).code != Status::ok);
}

TEST_CASE("files: a watch answers when it watches, and tells each change") {
  Filed f;
  f.fake->messages = {R"({"event":"start","path":"."})", R"({"event":"create","path":"a"})",
                      R"({"event":"write","path":"x","pathBytes":"//4="})"};
  std::mutex mutex;
  std::vector<std::string> seen;
  const auto watch = f.files->watch(".", true, [&](const FileEvent& event) {
    const std::lock_guard lock(mutex);
    seen.push_back(event.event + " " + event.path);
  });
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return seen.size() == 2;
  }));
  CHECK(seen[0] == "create a");
  CHECK(seen[1] == "write \xff\xfe");
  auto ended = later<void>([&](auto done) { watch->async_wait(std::move(done)); });
  f.fake->lane.post([sink = f.fake->watcher] { sink->done({}, {}); });
  CHECK(get(ended).ok());
}

TEST_CASE("files: a watch whose listener throws, or that cannot be read, ends") {
  Filed f;
  f.fake->messages = {R"({"event":"start","path":"."})", R"({"event":"create","path":"a"})"};
  Status expected = Status::internal;
  SECTION("throws") {}
  SECTION("no message") {
    f.fake->messages[1] = "no json";
    expected = Status::crashed;
  }
  const auto watch =
      f.files->watch(".", true, [](const FileEvent&) { throw std::runtime_error("no more"); });
  auto ended = later<void>([&](auto done) { watch->async_wait(std::move(done)); });
  CHECK(get(ended).error().code == expected);
}

}  // namespace sandforge
