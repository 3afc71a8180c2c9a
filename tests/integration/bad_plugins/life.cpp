#include "life.hpp"

#include <atomic>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandforge/posix/fd.hpp"

namespace sandforge::test {
namespace {

json::Object options_of(const std::string& fault) {
  json::Object out;
  if (!fault.empty()) out.set("fault", fault);
  return out;
}

std::string words(const StartResult& result) {
  std::string out(to_string(result.outcome));
  out += ", provenance " + std::string(to_string(result.provenance));
  if (result.sandbox_id) out += ", id " + result.sandbox_id->str();
  if (result.working_directory) out += ", in " + *result.working_directory;
  return out + ", " + std::to_string(result.warnings.size()) + " warnings";
}

std::string words(const MachineInfo& info) {
  return "state " + std::to_string(static_cast<int>(info.state)) + ", metadata " +
         json::write(info.metadata);
}

std::string joined(const Lines& events) {
  std::string out;
  for (const std::string& event : events)
    out += (out.empty() ? "" : "; ") + event;
  return out;
}

}  // namespace

Life::Life(World& world, Fault fault)
    : world_(world), fault_(std::move(fault)), lane_(world.make_lane()) {
  if (open() && create()) {
    if (is("never-start") || is("late-start") || is("block-cancel") || is("throw-op-cancel")) {
      endless_start();
    } else {
      start();
      command();
      rest();
    }
  }
  release();
}

void Life::note(const std::string& step, const std::string& how) {
  world_.check_neighbour();
  lines_.push_back(step + ": " + squeezed(how));
}

void Life::note(const std::string& step, const Error& error) {
  Lines words = words_of(error);
  note(step, words.front());
  for (std::size_t i = 1; i < words.size(); ++i)
    lines_.push_back(world_.neutral(words[i]));
}

template <class T, class Words>
bool Life::note(const std::string& step, const Result<T>& result, Words words) {
  if (result) {
    note(step, words(*result));
  } else {
    note(step, result.error());
  }
  return result.ok();
}

bool Life::note(const std::string& step, const Result<void>& result) {
  if (result) {
    note(step, "done");
  } else {
    note(step, result.error());
  }
  return result.ok();
}

bool Life::open() {
  auto opened = world_.open(options_of(fault_.name));
  if (!note("open", opened, [](const auto&) { return "done"; })) return false;
  provider_ = std::move(*opened);
  note("describe",
       World::ask<Description>(provider_->lane(),
                               [p = provider_](auto handler) { p->describe(std::move(handler)); }),
       [](const Description& it) { return json::write(it.settings_schema); });
  return true;
}

bool Life::create() {
  auto created = World::on(provider_->lane(), [&] {
    CreateRequest request;
    request.lane = lane_;
    auto context = std::make_shared<SessionContext>();
    context->session_id = SessionId("s");
    request.context = std::move(context);
    return provider_->create(std::move(request));
  });
  if (!note("create", created, [](const auto&) { return "done"; })) return false;
  sandbox_ = std::move(*created);
  return true;
}

void Life::start() {
  auto identities = std::make_shared<std::atomic<int>>(0);
  const auto result = World::ask<StartResult>(lane_, [this, identities](auto handler) {
    sandbox_->start(
        StartRequest(), [identities](const ProviderSandboxId&) { ++*identities; },
        std::move(handler));
  });
  note("start", result, [&](const StartResult& it) {
    return words(it) + ", identified " + std::to_string(identities->load()) + " times";
  });
}

void Life::command() {
  Command what;
  what.argv = {"true"};
  what.window = 100;
  sink_ = std::make_shared<RecordingSink>();
  auto spawned = World::on(lane_, [&] { return sandbox_->spawn(what, sink_); });
  if (!note("spawn", spawned, [](const auto&) { return "done"; })) return;
  process_ = std::move(*spawned);
  if (!fault_.hands_off) use(*process_);
  const bool later = fault_.endless || is("after-release");
  if (!later && !sink_->wait()) throw std::runtime_error("the command has no end");
  if (const auto error = sink_->error()) note("command", *error);
  World::on(lane_, [&] { process_->cancel(); });
  World::settle(lane_);
  process_ = nullptr;
  World::settle(lane_);
  if (is("after-release") && !sink_->wait()) throw std::runtime_error("the command has no end");
  note("events", joined(sink_->events()));
}

void Life::use(ProcessBackend& process) {
  const std::byte byte{1};
  const auto written = World::on(lane_, [&] {
    process.grant(1);
    return process.write(Bytes(&byte, 1));
  });
  note("write", written, [](std::size_t count) { return std::to_string(count) + " bytes"; });
  note("shutdown", World::on(lane_, [&] { return process.shutdown_write(); }));
  note("signal", World::ask<void>(lane_, [p = process_](auto handler) {
         p->signal(15, false, std::move(handler));
       }));
}

void Life::rest() {
  note(
      "info",
      World::ask<MachineInfo>(lane_, [s = sandbox_](auto handler) { s->info(std::move(handler)); }),
      [](const MachineInfo& info) { return words(info); });
  note("instructions",
       World::ask<std::string>(
           lane_, [s = sandbox_](auto handler) { s->instructions(std::move(handler)); }),
       [](const std::string& text) { return text; });
  note("stop",
       World::ask<void>(lane_, [s = sandbox_](auto handler) { s->stop(std::move(handler)); }));
  note("destroy",
       World::ask<void>(lane_, [s = sandbox_](auto handler) { s->destroy(std::move(handler)); }));
}

void Life::release() {
  sandbox_ = nullptr;
  World::settle(lane_);
  const Lane lane = provider_ ? provider_->lane() : lane_;
  provider_ = nullptr;
  World::settle(lane);
  World::settle(lane_);
}

// A start that has no answer, and whose cancel may not return: other sessions do not notice, also
// those of the same plugin.
void Life::endless_start() {
  const Lines before = Life(world_, {}).take();
  const TempDir dir;
  if (::mkfifo((dir / "gate").c_str(), 0600) != 0) throw std::runtime_error("no pipe");
  json::Object options = options_of(fault_.name);
  options.set("gate", (dir / "gate").string());
  auto provider = world_.open(std::move(options)).value();
  const Lane lane = world_.make_lane();
  auto sandbox = World::on(provider->lane(), [&] {
                   CreateRequest request;
                   request.lane = lane;
                   return provider->create(std::move(request));
                 }).value();
  auto answers = std::make_shared<std::atomic<int>>(0);
  auto pending = World::on(lane, [&] {
    return sandbox->start(
        StartRequest(), [](const ProviderSandboxId&) {},
        Handler<StartResult>([answers](const Result<StartResult>&) { ++*answers; }));
  });
  std::promise<void> returned;
  lane.post([&] {
    pending->cancel();
    returned.set_value();
  });
  auto future = returned.get_future();
  note("another session of the plugin", Life(world_, {}).take() == before ? "works" : "does not");
  if (is("block-cancel")) {
    // Opening it for writing waits for the plugin to come to its cancel.
    const posix::Fd gate(::open((dir / "gate").c_str(), O_WRONLY | O_CLOEXEC));
    if (!gate) throw std::runtime_error("no gate");
  }
  if (future.wait_for(kPatience) != std::future_status::ready)
    throw std::runtime_error("the cancel does not return");
  // Answered on the lane that the cancel ran on, wherever that is.
  note(
      "info",
      World::ask<MachineInfo>(lane, [sandbox](auto handler) { sandbox->info(std::move(handler)); }),
      [](const MachineInfo& info) { return words(info); });
  pending = nullptr;
  sandbox = nullptr;
  provider = nullptr;
  World::settle(lane);
  note("start", std::to_string(*answers) + " answers");
}

}  // namespace sandforge::test
