// The file system of a sandbox, as a host calls it, in both styles.
#include <sandforge/plugin/files.hpp>

#include "full_plugin.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::test;
using testing::bytes;

namespace {

std::string show(const sf_file_info& f) {
  return testing::text(f.path) + " " + std::to_string(f.kind) + " " + std::to_string(f.mode) + " " +
         std::to_string(f.size) + " " + std::to_string(f.modified_at) + " " +
         (f.link_target.ptr == nullptr ? "no link" : testing::text(f.link_target));
}
sf_file_list_completion files_of(Listed& l) {
  return {&l, [](void* ctx, const sf_error* e, const sf_file_info* first, std::size_t n,
                 std::size_t stride, std::uint32_t) noexcept {
            static_cast<Listed*>(ctx)->take(e, first, n, stride, show);
          }};
}

}  // namespace

TEST_CASE("files: every function, and streams under credit") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto& table = full.of_sandbox<sf_files_ext>(SF_EXT_FILES);
  const auto stat = [&](const char* path) {
    return full.ask<Listed>([&](Listed& l) {
      return table.stat(full.box, bytes(path), files_of(l), nullptr, nullptr);
    });
  };
  CHECK(stat("/link").text == "/link 3 511 3 77 far");
  CHECK(stat("/none").failure.code == SF_NOT_FOUND);
  CHECK(stat("/none").failure.details == R"({"path":"/none"})");
  const auto list = full.ask<Listed>([&](Listed& l) {
    return table.list(full.box, bytes("/dir"), 2, files_of(l), nullptr, nullptr);
  });
  CHECK(list.text == "a 0 0 0 0 no link | b 0 0 0 0 no link");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.read(full.box, bytes("/f"), 1, SF_NONE, 3, events, out, nullptr);
  }) == "content");
  full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.read(full.box, bytes("/f"), 1, 4, 3, events, out, nullptr);
  });
  CHECK(full.stream(
                [&](const sf_stream_events* events, sf_stream** out) {
                  return table.write(full.box, bytes("/f"), 0600, SF_FILE_CREATE_PARENTS, events,
                                     out, nullptr);
                },
                std::string(500, 'i'))
            .empty());
  full.plain([&](sf_completion done) {
    return table.make_directory(full.box, bytes("/d"), 0700, 0, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return table.move(full.box, bytes("/a"), bytes("/b"), SF_FILE_REPLACE, done, nullptr, nullptr);
  });
  full.plain([&](sf_completion done) {
    return table.remove(full.box, bytes("/a"), SF_FILE_REMOVE_TREE, done, nullptr, nullptr);
  });
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.watch(full.box, bytes("/w"), SF_WATCH_RECURSIVE, 3, events, out, nullptr);
  }) == "{}");
  CHECK(full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.archive_read(full.box, bytes("/t"), 3, events, out, nullptr);
  }) == "tar");
  full.stream([&](const sf_stream_events* events, sf_stream** out) {
    return table.archive_write(full.box, bytes("/t"), events, out, nullptr);
  });
  CHECK(take_calls() ==
        "list /dir 2; read /f 1 all; read /f 1 4; write /f 384 parents; took 500; mkdir /d 448; "
        "move /a /b replace; remove /a tree; watch /w recursive; pack /t; unpack /t; took 0");
}

TEST_CASE("a file whose writer is dropped half way is not taken for a whole one") {
  Full full(GENERATE(Style::blocking, Style::coroutine));
  const auto& table = full.of_sandbox<sf_files_ext>(SF_EXT_FILES);
  testing::Consumer consumer(0);
  full.driver->call([&] {
    const sf_stream_events events = consumer.events();
    CHECK(table.write(full.box, bytes("/f"), 0, 0, &events, &consumer.stream, nullptr) == SF_OK);
    std::size_t accepted = 0;
    CHECK(consumer.stream->vtbl->write(consumer.stream, bytes("half"), 0, &accepted, nullptr) ==
          SF_OK);
    consumer.stream->vtbl->release(std::exchange(consumer.stream, nullptr));
  });
  REQUIRE(full.driver->wait([&] { return consumer.done > 0; }));
  CHECK(consumer.failure.code == SF_CANCELLED);
  CHECK(consumer.failure.message == "the host gave up its input half way");
}

TEST_CASE("functions of files that a sandbox lacks are null in its table") {
  Full full(GENERATE(Style::blocking, Style::coroutine), R"({"lean":true})");
  const auto& table = full.of_sandbox<sf_files_ext>(SF_EXT_FILES);
  CHECK(table.watch == nullptr);
  CHECK(table.archive_read == nullptr);
  CHECK(table.archive_write == nullptr);
  CHECK(table.stat != nullptr);
}
