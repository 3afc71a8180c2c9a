#include "sandforge/log.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
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

TEST_CASE("log: a pipe that nobody reads drops lines and says how many") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
  const auto sink = descriptor_sink(ends[1]);
  const std::string line(1000, 'z');
  for (int i = 0; i < 200; ++i)
    sink(line);
  std::string got;
  char buffer[65536];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;)
    got.append(buffer, static_cast<std::size_t>(n));
  CHECK(got.size() < 200 * line.size());
  sink("last\n");
  const ssize_t n = ::read(ends[0], buffer, sizeof(buffer));
  REQUIRE(n > 0);
  const std::string tail(buffer, static_cast<std::size_t>(n));
  CHECK(tail.find("lines were dropped: the log was not read)\nlast\n") != std::string::npos);
  ::close(ends[0]);
  ::close(ends[1]);
}
