// Files of plugins, good and bad, behind core's interfaces.
#include "plugin/abi_files.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <mutex>

#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

namespace {

// What the plugin was asked for last, and how it answers.
struct FakeFile : sf_stream {
  inline static std::atomic<int> alive{0};
  sf_stream_events events{};
  std::atomic<int> cancels{0};
  std::atomic<bool> shut{false};
  std::atomic<std::uint64_t> granted{0};
  std::size_t accepts = SIZE_MAX;  // of each write
  std::string written;

  FakeFile() {
    ++alive;
    static const sf_stream_vtbl table = {
        sizeof(sf_stream_vtbl),
        [](sf_stream* self, std::uint64_t bytes) noexcept { of(self).granted += bytes; },
        [](sf_stream* self, sf_bytes data, std::uint32_t, std::size_t* accepted,
           const sf_error_sink*) noexcept -> sf_status {
          *accepted = of(self).accepts == SIZE_MAX ? data.len : of(self).accepts;
          of(self).written.append(reinterpret_cast<const char*>(data.ptr),
                                  std::min(data.len, *accepted));
          return SF_OK;
        },
        [](sf_stream* self, const sf_error_sink*) noexcept -> sf_status {
          of(self).shut = true;
          return SF_OK;
        },
        [](sf_stream* self) noexcept { ++of(self).cancels; },
        [](sf_stream* self) noexcept { delete &of(self); }};
    vtbl = &table;
  }
  ~FakeFile() { --alive; }
  static FakeFile& of(sf_stream* self) { return *static_cast<FakeFile*>(self); }

  void data(std::string_view bytes, std::uint32_t flags = 0) const {
    events.on_data(events.ctx, SF_CHANNEL_DATA, flags,
                   {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
  void done(std::uint64_t delivered, std::uint64_t dropped = 0) const {
    const sf_stream_end end{sizeof(end), delivered, dropped};
    events.done(events.ctx, nullptr, &end);
  }
};

struct Asked {
  std::string path, target;
  std::uint64_t offset = 0, length = 0, window = 0;
  std::uint32_t depth = 0, mode = 0, flags = 0;
  FakeFile* file = nullptr;
  std::function<void(sf_file_list_completion)> list;  // on a thread of its own
  sf_status status = SF_OK;
  sf_stream* gives = nullptr;  // instead of a file
};
Asked asked;

std::string text(sf_bytes bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.ptr), bytes.len);
}

sf_status give_file(const sf_stream_events* events, sf_stream** stream, const sf_error_sink* err) {
  if (asked.status != SF_OK) return fail(err, asked.status, "refused");
  if (asked.gives != nullptr) {
    *stream = asked.gives;
    return SF_OK;
  }
  asked.file = new FakeFile;
  asked.file->events = *events;
  *stream = asked.file;
  return SF_OK;
}

sf_status give_list(sf_file_list_completion done, sf_op** op) {
  FakeOp::give(op);
  std::thread([done, list = asked.list] { list(done); }).detach();
  return SF_OK;
}

const sf_files_ext kFiles = {
    sizeof(sf_files_ext),
    [](sf_sandbox*, sf_bytes path, sf_file_list_completion done, sf_op** op,
       const sf_error_sink*) noexcept -> sf_status {
      asked.path = text(path);
      return give_list(done, op);
    },
    [](sf_sandbox*, sf_bytes path, uint32_t depth, sf_file_list_completion done, sf_op** op,
       const sf_error_sink*) noexcept -> sf_status {
      asked.path = text(path);
      asked.depth = depth;
      return give_list(done, op);
    },
    [](sf_sandbox*, sf_bytes path, uint64_t offset, uint64_t length, uint64_t window,
       const sf_stream_events* events, sf_stream** stream,
       const sf_error_sink* err) noexcept -> sf_status {
      asked.path = text(path);
      asked.offset = offset;
      asked.length = length;
      asked.window = window;
      return give_file(events, stream, err);
    },
    [](sf_sandbox*, sf_bytes path, uint32_t mode, uint32_t flags, const sf_stream_events* events,
       sf_stream** stream, const sf_error_sink* err) noexcept -> sf_status {
      asked.path = text(path);
      asked.mode = mode;
      asked.flags = flags;
      return give_file(events, stream, err);
    },
    [](sf_sandbox*, sf_bytes path, uint32_t mode, uint32_t flags, sf_completion done, sf_op** op,
       const sf_error_sink*) noexcept -> sf_status {
      asked.path = text(path);
      asked.mode = mode;
      asked.flags = flags;
      FakeOp::give(op);
      std::thread([done] { done.done(done.ctx, nullptr); }).detach();
      return SF_OK;
    },
    [](sf_sandbox*, sf_bytes from, sf_bytes to, uint32_t flags, sf_completion done, sf_op** op,
       const sf_error_sink*) noexcept -> sf_status {
      asked.path = text(from);
      asked.target = text(to);
      asked.flags = flags;
      FakeOp::give(op);
      std::thread([done] { done.done(done.ctx, nullptr); }).detach();
      return SF_OK;
    },
    [](sf_sandbox*, sf_bytes path, uint32_t flags, sf_completion done, sf_op** op,
       const sf_error_sink*) noexcept -> sf_status {
      asked.path = text(path);
      asked.flags = flags;
      FakeOp::give(op);
      std::thread([done] { done.done(done.ctx, nullptr); }).detach();
      return SF_OK;
    },
    [](sf_sandbox*, sf_bytes path, uint32_t flags, uint64_t window, const sf_stream_events* events,
       sf_stream** stream, const sf_error_sink* err) noexcept -> sf_status {
      asked.path = text(path);
      asked.flags = flags;
      asked.window = window;
      return give_file(events, stream, err);
    },
    nullptr,
    nullptr};

sf_bytes bytes_of(const char* value) {
  return {reinterpret_cast<const std::uint8_t*>(value), std::strlen(value)};
}

sf_file_info info(const char* path) {
  sf_file_info out{};
  out.struct_size = sizeof out;
  out.path = bytes_of(path);
  out.kind = SF_FILE_REGULAR;
  out.mode = 0100644;  // more than permission bits
  out.size = 5;
  out.modified_at = 7;
  return out;
}

class FileRecorder final : public FileSink {
 public:
  void on_data(Bytes data) override {
    add(std::string(reinterpret_cast<const char*>(data.data()), data.size()));
  }
  void on_message(std::string_view message) override { add("[" + std::string(message) + "]"); }
  void on_writable() override { add("<writable>"); }
  void done(std::optional<Error> error, StreamEnd end) override {
    add("<done " + std::string(error ? to_string(error->code) : "OK") + " " +
        std::to_string(end.delivered) + ">");
    ended_.set_value();
  }
  std::string wait() {
    if (ended_.get_future().wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      return "no end";
    return seen();
  }
  std::string seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    seen_ += what;
  }
  mutable std::mutex mutex_;
  std::string seen_;
  std::promise<void> ended_;
};

struct Served {
  Served() {
    asked = Asked();
    bench.files = &kFiles;
    sandbox = bench.make_sandbox();
    files = sandbox->files();
    REQUIRE(files != nullptr);
  }
  ~Served() {
    stream.reset();
    bench.settle(bench.sandbox_lane);
  }
  Result<std::vector<FileInfo>> list(std::function<void(sf_file_list_completion)> answer) {
    asked.list = std::move(answer);
    return bench.wait<std::vector<FileInfo>>([&](auto done) {
      bench.on(bench.sandbox_lane, [&, held = std::make_shared<decltype(done)>(std::move(done))] {
        files->list("dir", 3, std::move(*held));
      });
    });
  }
  void read(std::uint64_t window = 1000) {
    ReadOptions options;
    options.offset = 3;
    options.window = window;
    open([&] { return files->read("file", options, sink); });
  }
  void open(const std::function<FilesBackend::Stream()>& call) {
    auto opened = bench.on(bench.sandbox_lane, [&] { return call(); });
    REQUIRE(opened.ok());
    stream = *std::move(opened);
  }
  std::uint64_t faults(Fault fault) const { return bench.faults(fault); }

  Bench bench;
  std::shared_ptr<SandboxBackend> sandbox;
  FilesBackend* files = nullptr;
  std::shared_ptr<FileRecorder> sink = std::make_shared<FileRecorder>();
  std::shared_ptr<FileStreamBackend> stream;
};

}  // namespace

TEST_CASE("files: what is asked for arrives as it is") {
  Served s;
  s.read(17);
  CHECK(asked.path == "file");
  CHECK(asked.offset == 3);
  CHECK(asked.length == SF_NONE);
  CHECK(asked.window == 17);
  s.stream.reset();
  WriteOptions write;
  write.mode = 0640;
  write.create_parents = true;
  s.sink = std::make_shared<FileRecorder>();
  s.open([&] { return s.files->write("new", write, s.sink); });
  CHECK(asked.mode == 0640);
  CHECK(asked.flags == SF_FILE_CREATE_PARENTS);
  const auto run = [&](auto call) {
    return s.bench.wait<void>([&](auto done) {
      s.bench.on(s.bench.sandbox_lane, [&, held = std::make_shared<decltype(done)>(
                                               std::move(done))] { call(std::move(*held)); });
    });
  };
  CHECK(run([&](Handler<void> done) { s.files->move("a", "b", true, std::move(done)); }).ok());
  CHECK(asked.path + asked.target == "ab");
  CHECK(asked.flags == SF_FILE_REPLACE);
  CHECK(run([&](Handler<void> done) { s.files->remove("a", true, std::move(done)); }).ok());
  CHECK(asked.flags == SF_FILE_REMOVE_TREE);
  MakeDirectoryOptions make;
  make.mode = 0700;
  CHECK(run([&](Handler<void> done) { s.files->make_directory("d", make, std::move(done)); }).ok());
  CHECK(asked.mode == 0700);
  const auto refused = run(
      [&](Handler<void> done) { s.files->remove(std::string("a\0b", 3), true, std::move(done)); });
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::invalid);
}

TEST_CASE("files: a list comes in pieces") {
  Served s;
  const auto all = s.list([](sf_file_list_completion done) {
    sf_file_info first = info("a");
    sf_file_info link = info("b");
    link.kind = SF_FILE_SYMLINK;
    link.link_target = bytes_of("a");
    done.done(done.ctx, nullptr, &first, 1, sizeof first, 1);
    done.done(done.ctx, nullptr, &link, 1, sizeof link, 1);
    done.done(done.ctx, nullptr, nullptr, 0, 0, 0);
  });
  REQUIRE(all.ok());
  REQUIRE(all->size() == 2);
  CHECK(all.value()[0].path == "a");
  CHECK(all.value()[0].mode == 0644);
  CHECK(all.value()[1].link_target == "a");
  CHECK(asked.depth == 3);
  CHECK(s.bench.plugin->faults.total() == 0);
}

TEST_CASE("files: a list that nobody can hold is too large") {
  Served s;
  // Each piece is small, and so is their count.
  const auto all = s.list([](sf_file_list_completion done) {
    static const std::string path(16 * 1024, 'p');
    static const std::vector<sf_file_info> many(100, info(path.c_str()));
    for (int i = 0; i < 50; ++i)
      done.done(done.ctx, nullptr, many.data(), many.size(), sizeof(sf_file_info), 1);
    done.done(done.ctx, nullptr, nullptr, 0, 0, 0);
  });
  REQUIRE_FALSE(all.ok());
  CHECK(all.error().code == Status::invalid);
  CHECK(all.error().reason == "file.too_large");
}

TEST_CASE("files: lists that lie are faults, and no list") {
  Served s;
  using Answer = std::function<void(sf_file_list_completion)>;
  Answer answer;
  Fault fault = Fault::bad_value;
  static sf_file_info one = info("a");
  SECTION("a stride that is too small") {
    answer = [](auto done) { done.done(done.ctx, nullptr, &one, 1, sizeof one - 8, 0); };
  }
  SECTION("no entries where there are some") {
    answer = [](auto done) { done.done(done.ctx, nullptr, nullptr, 3, sizeof one, 0); };
  }
  SECTION("more than anybody can hold") {
    answer = [](auto done) { done.done(done.ctx, nullptr, &one, 1U << 30, sizeof one, 0); };
  }
  SECTION("an entry that is incomplete") {
    fault = Fault::missing_value;
    answer = [](auto done) {
      sf_file_info brief = info("a");
      brief.struct_size = 16;
      done.done(done.ctx, nullptr, &brief, 1, sizeof brief, 0);
    };
  }
  SECTION("good pieces after a bad one") {
    answer = [](auto done) {
      done.done(done.ctx, nullptr, &one, 1, 8, 1);
      done.done(done.ctx, nullptr, &one, 1, sizeof one, 0);
    };
  }
  const auto all = s.list(answer);
  REQUIRE_FALSE(all.ok());
  CHECK(all.error().code == Status::crashed);
  CHECK(s.faults(fault) >= 1);
}

TEST_CASE("files: pieces after the last one are late") {
  Served s;
  std::promise<void> told;
  const auto all = s.list([&told](sf_file_list_completion done) {
    static sf_file_info one = info("a");
    done.done(done.ctx, nullptr, &one, 1, sizeof one, 0);
    done.done(done.ctx, nullptr, &one, 1, sizeof one, 1);
    done.done(done.ctx, nullptr, &one, 1, sizeof one, 0);
    told.set_value();
  });
  told.get_future().wait();
  REQUIRE(all.ok());
  CHECK(all->size() == 1);
  CHECK(s.faults(Fault::late_callback) == 2);
}

TEST_CASE("files: a stat that is not one file is a fault") {
  Served s;
  asked.list = [](sf_file_list_completion done) {
    const sf_file_info two[] = {info("a"), info("b")};
    done.done(done.ctx, nullptr, two, 2, sizeof two[0], 0);
  };
  const auto one = s.bench.wait<FileInfo>([&](auto done) {
    s.bench.on(s.bench.sandbox_lane, [&, held = std::make_shared<decltype(done)>(std::move(done))] {
      s.files->stat("file", std::move(*held));
    });
  });
  REQUIRE_FALSE(one.ok());
  CHECK(one.error().code == Status::crashed);
}

TEST_CASE("files: bytes come in order, under credit, and end once") {
  Served s;
  s.read(10);
  asked.file->data("hello");
  asked.file->data("world");
  s.stream->grant(3);
  CHECK(asked.file->granted == 3);
  asked.file->data("abc");
  asked.file->done(13);
  CHECK(s.sink->wait() == "helloworldabc<done OK 13>");
  CHECK(s.bench.plugin->faults.total() == 0);
  const auto cancels = asked.file->cancels.load();
  s.stream.reset();
  s.bench.settle(s.bench.sandbox_lane);
  CHECK(cancels == 0);
  CHECK(FakeFile::alive == 0);
}

TEST_CASE("files: bytes beyond the credit end the file") {
  Served s;
  s.read(4);
  asked.file->data("hello");
  CHECK(s.sink->wait() == "<done CRASHED 0>");
  CHECK(s.faults(Fault::over_credit) == 1);
  s.bench.settle(s.bench.sandbox_lane);
  CHECK(asked.file->cancels == 1);
  asked.file->done(5);
}

TEST_CASE("files: an end that counts other bytes is no whole file") {
  Served s;
  s.read();
  asked.file->data("hello");
  asked.file->done(7);
  CHECK(s.sink->wait() == "hello<done CRASHED 5>");
  CHECK(s.faults(Fault::contradiction) == 1);
}

TEST_CASE("files: data and a second end after the end are late") {
  Served s;
  s.read();
  const FakeFile* file = asked.file;
  file->done(0);
  file->data("late");
  file->done(0);
  CHECK(s.sink->wait() == "<done OK 0>");
  CHECK(s.faults(Fault::late_callback) == 2);
}

TEST_CASE("files: messages are whole, however they were cut") {
  Served s;
  s.open([&] { return s.files->watch("dir", true, 1000, s.sink); });
  CHECK(asked.flags == SF_WATCH_RECURSIVE);
  asked.file->data("{\"a\"", SF_DATA_TEXT);
  asked.file->data(":1}", SF_DATA_TEXT | SF_DATA_END);
  asked.file->data("{}", SF_DATA_TEXT | SF_DATA_END);
  asked.file->done(9);
  CHECK(s.sink->wait() == "[{\"a\":1}][{}]<done OK 9>");
}

TEST_CASE("files: a message without an end is cut off") {
  Served s;
  s.open([&] { return s.files->watch("dir", true, 1 << 30, s.sink); });
  asked.file->data(std::string(1 << 20, 'x'), SF_DATA_TEXT);
  CHECK(s.sink->wait() == "<done CRASHED 1048576>");
  CHECK(s.faults(Fault::bad_value) == 1);
  asked.file->done(1 << 20);
}

TEST_CASE("files: what is written, and how much of it was taken") {
  Served s;
  s.open([&] { return s.files->write("file", {}, s.sink); });
  const auto write = [&](std::string_view text) {
    return s.bench.on(s.bench.sandbox_lane, [&] {
      return s.stream->write(Bytes(reinterpret_cast<const std::byte*>(text.data()), text.size()));
    });
  };
  asked.file->accepts = 2;
  CHECK(write("hello").value() == 2);
  asked.file->accepts = 9;
  CHECK_FALSE(write("hello").ok());
  CHECK(s.faults(Fault::bad_value) == 1);
  CHECK(s.bench.on(s.bench.sandbox_lane, [&] { return s.stream->shutdown_write(); }).ok());
  CHECK(asked.file->shut);
  asked.file->done(0);
  CHECK(s.sink->wait() == "<done OK 0>");
  CHECK_FALSE(s.stream->write({}).ok());  // not on its lane
}

TEST_CASE("files: a stream that is dropped is cancelled, and heard no more") {
  Served s;
  s.read();
  FakeFile* file = asked.file;
  const sf_stream_events events = file->events;
  s.stream.reset();
  s.bench.settle(s.bench.sandbox_lane);
  CHECK(FakeFile::alive == 0);
  const sf_stream_end end{sizeof(end), 0, 0};
  events.done(events.ctx, nullptr, &end);
  s.bench.settle(s.bench.sandbox_lane);
  CHECK(s.sink->seen().empty());
}

TEST_CASE("files: a start that is refused, or gives no stream, is an error") {
  Served s;
  const auto read = [&] {
    return s.bench.on(s.bench.sandbox_lane, [&] { return s.files->read("x", {}, s.sink); });
  };
  asked.status = SF_CONFLICT;
  auto refused = read();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::conflict);
  asked.status = SF_OK;
  static sf_stream bare{nullptr};
  asked.gives = &bare;
  auto lacking = read();
  REQUIRE_FALSE(lacking.ok());
  CHECK(lacking.error().code == Status::crashed);
  CHECK(s.bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("files: a table without its functions is none") {
  Bench bench;
  static sf_files_ext part = kFiles;
  part.move = nullptr;
  bench.files = &part;
  const auto sandbox = bench.make_sandbox();
  CHECK(sandbox->files() == nullptr);
  CHECK(bench.faults(Fault::missing_value) == 1);
}
