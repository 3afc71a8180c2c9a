#include "sandforge/guest_link/processes.hpp"

#include <charconv>
#include <csignal>
#include <vector>

#include "sandforge/guest_link/guest_process.hpp"
#include "sandforge/wire/guest/boundary.hpp"

namespace sandforge::guest_link {
namespace {

// Of a process that another host started: that of its command is not known here.
constexpr std::uint64_t kAttachedGraceMs = 2000;

std::optional<guest::ProcessId> parse_id(sf_str id) noexcept {
  const auto text = view(id);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return guest::ProcessId{number};
}

Failure unknown_process(sf_str id) {
  return Failure{SF_NOT_FOUND, "process.not_found", "no process " + std::string(view(id)), {}, 0,
                 false};
}

class ListListener final : public ChannelListener {
 public:
  explicit ListListener(sf_process_list_completion done) : done_(done) {}

  void on_list(const guest::ListReply& reply) override {
    const auto count = reply.processes.size();
    std::vector<std::string> ids(count);
    std::vector<sf_exit> exits(count);
    std::vector<sf_process_info> infos(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto& from = reply.processes[i];
      auto& to = infos[i];
      ids[i] = std::to_string(static_cast<std::uint64_t>(from.process));
      to = sf_process_info{};
      to.struct_size = sizeof to;
      to.id = as_str(ids[i]);
      to.pid = from.pid;
      to.command = as_bytes(from.command);
      to.tag = as_str(from.tag);
      to.running = from.state == guest::ProcessState::running ? 1 : 0;
      to.flags =
          (from.detached ? SF_PROCESS_DETACHED : 0) | (from.background ? SF_PROCESS_STRAY : 0);
      if (from.exit) {
        exits[i] = guest::to_abi(*from.exit, false);
        to.exit = &exits[i];
      }
      to.first = {from.log_begin.out, from.log_begin.err};
      to.next = {from.log_end.out, from.log_end.err};
    }
    done_.done(done_.ctx, nullptr, infos.data(), count, sizeof(sf_process_info));
  }
  void on_error(const guest::ErrorInfo& error) override { fail(from_guest(error)); }
  void on_lost(bool) override { fail(guest_lost(false)); }

 private:
  void fail(const Failure& failure) {
    with_error(failure,
               [&](const sf_error* error) { done_.done(done_.ctx, error, nullptr, 0, 0); });
  }
  sf_process_list_completion done_;
};

}  // namespace

void list_processes(GuestOwner& sandbox, sf_process_list_completion done) {
  sandbox.with_guest([done](const Failure* failure, const std::shared_ptr<GuestLink>& link) {
    if (failure != nullptr)
      return with_error(*failure,
                        [&](const sf_error* error) { done.done(done.ctx, error, nullptr, 0, 0); });
    if (link == nullptr) return done.done(done.ctx, nullptr, nullptr, 0, sizeof(sf_process_info));
    link->request([](guest::GuestClient& client) { return client.list(); },
                  std::make_shared<ListListener>(done));
  });
}

namespace {

// A request about one process whose answer is an end.
void about(GuestOwner& sandbox, sf_str id, sf_completion done,
           std::function<guest::ChannelId(guest::GuestClient&, guest::ProcessId)> make,
           bool ended_is_gone) {
  const auto process = parse_id(id);
  const Failure unknown = unknown_process(id);
  sandbox.with_guest([=](const Failure* failure, const std::shared_ptr<GuestLink>& link) {
    if (failure == nullptr && (link == nullptr || !process)) failure = &unknown;
    if (failure != nullptr) return complete(done, failure);
    link->request([&](guest::GuestClient& client) { return make(client, *process); },
                  std::make_shared<CompletionListener>(done, ended_is_gone));
  });
}

}  // namespace

void signal_process(GuestOwner& sandbox, sf_str id, std::int32_t number, bool tree,
                    sf_completion done) {
  about(
      sandbox, id, done,
      [=](guest::GuestClient& client, guest::ProcessId process) {
        if (tree && number == SIGKILL) return client.kill(guest::Target(process), 0);
        return client.signal(guest::Target(process), number,
                             tree ? guest::SignalScope::tree : guest::SignalScope::leader);
      },
      true);
}

void forget_process(GuestOwner& sandbox, sf_str id, sf_completion done) {
  about(
      sandbox, id, done,
      [](guest::GuestClient& client, guest::ProcessId process) {
        return client.release(guest::Target(process));
      },
      false);
}

sf_status attach_process(GuestOwner& sandbox, sf_str id, sf_cursor from, std::uint64_t window,
                         const sf_stream_events& io, const sf_process_events& events,
                         sf_process** process, const sf_error_sink* err) {
  const auto& link = sandbox.guest();
  const auto number = parse_id(id);
  if (!link || !link->up()) return report(err, sandbox.unable().value_or(guest_stopped()));
  if (!number) return report(err, unknown_process(id));
  guest::AttachRequest request;
  request.process = *number;
  request.from = guest::Cursor(from.out, from.err);
  request.window = window;
  auto object = std::make_shared<GuestProcess>(link, io, events, [] { return false; });
  const auto channel = link->ask().attach(request);
  object->bind(channel, window, kAttachedGraceMs);
  link->listen(channel, object);
  *process = object->handle();
  link->flush();
  return SF_OK;
}

}  // namespace sandforge::guest_link
