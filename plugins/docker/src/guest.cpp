#include "guest.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>
#include <sandforge/support/hash.hpp>
#include <sandforge/support/json.hpp>
#include <sandforge/support/utf8.hpp>
#include <sandforge/wire/docker/frames.hpp>
#include <sandforge/wire/docker/messages.hpp>
#include <sandforge/wire/docker/tar.hpp>

#include <fstream>
#include <iterator>

#include "exec.hpp"
#include "host_mark.hpp"
#include "program_file.hpp"

namespace sandforge::docker {
namespace {

constexpr const char* kProgramName = "sandforge-guest";
constexpr const char* kMarkName = "whole";
constexpr const char* kRunName = "run";
constexpr const char* kRelayWaitMs = "10000";
constexpr std::uint64_t kWindow = 1U << 20;  // as http requests give 64 KiB of it at first
constexpr std::uint64_t kFirstWindow = 1U << 16;
constexpr std::size_t kLongestSaid = 4096;  // of what a relay says when it fails
constexpr milliseconds kHelloTime = std::chrono::seconds(15);
constexpr milliseconds kUploadTime = std::chrono::minutes(2);

// What an engine calls the machine that this program was made for.
constexpr std::size_t kFillsDigits = 20;

constexpr std::string_view own_architecture() {
#if defined(__x86_64__)
  return "amd64";
#elif defined(__aarch64__)
  return "arm64";
#else
  return "";
#endif
}

// The content of the only file of an archive.
std::string content_of(std::string_view archive) {
  wire::TarReader reader;
  std::string out;
  for (;;) {
    switch (reader.next(archive)) {
      case wire::TarReader::Event::data:
        out += reader.data();
        break;
      case wire::TarReader::Event::entry:
        break;
      default:
        return out;
    }
  }
}

wire::TarEntry entry_of(const char* name, std::size_t size) {
  wire::TarEntry entry;
  entry.path = name;
  entry.mode = 0755;
  entry.size = size;
  return entry;
}

}  // namespace

std::string GuestProgram::read(std::string* why) const {
  std::ifstream in(path_, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::optional<bool> dynamic = needs_loader(bytes);
  if (in.bad() || bytes.empty()) {
    *why = "the guest's program cannot be read: " + path_;
  } else if (!dynamic) {
    *why = "the guest's program is no program of this machine: " + path_;
  } else if (*dynamic) {
    *why = "the guest's program is not static, as in builds with a sanitizer: " + path_;
  } else {
    return bytes;
  }
  return std::string();
}

std::string GuestProgram::hash(std::string* why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (hash_.empty()) {
    const std::string bytes = read(why);
    if (!bytes.empty()) hash_ = sha256_hex(bytes);
  }
  return hash_;
}

// ---- The volume

Task<std::string> GuestVolumes::hash() {
  if (!wanted()) co_return std::string();
  const HttpAnswer answer = co_await engine_.call("GET", "/version");
  const json::ParseResult parsed = json::parse(answer.body);
  std::string architecture;
  if (parsed && parsed.value.is_object()) {
    const json::Value* arch = parsed.value.find("Arch");
    if (arch != nullptr && arch->is_string()) architecture = arch->as_string();
  }
  if (architecture != own_architecture()) {
    why_ = "the engine's machine is of another kind than the guest's program: " + architecture;
    co_return std::string();
  }
  const auto read = [program = program_] {
    std::string why;
    std::string hash = program->hash(&why);
    return std::make_pair(std::move(hash), std::move(why));
  };
  std::pair<std::string, std::string> found = co_await plugin::run_blocking(read);
  why_ = std::move(found.second);
  co_return std::move(found.first);
}

// By a head alone: for an archive the engine starts a process of its own, for tens of milliseconds.
Task<bool> GuestVolumes::is_filled(std::string container) {
  const HttpAnswer answer = co_await engine_.call(
      "HEAD", "/containers/" + container + "/archive?path=" + kGuestFolder + "/" + kMarkName);
  if (answer.status != 404) engine_.throw_if_refused(answer, "look for the guest's program");
  co_return answer.status == 200;
}

Task<std::string> GuestVolumes::make_helper(std::string hash, std::string image) {
  json::Object labels, mount, host, options, body, own;
  labels.set(std::string(wire::kGuestLabel), hash);
  own.set(std::string(kFillsLabel), hash);
  options.set("NoCopy", true);
  options.set("Labels", std::move(labels));
  mount.set("Type", "volume");
  mount.set("Source", name(hash));
  mount.set("Target", kGuestFolder);
  mount.set("VolumeOptions", std::move(options));
  json::Array mounts, command;
  mounts.emplace_back(std::move(mount));
  command.emplace_back("none");
  host.set("NetworkMode", "none");
  host.set("Mounts", std::move(mounts));
  body.set("Image", image);
  body.set("Cmd", std::move(command));
  body.set("Labels", std::move(own));
  body.set("HostConfig", std::move(host));
  const std::string path =
      "/containers/create?name=" + std::string(kFillsName) + random_digits(kFillsDigits);
  const HttpAnswer answer =
      co_await engine_.call("POST", path, json::write(json::Value(std::move(body))));
  engine_.throw_if_refused(answer, "make a container for the guest's program");
  const auto made = wire::read_created_container(answer.body);
  if (!made) throw engine_.no_answer_of_api("make a container for the guest's program");
  co_return made->id;
}

Task<void> GuestVolumes::put(std::string helper, wire::TarEntry entry, std::string bytes) {
  std::string archive = wire::TarWriter::header(entry) + bytes +
                        wire::TarWriter::padding(entry.size) + wire::TarWriter::finish();
  const HttpAnswer answer =
      co_await engine_.call("PUT", "/containers/" + helper + "/archive?path=" + kGuestFolder,
                            std::move(archive), kUploadTime);
  engine_.throw_if_refused(answer, "take the guest's program");
}

Task<void> GuestVolumes::fill_by(std::string helper, std::string bytes) {
  co_await put(helper, entry_of(kProgramName, bytes.size()), bytes);
  // A tmpfs takes the mode of the folder that it covers: whoever the guest runs as makes its own
  // there.
  wire::TarEntry run = entry_of(kRunName, 0);
  run.type = wire::TarType::directory;
  run.mode = 01777;
  co_await put(helper, run, std::string());
  const HttpAnswer back = co_await engine_.call(
      "GET", "/containers/" + helper + "/archive?path=" + kGuestPath, std::string(), kUploadTime);
  engine_.throw_if_refused(back, "give the guest's program back");
  if (content_of(back.body) != bytes)
    throw fault(Code::unavailable, "docker.guest_volume",
                "the engine does not keep the guest's program as it was sent");
  co_await put(helper, entry_of(kMarkName, 1), std::string("\n"));
}

Task<std::string> GuestVolumes::fill(std::string container, std::string hash, std::string image) {
  std::string helper, why;
  try {
    const bool filled = co_await is_filled(container);
    if (filled) co_return std::string();
    const auto read = [program = program_] {
      std::string problem;
      std::string bytes = program->read(&problem);
      return std::make_pair(std::move(bytes), std::move(problem));
    };
    std::pair<std::string, std::string> program = co_await plugin::run_blocking(read);
    why = std::move(program.second);
    if (why.empty() && sha256_hex(program.first) != hash) why = "the guest's program has changed";
    if (!why.empty()) co_return why;
    helper = co_await make_helper(hash, image);
    co_await fill_by(helper, std::move(program.first));
  } catch (const Error& error) {
    why = error.message();
  }
  if (helper.empty()) co_return why;
  try {
    const HttpAnswer answer = co_await plugin::with_stop(
        plugin::StopToken(), engine_.call("DELETE", "/containers/" + helper + "?force=true"));
    if (answer.status != 404) engine_.throw_if_refused(answer, "remove a container");
  } catch (const Error& error) {
    plugin::Log::warn("the container that brought the guest's program is left behind",
                      {{"container", helper}, {"error", error.message()}});
  }
  co_return why;
}

// ---- The connection

namespace {

// What the engine says of the exec, ahead of and around what the guest says. Lives as long as its
// link.
class Relay {
 public:
  bool refused = false;  // the engine did not start it: the body says why
  std::string said;      // by the engine, or by the relay on stderr
  wire::Demultiplexer frames;
  bool told = false;
  std::string failure;  // empty: the guest has greeted
  std::function<void()> wake;

  static sf_http_events events(Relay* relay) noexcept {
    return {sizeof(sf_http_events), relay,
            [](void* ctx, const sf_http_response* response) noexcept {
              static_cast<Relay*>(ctx)->refused = response->status >= 300;
            },
            [](void*, const sf_http_end*) noexcept {}};
  }

  bool next(std::string_view& came, std::string_view& piece) {
    if (refused) {
      add(std::exchange(came, {}));
      return false;
    }
    while (const auto found = frames.next(came)) {
      if (found->stream == wire::FrameStream::out) {
        if (!told) add(found->data);  // engines tell in its place why they could not run it
        piece = found->data;
        return true;
      }
      add(found->data);
    }
    return false;
  }
  // On the lane, in a task of its own.
  void tell(const std::string& why) {
    if (std::exchange(told, true)) return;
    failure = why;
    if (const auto go = std::exchange(wake, nullptr)) go();
  }
  void add(std::string_view words) {
    said += words.substr(0, kLongestSaid - std::min(kLongestSaid, said.size()));
  }
};

}  // namespace

Task<std::shared_ptr<GuestLink>> connect_guest(Engine& engine, std::string container,
                                               milliseconds silence) {
  wire::ExecRequest request;
  request.command = {kGuestPath, "relay", "--socket", kGuestSocket, "--wait-ms", kRelayWaitMs};
  request.directory = "/";
  request.pipe_stdin = true;
  const HttpAnswer made =
      co_await engine.call("POST", "/containers/" + container + "/exec", wire::write_exec(request));
  if (made.status >= 400) co_await refuse_by_state(engine, container, made, "reach the guest");
  const auto id = wire::read_exec_id(made.body);
  if (!id) throw engine.no_answer_of_api("reach the guest");

  const auto& services = plugin::detail::services();
  const auto relay = std::make_shared<Relay>();
  const auto link = std::make_shared<GuestLink>(services.host, services.executor,
                                                guest_link::LaneRef(engine.lane().get()),
                                                static_cast<std::uint64_t>(silence.count()));
  link->unwrap_by([relay](std::string_view& came, std::string_view& piece) {
    return relay->next(came, piece);
  });
  const plugin::HttpRequest start("POST", "/exec/" + *id + "/start", wire::write_exec_start(false));
  const auto open = [&engine, relay, start](const sf_stream_events& io, sf_stream** stream,
                                            const sf_error_sink* err) {
    const sf_http_events events = Relay::events(relay.get());
    const sf_status status = engine.upgrade(start, io, events, stream, err);
    if (status == SF_OK) (*stream)->vtbl->grant(*stream, kWindow - kFirstWindow);
    return status;
  };
  // Inside an event of the link: who waits goes on behind it.
  const auto ready = [weak = std::weak_ptr(relay), lane = engine.lane()](const Failure* failure) {
    lane.post([weak, why = failure == nullptr ? std::string() : failure->message] {
      if (const auto to = weak.lock()) to->tell(why);
    });
  };
  plugin::detail::ErrorCatcher errors;
  errors.check(link->open(open, ready, errors.sink()));
  plugin::StopSource greeted;
  plugin::Coroutine::launch<void>(
      engine.lane(), greeted.token(), [] { return plugin::sleep_for(kHelloTime); },
      [relay](const std::exception_ptr& error, plugin::Void*) {
        if (error == nullptr) relay->tell("it does not greet");
      });
  const auto told = [relay](auto fn) { relay->wake = [fn] { fn(); }; };
  if (!relay->told) co_await plugin::detail::wait_or_stop(told);
  greeted.request_stop();
  if (relay->told && relay->failure.empty()) co_return link;
  link->close();
  HttpAnswer refused;
  refused.status = 400;
  refused.body = relay->failure;
  if (!relay->said.empty())
    refused.body +=
        (refused.body.empty() ? "" : ": ") + escape_controls(to_valid_utf8(relay->said));
  // Not running any more: then that is the reason.
  co_await refuse_by_state(engine, container, refused, "reach the guest");
  throw fault(Code::unavailable, "docker.guest", "the guest does not answer");
}

}  // namespace sandforge::docker
