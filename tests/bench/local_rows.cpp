// One command, and one that writes a gigabyte, through the whole stack: core, plugin, guest.
#include <algorithm>
#include <cstdint>
#include <future>
#include <stdexcept>

#include "commands.hpp"
#include "local_host.hpp"
#include "many.hpp"
#include "rows.hpp"

namespace sandforge::bench {
namespace {

Row warm_row(LocalHost& host, const Scale& scale) {
  const auto ours = [&] { return 1e3 * timed([&] { run_true(host.sandbox()); }); };
  const auto theirs = [] { return 1e3 * timed([] { run_bare("true"); }); };
  interleave(20, ours, theirs);
  const Pair pair = interleave(scale.of(1500, 100), ours, theirs);
  return {"local.warm", "execute_command(\"true\") against a bare posix_spawn of sh -c true",
          "ms",         pair.subject,
          pair.peer,    Goal::at_most(1.25, Figure::ratio)};
}

// One after the other, each begun by the end of the one before: as a server runs them, which has no
// thread that waits.
class Chain {
 public:
  explicit Chain(Sandbox& sandbox) : sandbox_(sandbox) {}

  void run(int count) {
    left_ = count;
    std::promise<void> all;
    ended_ = &all;
    next();
    all.get_future().get();
  }

 private:
  void next() {
    sandbox_.async_execute_command("true", {}, {}, [this](Result<CommandResult> result) {
      if (!result.ok() || !result->success)
        return ended_->set_exception(std::make_exception_ptr(std::runtime_error("true failed")));
      if (--left_ > 0) return next();
      ended_->set_value();
    });
  }

  Sandbox& sandbox_;
  int left_ = 0;
  std::promise<void>* ended_ = nullptr;
};

Row chain_row(LocalHost& host, const Scale& scale) {
  constexpr int kLength = 20;
  Chain chain(host.sandbox());
  const auto ours = [&] { return 1e3 / kLength * timed([&] { chain.run(kLength); }); };
  const auto theirs = [] {
    return 1e3 / kLength * timed([] {
             for (int i = 0; i < kLength; ++i)
               run_bare("true");
           });
  };
  const Pair pair = interleave(scale.of(75, 5), ours, theirs);
  return {"local.warm.async",
          "the same, each begun in the handler of the one before",
          "ms",
          pair.subject,
          pair.peer,
          Goal::at_most(1.25, Figure::ratio)};
}

std::vector<Row> stream_rows(LocalHost& host, const Scale& scale) {
  const std::uint64_t bytes = std::uint64_t{1} << (scale.quick ? 26 : 30);
  const double mib = static_cast<double>(bytes) / (1 << 20);
  double growth = 0;
  const auto ours = [&] {
    const PeakMemory peak;
    const double seconds = timed([&] { stream_zeros(host.sandbox(), bytes); });
    growth = std::max(growth, peak.growth_mib());
    return mib / seconds;
  };
  const auto theirs = [&] {
    const std::string text = "head -c " + std::to_string(bytes) + " /dev/zero | cat >/dev/null";
    return mib / timed([&] { run_bare(text); });
  };
  const Pair pair = interleave(scale.of(7, 3), ours, theirs);
  return {{"local.stream", "output to a callback against head | cat >/dev/null", "MiB/s",
           pair.subject, pair.peer, Goal::at_least(0.60, Figure::ratio)},
          {"local.stream.memory", "growth of the host against the bytes that went through", "MiB",
           growth, mib, Goal::at_most(32, Figure::subject)}};
}

}  // namespace

std::vector<Row> local_rows(const Scale& scale) {
  LocalHost host;
  std::vector<Row> rows = {warm_row(host, scale), chain_row(host, scale)};
  for (Row& row : many_rows(host, scale))
    rows.push_back(std::move(row));
  for (Row& row : stream_rows(host, scale))
    rows.push_back(std::move(row));
  return rows;
}

}  // namespace sandforge::bench
