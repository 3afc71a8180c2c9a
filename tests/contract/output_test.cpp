// A10 to A16: output, as it comes and as it is kept.
#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "contract/local_fixture.hpp"
#include "sandforge/support/utf8.hpp"

using namespace sandforge;
using namespace sandforge::contract;

TEST_CASE_METHOD(LocalFixture, "A10 five thousand lines, all of them in order", "[cases.A10]") {
  const auto sandbox = make();
  std::string expected;
  for (int i = 1; i <= 5000; ++i)
    expected += std::to_string(i) + "\n";
  CHECK(sandbox->execute_command("seq 1 5000").out == expected);
}

TEST_CASE_METHOD(LocalFixture, "A10 characters that are split over chunks are joined",
                 "[cases.A10]") {
  const auto sandbox = make();
  const std::size_t size = 1U << 20;
  std::string seen;
  ExecOptions options;
  options.on_stdout = [&](std::string_view chunk) { seen += chunk; };
  // Blocks of an odd size tear characters apart.
  const auto result =
      sh(*sandbox, "yes \xc3\xa9 | tr -d '\\n' | head -c 1048576 | dd bs=777 2>/dev/null", options);
  std::string expected;
  for (std::size_t i = 0; i < size / 2; ++i)
    expected += "\xc3\xa9";
  CHECK(result.out == expected);
  CHECK(result.stdout_text() == expected);
  CHECK(seen == expected);
  CHECK_FALSE(result.stdout_truncated);
}

TEST_CASE_METHOD(LocalFixture, "A10 random bytes come out as they went in", "[cases.A10]") {
  const auto sandbox = make();
  const auto result = sh(*sandbox, "head -c 4096 /dev/urandom | tee bytes");
  CHECK(result.out.size() == 4096);
  CHECK(result.out == read_text(folder() / "bytes"));
  CHECK(is_valid_utf8(result.stdout_text()));
  const auto nul = sh(*sandbox, "printf 'a\\000b'");
  CHECK(nul.out == std::string("a\0b", 3));
}

TEST_CASE_METHOD(LocalFixture, "A11 a gigabyte passes through bounded memory", "[cases.A11]") {
  const auto sandbox = started();
  constexpr std::uint64_t kTotal = std::uint64_t{1} << 30;
  constexpr std::uint64_t kKept = std::uint64_t{1} << 20;
  std::uint64_t seen = 0;
  bool pattern = true;
  ExecOptions options;
  options.max_retained_bytes = kKept;
  options.on_stdout = [&](std::string_view chunk) {
    // "y\n" over and over: the first byte of a chunk tells what the stream is at.
    if (chunk.front() != (seen % 2 == 0 ? 'y' : '\n')) pattern = false;
    seen += chunk.size();
  };
  const PeakMemory memory;
  const auto result = sandbox->execute_command("yes | head -c 1G", {}, options);
  const auto growth = memory.growth_kib();
  CHECK(result.success);
  CHECK(seen == kTotal);
  CHECK(pattern);
  CHECK(result.out.size() == kKept);
  CHECK(result.stdout_truncated);
  CHECK(result.stdout_dropped_bytes == kTotal - kKept);
  CHECK_FALSE(result.stderr_truncated);
  if (sanitized()) {
    WARN("memory is not measured in a sanitizer's build");
    return;
  }
  CAPTURE(growth);
  CHECK(growth <= 32 * 1024);
}

TEST_CASE_METHOD(LocalFixture, "A12 a slow consumer holds the producer back and gets every byte",
                 "[cases.A12]") {
  const auto sandbox = started();
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  constexpr std::uint64_t kPieces = 16;
  std::atomic<std::uint64_t> seen{0};
  SpawnOptions options;
  options.manual_credit = true;
  options.window = kPiece;
  options.max_retained_bytes = 0;
  options.on_stdout = [&](std::string_view chunk) { seen += chunk.size(); };
  const PeakMemory memory;
  // Each file size tells how far the producer has come.
  const auto process = sandbox->spawn(
      shell("for i in $(seq 256); do head -c 65536 /dev/zero; echo $i > progress.new; "
            "mv progress.new progress; done"),
      options);
  const auto produced = [&]() -> std::uint64_t {
    const std::string text = read_text(folder() / "progress");
    return text.empty() ? 0 : std::stoull(text) * 65536;
  };
  for (std::uint64_t granted = 1; granted <= kPieces; ++granted) {
    CAPTURE(granted);
    REQUIRE(eventually([&] { return seen == granted * kPiece; }));
    // What the consumer has not asked for waits in pipes at most.
    CHECK(produced() <= granted * kPiece + 2 * kPiece);
    if (granted < kPieces) CHECK(process->running());
    process->grant(granted < kPieces ? kPiece : kPiece * 2);
  }
  const auto result = process->wait();
  CHECK(result.success);
  CHECK(seen == kPieces * kPiece);
  CHECK(result.stdout_dropped_bytes == kPieces * kPiece);
  if (!sanitized()) CHECK(memory.growth_kib() <= 16 * 1024);
}

TEST_CASE_METHOD(LocalFixture, "A13 a thousand short commands lose nothing", "[cases.A13]") {
  const auto sandbox = started();
  constexpr int kCommands = 1000;
  constexpr int kAtOnce = 50;
  const PeakMemory memory;
  int good = 0;
  std::vector<std::future<Result<CommandResult>>> running;
  for (int begin = 0; begin < kCommands; begin += kAtOnce) {
    running.clear();
    for (int i = begin; i < begin + kAtOnce; ++i) {
      auto promise = std::make_shared<std::promise<Result<CommandResult>>>();
      running.push_back(promise->get_future());
      sandbox->async_execute_command(
          "echo nonce-" + std::to_string(i), {}, {},
          [promise](Result<CommandResult> result) { promise->set_value(std::move(result)); });
    }
    for (int i = begin; i < begin + kAtOnce; ++i) {
      const auto result = running[static_cast<std::size_t>(i - begin)].get();
      if (result && result->exit_code == 0 && result->out == "nonce-" + std::to_string(i) + "\n")
        ++good;
    }
  }
  CHECK(good == kCommands);
  if (!sanitized()) CHECK(memory.growth_kib() <= 32 * 1024);
}

TEST_CASE_METHOD(LocalFixture, "A14 output arrives while the command runs, on both streams",
                 "[cases.A14]") {
  const auto sandbox = started();
  // The command goes on only once its first words have arrived here.
  for (const std::string stream : {"1", "2"}) {
    CAPTURE(stream);
    const fs::path go = folder() / ("go" + stream);
    int chunks = 0;
    ExecOptions options;
    options.timeout = 30s;
    (stream == "1" ? options.on_stdout : options.on_stderr) = [&](std::string_view) {
      ++chunks;
      std::ofstream(go) << "x";
    };
    const auto result =
        sh(*sandbox,
           "(echo one; while [ ! -e go" + stream + " ]; do sleep 0.02; done; echo two) >&" + stream,
           options);
    CHECK(result.success);
    CHECK(chunks >= 2);
    CHECK((stream == "1" ? result.out : result.err) == "one\ntwo\n");
  }
}

TEST_CASE_METHOD(LocalFixture, "A14 three writes 300 ms apart are not gathered up", "[cases.A14]") {
  const auto sandbox = started();
  int out = 0;
  int err = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view) { ++out; };
  options.on_stderr = [&](std::string_view) { ++err; };
  const auto result =
      sh(*sandbox, "for i in 1 2 3; do echo $i; echo $i >&2; sleep 0.3; done", options);
  CHECK(result.out == "1\n2\n3\n");
  CHECK(result.err == "1\n2\n3\n");
  CHECK(out >= 2);
  CHECK(err >= 2);
}

TEST_CASE_METHOD(LocalFixture, "A15 a callback that throws is reported once, the command goes on",
                 "[cases.A15]") {
  const auto sandbox = started();
  int calls = 0;
  ExecOptions options;
  options.on_stdout = [&](std::string_view) {
    ++calls;
    throw std::runtime_error("no good");
  };
  const auto result = sh(*sandbox, "echo one; sleep 0.2; echo two; touch done", options);
  CHECK(result.outcome == Outcome::exited);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "one\ntwo\n");
  CHECK(calls == 1);
  REQUIRE(result.error);
  CHECK(result.error->message.find("no good") != std::string::npos);
  CHECK(fs::exists(folder() / "done"));
  CHECK_FALSE(sandbox->exec({"true"}).error);
}

TEST_CASE_METHOD(LocalFixture, "A15 a callback that throws on either stream, or of a spawn",
                 "[cases.A15]") {
  const auto sandbox = started();
  std::string out;
  SpawnOptions options;
  options.on_stdout = [&](std::string_view chunk) { out += chunk; };
  options.on_stderr = [](std::string_view) { throw 7; };
  const auto result =
      sandbox->spawn(shell("echo bad >&2; sleep 0.1; echo worse >&2; echo good"), options)->wait();
  CHECK(result.exit_code == 0);
  CHECK(result.err == "bad\nworse\n");
  // The other callback goes on.
  CHECK(out == "good\n");
  CHECK(result.error);
}

TEST_CASE_METHOD(LocalFixture, "A16 combined output keeps the order of the writes", "[cases.A16]") {
  const auto sandbox = make();
  ExecOptions options;
  options.combined = true;
  const auto result = sh(*sandbox, "for i in 1 2 3; do echo o$i; echo e$i >&2; done", options);
  CHECK(result.out == "o1\ne1\no2\ne2\no3\ne3\n");
  CHECK(result.err.empty());
}
