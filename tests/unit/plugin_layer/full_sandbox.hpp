// A sandbox with every capability, in either style of the layer. Each function answers at once and
// notes how it was called.
#pragma once

#include <sandforge/plugin/coroutine.hpp>

#include "full_plugin.hpp"

namespace sandforge::test {

using namespace sandforge::plugin;

inline Task<void> take_all(Io io, std::string* into) {
  for (;;) {
    const std::optional<Piece> piece = co_await read_some(io);
    if (!piece) co_return;
    *into += piece->data;
  }
}
// Takes all of the input and notes how much that was.
inline Task<void> note_all(Io io) {
  std::string all;
  co_await take_all(io, &all);
  called("took " + std::to_string(all.size()));
}
template <class Style>
typename Style::template Result<void> receive(Io& io) {
  if constexpr (std::is_same_v<Style, Coroutine>) {
    return note_all(io);
  } else {
    std::size_t all = 0;
    while (const std::optional<Piece> piece = io.read())
      all += piece->data.size();
    called("took " + std::to_string(all));
  }
}
template <class Style>
typename Style::template Result<void> give(Io& io, const std::string& text, std::uint32_t flags) {
  if constexpr (std::is_same_v<Style, Coroutine>) {
    return write_all(io, text, SF_CHANNEL_DATA, flags);
  } else {
    io.write(text, SF_CHANNEL_DATA, flags);
  }
}

template <class Style>
class SomeProcesses : public BasicProcesses<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;

  Result<std::vector<ProcessInfo>> list(StopToken) override {
    std::vector<ProcessInfo> all(2);
    all[0].id = "p1";
    all[0].pid = 11;
    all[0].command = "sh -c x";
    all[0].detached = true;
    all[1].id = "p2";
    all[1].stray = true;
    all[1].exit = Exit::signaled(9);
    all[1].first.out = 5;
    return Style::ready(std::move(all));
  }
  void attach(Attach& attach) override {
    called("attach " + attach.id() + " " + std::to_string(attach.out_cursor()) + " " +
           std::to_string(attach.err_cursor()));
    if (attach.id() != "p1") throw Error(Code::not_found, "no such process");
    attach.accept([](const ProcessIo& io) {
      io.started("p1", 11);
      io.finish(Exit::exited(2));
    });
  }
  Result<void> signal(std::string id, std::int32_t number, SignalScope scope, StopToken) override {
    called("signal " + id + " " + std::to_string(number) +
           (scope == SignalScope::tree ? " tree" : " leader"));
    return Style::ready();
  }
  Result<void> forget(std::string id, StopToken) override {
    called("forget " + id);
    return Style::ready();
  }
};

template <class Style>
class SomeFiles : public BasicFiles<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  explicit SomeFiles(bool lean) : lean_(lean) {}

  Result<FileInfo> stat(std::string path, StopToken) override {
    if (path != "/link") throw Error(Code::not_found, "no such file").detail("path", path);
    FileInfo info;
    info.path = std::move(path);
    info.kind = FileKind::symlink;
    info.mode = 0777;
    info.size = 3;
    info.modified_at = 77;
    info.link_target = "far";
    return Style::ready(std::move(info));
  }
  Result<std::vector<FileInfo>> list(std::string path, std::uint32_t depth, StopToken) override {
    called("list " + path + " " + std::to_string(depth));
    std::vector<FileInfo> all(2);
    all[0].path = "a";
    all[1].path = "b";
    return Style::ready(std::move(all));
  }
  Result<void> read(std::string path, std::uint64_t offset, std::optional<std::uint64_t> length,
                    Io& io) override {
    called("read " + path + " " + std::to_string(offset) + " " +
           (length ? std::to_string(*length) : "all"));
    return give<Style>(io, "content", 0);
  }
  Result<void> write(std::string path, std::uint32_t mode, bool parents, Io& io) override {
    called("write " + path + " " + std::to_string(mode) + (parents ? " parents" : ""));
    return receive<Style>(io);
  }
  Result<void> make_directory(std::string path, std::uint32_t mode, bool parents,
                              StopToken) override {
    called("mkdir " + path + " " + std::to_string(mode) + (parents ? " parents" : ""));
    return Style::ready();
  }
  Result<void> move(std::string from, std::string to, bool replace, StopToken) override {
    called("move " + from + " " + to + (replace ? " replace" : ""));
    return Style::ready();
  }
  Result<void> remove(std::string path, bool tree, StopToken) override {
    called("remove " + path + (tree ? " tree" : ""));
    return Style::ready();
  }
  bool can_watch() const override { return !lean_; }
  Result<void> watch(std::string path, bool recursive, Io& io) override {
    called("watch " + path + (recursive ? " recursive" : ""));
    return give<Style>(io, "{}", SF_DATA_TEXT | SF_DATA_END);
  }
  bool can_archive() const override { return !lean_; }
  Result<void> archive_read(std::string path, Io& io) override {
    called("pack " + path);
    return give<Style>(io, "tar", 0);
  }
  Result<void> archive_write(std::string path, Io& io) override {
    called("unpack " + path);
    return receive<Style>(io);
  }

 private:
  const bool lean_;
};

template <class Style>
class SomePorts : public BasicPorts<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  explicit SomePorts(bool lean) : lean_(lean) {}
  Result<std::optional<std::string>> url(std::uint32_t port, StopToken) override {
    std::optional<std::string> answer;
    if (port == 80) answer = "http://box:80";
    return Style::ready(std::move(answer));
  }
  bool can_dial() const override { return !lean_; }
  Result<void> dial(std::uint32_t port, Io& io) override {
    called("dial " + std::to_string(port));
    return give<Style>(io, "hi", 0);
  }

 private:
  const bool lean_;
};

template <class Style>
class SomeMetrics : public BasicMetrics<Style> {
 public:
  typename Style::template Result<Metrics> read(StopToken) override {
    Metrics now;
    now.at = 5;
    now.cpu_millis = 250;
    now.process_count = 3;
    return Style::ready(std::move(now));
  }
};

template <class Style>
class SomeLifetime : public BasicLifetime<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  using Time = typename BasicLifetime<Style>::Time;
  Time left;
  Result<Time> time_left(StopToken) override { return Style::ready(left); }
  Result<void> set_time_left(Time time, StopToken) override {
    left = time;
    return Style::ready();
  }
  Result<void> keep_alive(StopToken) override {
    called("keep_alive");
    return Style::ready();
  }
  explicit SomeLifetime(bool lean) : lean_(lean) {}
  bool can_pause() const override { return !lean_; }
  Result<void> pause(StopToken) override {
    called("pause");
    return Style::ready();
  }
  Result<void> resume(StopToken) override {
    called("resume");
    return Style::ready();
  }

 private:
  const bool lean_;
};

template <class Style>
class SomeSnapshots : public BasicSnapshots<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  Result<std::optional<Checkpoint>> create(std::string name, StopToken) override {
    std::optional<Checkpoint> made;
    if (!name.empty()) {
      made.emplace();
      made->name = name;
      made->bytes = 9;
      made->warnings = {"a pipe"};
    }
    return Style::ready(std::move(made));
  }
  Result<std::vector<Checkpoint>> list(StopToken) override {
    return Style::ready(std::vector<Checkpoint>(3));
  }
  Result<void> remove(std::string name, StopToken) override {
    called("remove " + name);
    return Style::ready();
  }
  Result<void> start_from(std::string name, StopToken) override {
    throw Error(Code::not_found, "no checkpoint " + name);
  }
};

template <class Style>
class FullSandbox : public BasicSandbox<Style> {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;
  // lean: without the functions that are optional, and without a terminal.
  explicit FullSandbox(bool lean) : lean_(lean), files_(lean), ports_(lean), lifetime_(lean) {}
  Result<Started> start(Starting&) override {
    return Style::ready(Started(Outcome::connected, std::nullopt));
  }
  Result<void> stop(StopToken) override { return Style::ready(); }
  Result<void> destroy(StopToken) override { return Style::ready(); }
  Result<SandboxInfo> info(StopToken) override {
    SandboxInfo now(State::running);
    now.memory_mb = 512;
    now.metadata.set("zone", "z1");
    return Style::ready(std::move(now));
  }
  // A terminal that notes its size and the signals that it gets.
  void spawn(Spawn& spawn) override {
    spawn.accept([](const ProcessIo& io) {
      io.on_resize([](std::uint32_t cols, std::uint32_t rows, Reply reply) {
        called("resize " + std::to_string(cols) + "x" + std::to_string(rows));
        reply.ok();
      });
      io.on_signal([io](std::int32_t number, SignalScope, Reply reply) {
        reply.ok();
        io.finish(Exit::signaled(number));
      });
      io.started("t");
    });
  }
  BasicProcesses<Style>* processes() override { return &processes_; }
  BasicFiles<Style>* files() override { return &files_; }
  BasicPorts<Style>* ports() override { return &ports_; }
  BasicMetrics<Style>* metrics() override { return &metrics_; }
  BasicLifetime<Style>* lifetime() override { return &lifetime_; }
  BasicSnapshots<Style>* snapshots() override { return &snapshots_; }
  bool pty() override { return !lean_; }

 private:
  const bool lean_;
  SomeProcesses<Style> processes_;
  SomeFiles<Style> files_;
  SomePorts<Style> ports_;
  SomeMetrics<Style> metrics_;
  SomeLifetime<Style> lifetime_;
  SomeSnapshots<Style> snapshots_;
};

}  // namespace sandforge::test
