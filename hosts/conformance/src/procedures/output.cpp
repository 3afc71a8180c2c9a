// A10 to A15: output, as it comes and as it is kept.
#include <atomic>
#include <future>
#include <stdexcept>

#include "procedure.hpp"
#include "sandforge/support/utf8.hpp"

namespace sandforge::conformance {
namespace {

void lines(Host& host) {
  std::string expected;
  for (int i = 1; i <= 5000; ++i)
    expected += std::to_string(i) + "\n";
  CHECK(host.make()->execute_command("seq 1 5000").out == expected);
}

void characters(Host& host) {
  const auto sandbox = host.make();
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

void random_bytes(Host& host) {
  const auto sandbox = host.make();
  const auto result = sh(*sandbox, "head -c 4096 /dev/urandom | tee bytes");
  CHECK(result.out.size() == 4096);
  CHECK(result.out == read_file(*sandbox, "bytes"));
  CHECK(is_valid_utf8(result.stdout_text()));

  const auto nul = sh(*sandbox, "printf 'a\\000b'");
  CHECK(nul.out == std::string("a\0b", 3));
}

void gigabyte(Host& host) {
  const auto sandbox = host.started();
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
  const auto result = sandbox->execute_command("yes | head -c 1073741824", {}, options);
  const auto growth = memory.growth_kib();

  CHECK(result.success);
  CHECK(seen == kTotal);
  CHECK(pattern);
  CHECK(result.out.size() == kKept);
  CHECK(result.stdout_truncated);
  CHECK(result.stdout_dropped_bytes == kTotal - kKept);
  CHECK_FALSE(result.stderr_truncated);
  if (!sanitized()) CHECK(growth <= 32 * 1024);
}

void slow_consumer(Host& host) {
  const auto sandbox = host.started();
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  constexpr std::uint64_t kPieces = 16;
  std::atomic<std::uint64_t> seen{0};
  SpawnOptions options;
  options.manual_credit = true;
  options.window = kPiece;
  options.max_retained_bytes = 0;
  options.on_stdout = [&](std::string_view chunk) { seen += chunk.size(); };
  const PeakMemory memory;
  // The file tells how far the producer has come.
  const auto process = sandbox->spawn(
      shell("for i in $(seq 256); do head -c 65536 /dev/zero; echo $i > progress.new; "
            "mv progress.new progress; done"),
      options);
  const auto produced = [&]() -> std::uint64_t {
    const std::string text = read_file(*sandbox, "progress");
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

void thousand(Host& host) {
  const auto sandbox = host.started();
  constexpr int kCommands = 1000;
  constexpr int kAtOnce = 50;
  const PeakMemory memory;
  int good = 0;
  for (int begin = 0; begin < kCommands; begin += kAtOnce) {
    std::vector<std::future<Result<CommandResult>>> running;
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

void in_time(Host& host) {
  const auto sandbox = host.started();
  // The command goes on only once its first words have arrived here.
  for (const std::string stream : {"1", "2"}) {
    CAPTURE(stream);
    std::atomic<int> chunks{0};
    SpawnOptions options;
    options.timeout = 30s;
    (stream == "1" ? options.on_stdout : options.on_stderr) = [&](std::string_view) { ++chunks; };
    const auto process = sandbox->spawn(shell("(echo one; while [ ! -e go" + stream +
                                              " ]; do sleep 0.02; done; echo two) >&" + stream),
                                        options);
    CHECK(eventually([&] { return chunks == 1; }));
    touch(*sandbox, "go" + stream);
    const auto result = process->wait();
    CHECK(result.success);
    CHECK(chunks >= 2);
    CHECK((stream == "1" ? result.out : result.err) == "one\ntwo\n");
  }
}

void not_gathered(Host& host) {
  const auto sandbox = host.started();
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

void callback_throws(Host& host) {
  const auto sandbox = host.started();
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
  REQUIRE(result.error.has_value());
  CHECK(result.error->message.find("no good") != std::string::npos);
  CHECK(exists(*sandbox, "done"));
  CHECK_FALSE(sandbox->exec({"true"}).error.has_value());
}

}  // namespace

void add_output(Procedures& to) {
  to["output.lines"] = lines;
  to["output.characters"] = characters;
  to["output.random"] = random_bytes;
  to["output.gigabyte"] = gigabyte;
  to["output.slow_consumer"] = slow_consumer;
  to["output.thousand"] = thousand;
  to["output.in_time"] = in_time;
  to["output.not_gathered"] = not_gathered;
  to["output.callback_throws"] = callback_throws;
}

}  // namespace sandforge::conformance
