#include "sandforge/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <future>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>

#include "sandforge/support/json.hpp"

using namespace sandforge;

namespace {

struct Lines {
  std::vector<std::string> lines;
  Logger::Options options;
  Lines() { options.clock = std::make_shared<ManualClock>(1'709'210'096'123'456'789); }
  std::unique_ptr<Logger> logger() {
    return std::make_unique<Logger>([this](std::string_view line) { lines.emplace_back(line); },
                                    options);
  }
};

}  // namespace

TEST_CASE("log: a line of text") {
  Lines out;
  out.logger()->write(LogLevel::warn, "something\nodd",
                      {{"plugin", "x"}, {"empty", ""}, {"text", "a b"}, {"q", "say \"hi\""}});
  REQUIRE(out.lines.size() == 1);
  CHECK(out.lines[0] ==
        "2024-02-29T12:34:56.123Z WARN  something\\nodd plugin=x empty=\"\" text=\"a b\" "
        "q=\"say \\\"hi\\\"\"\n");
}

TEST_CASE("log: a line of JSON") {
  Lines out;
  out.options.format = LogFormat::json;
  out.logger()->write(LogLevel::error, "bad \xff byte", {{"time", "mine"}, {"n", "1"}});
  CHECK(out.lines[0] ==
        "{\"time\":\"2024-02-29T12:34:56.123Z\",\"level\":\"error\",\"message\":\"bad "
        "\xEF\xBF\xBD byte\",\"time_\":\"mine\",\"n\":\"1\"}\n");
}

TEST_CASE("log: levels") {
  Lines out;
  const auto logger = out.logger();
  logger->write(LogLevel::debug, "no");
  CHECK(out.lines.empty());
  CHECK_FALSE(logger->enabled(LogLevel::debug));
  logger->set_level(LogLevel::debug);
  logger->write(LogLevel::debug, "yes");
  CHECK(out.lines.size() == 1);
  logger->set_level(LogLevel::off);
  logger->write(LogLevel::error, "no");
  CHECK(out.lines.size() == 1);
  CHECK(to_string(LogLevel::info) == "info");
}

TEST_CASE("log: secrets are masked, of the record and of the process") {
  Lines out;
  const auto logger = out.logger();
  logger->redactor().add("hunter22");
  logger->write(
      LogLevel::info, "token tok-12345 and hunter22",
      {{"token", "tok-12345", true}, {"url", "https://h/?t=tok-12345"}, {"p", "hunter22"}});
  CHECK(out.lines[0].find("tok-12345") == std::string::npos);
  CHECK(out.lines[0].find("hunter22") == std::string::npos);
  CHECK(out.lines[0].find("token=***") != std::string::npos);
  logger->write(LogLevel::info, "the next record knows tok-12345");
  CHECK(out.lines[1].find("tok-12345") != std::string::npos);
  // Cutting must not leave half of a secret.
  logger->write(LogLevel::info, std::string(8190, 'x') + "hunter22");
  CHECK(out.lines[2].find("hu") == std::string::npos);
}

TEST_CASE("log: a record is bounded") {
  Lines out;
  const std::string big(100'000, 'y');
  std::vector<LogField> fields(100, LogField("f", big));
  out.logger()->write(LogLevel::info, big, fields);
  CHECK(out.lines[0].size() < 8192 + 33 * 4400);
  CHECK(out.lines[0].find("fields_cut=68") != std::string::npos);
  CHECK(out.lines[0].find("more bytes)") != std::string::npos);
}

TEST_CASE("log: a cut never lands within a secret, wherever it comes") {
  Lines out;
  const auto logger = out.logger();
  logger->redactor().add("hunter22");
  std::string message;
  while (message.size() < 60'000)
    message += "hunter22 tok-12345 ";
  for (std::size_t before = 0; before < 20; ++before)
    logger->write(LogLevel::info, std::string(before, '-') + message, {{"t", "tok-12345", true}});
  for (const std::string& line : out.lines) {
    CHECK(line.find('h') == std::string::npos);
    CHECK(line.find("tok") == std::string::npos);
    CHECK(line.find("more bytes)") != std::string::npos);
  }
}

TEST_CASE("log: a large secret is masked, at the price of its size") {
  Lines out;
  const auto logger = out.logger();
  const auto peak_kib = [] {
    rusage usage{};
    REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_maxrss;
  };
  std::string secret;
  for (int i = 0; secret.size() < (1U << 20); ++i)
    secret += std::to_string(i) + "\n";
  const auto before = peak_kib();
  logger->write(LogLevel::info, "m", {{"big", secret, true}, {"small", "tok-12345", true}});
  logger->write(LogLevel::info, "tok-12345", {{"big", secret, true}, {"small", "tok-12345", true}});
  CHECK(peak_kib() - before < 100'000);
  REQUIRE(out.lines.size() == 2);
  CHECK(out.lines[0].find("m big=*** small=***\n") != std::string::npos);
  CHECK(out.lines[1].find("*** big=*** small=***\n") != std::string::npos);
}

TEST_CASE("log: a sink that throws loses the record, not the program") {
  Logger logger([](std::string_view) { throw std::runtime_error("full"); });
  logger.write(LogLevel::info, "x");
  CHECK(logger.lost() == 1);
}

TEST_CASE("log: lines of many threads stay whole") {
  Lines out;
  const auto logger = out.logger();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i)
        logger->write(LogLevel::info, "m", {{"t", std::to_string(t)}});
    });
  for (auto& thread : threads)
    thread.join();
  CHECK(out.lines.size() == 800);
  for (const auto& line : out.lines)
    CHECK(line.substr(24, 10) == " INFO  m t");
}

namespace {

// A pipe; its writing end blocks, as a standard descriptor does.
struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    from = ends[0];
    to = ends[1];
    REQUIRE(::fcntl(from, F_SETFL, O_NONBLOCK) == 0);
  }
  ~Pipe() {
    ::close(from);
    close_writer();
  }
  void close_writer() { ::close(std::exchange(to, -1)); }
  // What there is until `mark` comes, or the end.
  std::string read_until(const std::string& mark) const {
    std::string got;
    char buffer[65536];
    while (mark.empty() || got.find(mark) == std::string::npos) {
      const ssize_t n = ::read(from, buffer, sizeof(buffer));
      if (n > 0) {
        got.append(buffer, static_cast<std::size_t>(n));
        continue;
      }
      if (n == 0) return got;
      pollfd state{from, POLLIN, 0};
      if (::poll(&state, 1, kPatienceMs) != 1) throw std::runtime_error("nothing came: " + mark);
    }
    return got;
  }
  static constexpr int kPatienceMs = 60'000;
  int from = -1;
  int to = -1;
};

// Runs it in another thread; false when it does not come to its end.
bool ends(std::function<void()> work) {
  auto over = std::make_shared<std::promise<void>>();
  auto future = over->get_future();
  std::thread([over, work = std::move(work)] {
    work();
    over->set_value();
  }).detach();
  return future.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
}

}  // namespace

TEST_CASE("log: nobody who logs waits for a descriptor that nobody reads") {
  const auto format = GENERATE(LogFormat::text, LogFormat::json);
  Pipe pipe;
  Logger::Options options;
  options.format = format;
  const auto logger = std::make_shared<Logger>(descriptor_sink(pipe.to), options);
  // Longer than what a pipe that polls writable takes without waiting.
  const std::string message(6000, 'z');
  REQUIRE(ends([logger, message] {
    for (int i = 0; i < 300; ++i)
      logger->write(LogLevel::info, message);
  }));
  std::string got;
  // The queue moves again: sooner or later a record finds room.
  std::size_t logged = 300;
  for (; got.find("records were lost") == std::string::npos; ++logged) {
    got += pipe.read_until("\n");
    logger->write(LogLevel::info, "room?");
  }
  logger->write(LogLevel::info, "last");
  if (got.find("last") == std::string::npos) got += pipe.read_until("last");
  std::size_t written = 0, lost = 0;
  std::istringstream lines(got);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(message) != std::string::npos || line.find("room?") != std::string::npos)
      ++written;
    const auto at = line.find(" record");
    if (at == std::string::npos) continue;
    CHECK(line.find(format == LogFormat::json ? "\"level\":\"warn\"" : " WARN  ") !=
          std::string::npos);
    if (format == LogFormat::json) CHECK(json::parse(line));
    lost += std::stoul(line.substr(line.find_last_not_of("0123456789", at - 1) + 1));
  }
  CHECK(written > 100);  // the queue took them
  CHECK(written + lost == logged);
}

TEST_CASE("log: what is queued is written at the end of the sink, as far as somebody reads") {
  Pipe pipe;
  std::string expected;
  {
    const auto sink = descriptor_sink(pipe.to);
    for (int i = 0; i < 2000; ++i) {
      const std::string line = std::to_string(i) + std::string(100, '.') + "\n";
      expected += line;
      sink(line);
    }
    auto reader = std::async(std::launch::async, [&] { return pipe.read_until("\n1999..."); });
    const std::string got = reader.get();
    CHECK(expected.compare(0, got.size(), got) == 0);
    sink("queued\n");
  }
  pipe.close_writer();
  const std::string rest = pipe.read_until("");
  CHECK(rest.substr(rest.size() - std::min<std::size_t>(rest.size(), 7)) == "queued\n");
}

TEST_CASE("log: the end of a sink waits for nobody who never reads") {
  Pipe pipe;
  REQUIRE(ends([&pipe] {
    const auto sink = descriptor_sink(pipe.to);
    for (int i = 0; i < 50; ++i)
      sink(std::string(6000, 'z') + "\n");
  }));
  pipe.close_writer();
  CHECK(pipe.read_until("").size() < 50 * 6001);
}

TEST_CASE("log: a descriptor that is broken loses records, and the next one tells of them") {
  Pipe pipe;
  Pipe broken;
  ::close(std::exchange(broken.from, ::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  const int descriptor = ::fcntl(pipe.to, F_DUPFD_CLOEXEC, 3);
  REQUIRE(descriptor >= 0);
  const auto lost = [&, sink = descriptor_sink(descriptor)] {
    REQUIRE(::dup3(broken.to, descriptor, O_CLOEXEC) == descriptor);
    sink("nobody\n");
    // The writer may come too late to meet the broken one: then it was not lost.
    std::this_thread::yield();
    REQUIRE(::dup3(pipe.to, descriptor, O_CLOEXEC) == descriptor);
    sink("somebody\n");
    const std::string got = pipe.read_until("somebody\n");
    return got.find(" WARN  1 record was lost\nsomebody\n") != std::string::npos;
  };
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool told = false;
  while (!told && std::chrono::steady_clock::now() < limit)
    told = lost();
  CHECK(told);
  ::close(descriptor);
}

TEST_CASE("log: what is queued when the process ends is written") {
  Pipe pipe;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // As a plugin that is never unloaded keeps it.
    auto* logger = new Logger(descriptor_sink(pipe.to));
    for (int i = 0; i < 1000; ++i)
      logger->write(LogLevel::info, std::to_string(i));
    std::exit(0);
  }
  pipe.close_writer();
  const std::string got = pipe.read_until("");
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(std::count(got.begin(), got.end(), '\n') == 1000);
  CHECK(got.find(" INFO  999\n") != std::string::npos);
}
