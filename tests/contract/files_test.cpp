// Files of a session, as the provider local serves them: in this process, and from one of its own.
#include "sandforge/files.hpp"

#include <csignal>
#include <future>
#include <mutex>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

class EndOfFile final : public FileSink {
 public:
  void on_data(Bytes) override {}
  void on_message(std::string_view) override {}
  void on_writable() override {}
  void done(std::optional<Error> error, StreamEnd) override { end.set_value(std::move(error)); }
  std::promise<std::optional<Error>> end;
};

template <class Work>
auto on_lane(const Lane& lane, Work work) {
  std::promise<decltype(work())> made;
  lane.post([&] { made.set_value(work()); });
  return made.get_future().get();
}

// An operation that is cancelled as soon as it was sent.
template <class T, class Start>
Error cancelled(const Lane& lane, Start start) {
  auto told = std::make_shared<std::promise<Result<T>>>();
  const auto pending = on_lane(lane, [&] {
    auto begun =
        start(Handler<T>([told](Result<T> result) { told->set_value(std::move(result)); }));
    begun->cancel();
    return begun;
  });
  return told->get_future().get().error();
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "files are written whole, read in pieces and watched") {
  const auto sandbox = started();
  const auto files = sandbox->files();

  WriteOptions options;
  options.create_parents = true;
  options.mode = 0755;
  files->write_file("bin/hello", "#!/bin/sh\necho hello\n", options);
  CHECK(sandbox->exec({"bin/hello"}).out == "hello\n");

  // A file of any size, with a window of it in memory.
  const auto reader = files->open("bin/hello");
  std::string text;
  for (std::string piece; !(piece = reader->read()).empty();)
    text += piece;
  CHECK(text == "#!/bin/sh\necho hello\n");

  std::mutex mutex;
  std::vector<std::string> changes;
  const auto watch = files->watch(".", true, [&](const FileEvent& change) {
    const std::lock_guard lock(mutex);
    changes.push_back(change.event + " " + change.path);
  });
  files->move("bin/hello", "bin/hi");
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return changes.size() >= 2;
  }));
  const std::lock_guard lock(mutex);
  CHECK(changes == std::vector<std::string>{"rename bin/hello", "create bin/hi"});
}

TEST_CASE_METHOD(LocalFixture, "an absolute path is one below the session's folder, or refused") {
  const auto sandbox = started();
  const auto files = sandbox->files();
  files->write_file((folder() / "a").string(), "1");
  CHECK(files->read_file("a") == "1");
  for (const std::string& path : {std::string("/etc/passwd"), std::string("../s2/x"),
                                  folder().string() + "2/x", std::string("..")}) {
    const Error refused = error_of([&] { files->read_file(path); });
    CHECK(refused.code == Status::forbidden);
    CHECK(refused.reason == "file.outside");
  }
}

TEST_CASE_METHOD(LocalFixture, "what is cancelled or lost leaves the old file, and no other") {
  const auto sandbox = started();
  const auto files = sandbox->files();
  files->write_file("file", "old");
  const auto entries = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder()))
      names.push_back(entry.path().filename().string());
    return names;
  };
  {
    const auto writer = files->create("file");
    writer->write(std::string(1 << 20, 'x'));
    SECTION("dropped") {}
    SECTION("cancelled") {
      writer->cancel();
    }
    SECTION("the session is stopped meanwhile") {
      sandbox->stop();
      CHECK(error_of([&] { writer->commit(); }).code != Status::ok);
    }
  }
  CHECK(eventually([&] { return entries() == std::vector<std::string>{"file"}; }));
  CHECK(read_file(folder() / "file") == "old");
}

TEST_CASE_METHOD(LocalFixture,
                 "what was sent and then cancelled says whether it may have happened") {
  const auto keeper = started();
  const Lane lane = runtime().make_lane();
  auto backend = on_lane(provider()->lane(), [&] {
    auto context = std::make_shared<SessionContext>();
    context->session_id = SessionId("s");
    CreateRequest request;
    request.lane = lane;
    request.context = std::move(context);
    return provider()->create(std::move(request)).value();
  });
  await_result<StartResult>([&](auto done) {
    lane.post([&, done = std::move(done)]() mutable {
      backend->start(
          StartRequest(), [](const ProviderSandboxId&) {}, std::move(done));
    });
  });
  FilesBackend& files = *on_lane(lane, [&] { return backend->files(); });
  // Nothing is answered from now on.
  const pid_t guest = guest_of(folder().string());
  REQUIRE(guest > 0);
  REQUIRE(::kill(guest, SIGSTOP) == 0);

  for (const bool committed : {false, true}) {
    const auto sink = std::make_shared<EndOfFile>();
    const auto stream = on_lane(lane, [&] {
      auto opened = files.write("file", {}, sink).value();
      if (committed) CHECK(opened->shutdown_write().ok());
      opened->cancel();
      return opened;
    });
    const auto end = sink->end.get_future().get();
    REQUIRE(end);
    CHECK(end->reason == "file.cancelled");
    CHECK(end->may_have_started == committed);
  }
  const auto removed =
      cancelled<void>(lane, [&](auto done) { return files.remove("x", true, std::move(done)); });
  CHECK(removed.reason == "file.cancelled");
  CHECK(removed.may_have_started);
  CHECK(cancelled<void>(lane, [&](auto done) {
          return files.move("x", "y", true, std::move(done));
        }).may_have_started);
  CHECK_FALSE(cancelled<std::vector<FileInfo>>(lane, [&](auto done) {
                return files.list(".", 1, std::move(done));
              }).may_have_started);

  REQUIRE(::kill(guest, SIGCONT) == 0);
  on_lane(lane, [&] { return std::exchange(backend, nullptr) != nullptr; });
}

TEST_CASE_METHOD(LocalFixture, "files of a session that is stopped, and of one that is gone") {
  const auto sandbox = started();
  const auto files = sandbox->files();
  files->write_file("file", "kept");
  sandbox->stop();
  CHECK(files->read_file("file") == "kept");
  // Behind its back: told once, then there is a new one.
  fs::remove_all(folder());
  CHECK(error_of([&] { files->stat("file"); }).code == Status::gone);
  CHECK(error_of([&] { files->stat("file"); }).code == Status::not_found);
}

TEST_CASE_METHOD(LocalFixture, "a reader that waits, a watch and many files at once") {
  const auto sandbox = started();
  const auto files = sandbox->files();
  REQUIRE(sandbox->exec({"truncate", "-s", "64M", "hole"}).success);
  ReadOptions slow;
  slow.window = 1024;
  const auto waiting = files->open("hole", slow);
  const auto watch = files->watch(".", false, nullptr);
  std::vector<std::shared_ptr<FileWriter>> writers;
  for (int i = 0; i < 50; ++i) {
    writers.push_back(files->create("many" + std::to_string(i)));
    writers.back()->write(std::to_string(i));
  }
  for (const auto& writer : writers)
    writer->commit();
  CHECK(files->list(".").size() == 51);
  CHECK(waiting->read().size() == 1024);
  std::uint64_t total = 1024;
  for (std::string bytes; !(bytes = waiting->read()).empty();)
    total += bytes.size();
  CHECK(total == 64U << 20);
}
