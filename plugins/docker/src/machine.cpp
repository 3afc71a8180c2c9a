#include "machine.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>
#include <sandforge/support/utf8.hpp>
#include <sandforge/wire/docker/json_stream.hpp>

#include <algorithm>

#include "scripts.hpp"

namespace sandforge::docker {
namespace {

constexpr milliseconds kNap{100};
constexpr milliseconds kSlow = std::chrono::minutes(2);  // for what the engine takes its time for
constexpr int kGoneNaps = 300;                           // thirty seconds
constexpr int kNameNaps = 50;                            // until who has the name can be seen
constexpr milliseconds kPullSilence = std::chrono::minutes(5);

std::string path_of(const std::string& id, const char* rest) {
  return "/containers/" + percent_encode(id) + rest;
}

}  // namespace

std::string Machines::name() const {
  return wire::container_name(options_->name_prefix, session_id.value_or(""));
}

// ---- Looking

Task<std::optional<wire::ContainerInfo>> Machines::inspect(std::string id) {
  const HttpAnswer answer = co_await engine_.call("GET", path_of(id, "/json"));
  if (answer.status == 404) co_return std::nullopt;
  engine_.throw_if_refused(answer, "look at a container");
  auto info = wire::read_container(answer.body);
  if (!info) throw engine_.no_answer_of_api("look at a container");
  co_return info;
}

Task<std::vector<wire::ContainerSummary>> Machines::list() {
  if (!session_id) co_return std::vector<wire::ContainerSummary>();
  wire::Query query;
  query.add("all", "true").add("filters", wire::label_filter(wire::kSandboxIdLabel, *session_id));
  const HttpAnswer answer = co_await engine_.call("GET", "/containers/json" + query.text());
  engine_.throw_if_refused(answer, "list the containers");
  auto found = wire::read_containers(answer.body);
  if (!found) throw engine_.no_answer_of_api("list the containers");
  std::sort(found->begin(), found->end(), [](const auto& a, const auto& b) {
    const bool runs = a.state == "running";
    return runs != (b.state == "running") ? runs : a.created > b.created;
  });
  co_return std::move(*found);
}

Task<std::optional<wire::ContainerInfo>> Machines::find() {
  if (container_id) {
    std::optional<wire::ContainerInfo> known = co_await inspect(*container_id);
    // An engine also answers to names and to the beginnings of ids: those are not meant.
    if (known && known->id == *container_id) {
      const std::string owner = known->label(wire::kSandboxIdLabel);
      const bool ours = known->label(wire::kSandboxLabel) == "true" &&
                        (any_session || !session_id || owner == *session_id);
      if (!ours)
        throw fault(Code::conflict, "docker.foreign",
                    "the container " + known->name + " belongs to no session of this id")
            .detail("containerId", known->id);
      co_return known;
    }
  }
  const std::vector<wire::ContainerSummary> all = co_await list();
  for (const wire::ContainerSummary& one : all) {
    std::optional<wire::ContainerInfo> found = co_await inspect(one.id);
    if (found) co_return found;
  }
  co_return std::nullopt;
}

// ---- The image

// An engine answers 500 for whatever a registry refuses: only the registry's words tell it.
Error Machines::pull_failed(const std::string& image, const std::string& why, Code code) const {
  const auto said = [&why](const char* words) { return why.find(words) != std::string::npos; };
  if (said("unauthorized") || said("no basic auth credentials")) code = Code::unauthenticated;
  if (said("toomanyrequests")) code = Code::rate_limited;
  std::string message = "Failed to pull Docker image '" + image + "': " + why;
  if (code == Code::unauthenticated)
    message += ": the option registries has the credentials of a registry, here of " +
               wire::registry_of(image);
  return fault(code, "docker.image_pull_failed", std::move(message)).detail("image", image);
}

Task<void> Machines::need_image(std::string image) {
  if (options_->pull != PullPolicy::always) {
    const HttpAnswer answer =
        co_await engine_.call("GET", "/images/" + percent_encode_path(image) + "/json");
    if (answer.status != 404) {
      engine_.throw_if_refused(answer, "look at the image");
      co_return;
    }
    if (options_->pull == PullPolicy::never)
      throw fault(Code::unavailable, "docker.image_missing",
                  "there is no image '" + image + "' at the engine, and pullPolicy is never")
          .detail("image", image);
  }
  co_await pull(image);
}

Task<void> Machines::pull(std::string image) {
  const wire::ImageReference reference = wire::split_image(image);
  wire::Query query;
  query.add("fromImage", reference.repository);
  if (!reference.tag.empty()) query.add("tag", reference.tag);
  if (!options_->platform.empty()) query.add("platform", options_->platform);
  plugin::HttpRequest request("POST", "/images/create" + query.text());
  request.timeout = kPullSilence;
  const auto login = options_->logins.find(wire::registry_of(image));
  if (login != options_->logins.end()) {
    json::Object auth;
    // Without an address the engine takes it for its default registry, which has several names.
    if (login->first != wire::kDefaultRegistry) auth.set("serveraddress", login->first);
    if (!login->second.identity_token.empty())
      auth.set("identitytoken", login->second.identity_token);
    if (!login->second.username.empty()) auth.set("username", login->second.username);
    if (!login->second.password.empty()) auth.set("password", login->second.password);
    // With padding: engines take a header without it for no login.
    std::string header = base64url_encode(json::write(json::Value(std::move(auth))));
    header.append((4 - header.size() % 4) % 4, '=');
    request.headers.emplace_back("X-Registry-Auth", std::move(header));
  }
  HttpStream stream = co_await engine_.open(request);
  if (stream.status() == 200) {
    co_await read_progress(stream, image);
    co_return;
  }
  const HttpAnswer refused = co_await stream.rest();
  Code code = Code::unavailable;
  if (refused.status == 401) code = Code::unauthenticated;
  if (refused.status == 403) code = Code::forbidden;
  throw pull_failed(image, wire::error_message(refused.body), code)
      .detail("httpStatus", static_cast<long long>(refused.status));
}

// The status said 200 before anything was pulled: what happened stands in the stream.
Task<void> Machines::read_progress(HttpStream& stream, std::string image) {
  wire::JsonStream objects;
  std::string shown;
  for (;;) {
    const std::optional<plugin::Output> piece = co_await stream.read_some();
    if (!piece) break;
    std::string_view bytes = piece->data;
    while (auto object = objects.next(bytes)) {
      const wire::Progress step(*object);
      if (!step.error.empty()) throw pull_failed(image, step.error, Code::unavailable);
      if (step.status.empty() || step.id + step.status == shown) continue;
      shown = step.id + step.status;
      plugin::Log::debug("pulling an image", {{"image", image},
                                              {"layer", step.id},
                                              {"step", step.status},
                                              {"total", std::to_string(step.total.value_or(0))}});
    }
  }
  if (!objects.whole())
    throw pull_failed(image, "the engine cut its answer short", Code::unavailable);
}

// ---- Making

Task<std::string> Machines::create(MachineSpec spec, Machine& machine) {
  wire::Query query;
  query.add("name", name());
  if (!options_->platform.empty()) query.add("platform", options_->platform);
  const std::string body = MachineSpec::body(*options_, spec, session_id.value_or(""));
  const HttpAnswer answer =
      co_await engine_.call("POST", "/containers/create" + query.text(), body);
  // Podman answers 500 where Docker answers 409.
  const bool taken = answer.status == 409 ||
                     (answer.status == 500 &&
                      wire::error_message(answer.body).find("already in use") != std::string::npos);
  if (taken) {
    std::optional<wire::ContainerInfo> other = co_await adopt_named(name(), answer);
    machine.created = false;
    co_return other->id;
  }
  if (answer.status == 404)
    throw fault(Code::unavailable, "docker.create",
                "the engine lacks what the container needs: " + wire::error_message(answer.body));
  engine_.throw_if_refused(answer, "create the container");
  const auto made = wire::read_created_container(answer.body);
  if (!made) throw engine_.no_answer_of_api("create the container");
  machine.created = true;
  for (const std::string& warning : made->warnings)
    machine.warnings.push_back("the engine warns: " + escape_controls(to_valid_utf8(warning)));
  co_return made->id;
}

// Without a guest where there can be none.
Task<std::string> Machines::create_with_guest(MachineSpec spec, Machine& machine) {
  spec.guest = co_await guests_.hash();
  std::string why = guests_.wanted() && spec.guest.empty() ? guests_.why() : std::string();
  std::string id;
  const std::string image = spec.checkpoint.empty() ? spec.image : spec.checkpoint;
  if (!spec.guest.empty() && options_->has_command) {
    const HttpAnswer answer =
        co_await engine_.call("GET", "/images/" + percent_encode_path(image) + "/json");
    engine_.throw_if_refused(answer, "look at the image");
    const auto info = wire::read_image(answer.body);
    if (info && info->entrypoint) spec.entrypoint = *info->entrypoint;
  }
  if (!spec.guest.empty()) {
    id = co_await create(spec, machine);
    if (!machine.created) co_return id;
    why = co_await guests_.fill(id, spec.guest, image);
    if (why.empty()) co_return id;
    co_await plugin::with_stop(plugin::StopToken(), remove_one(id));
    spec.guest.clear();
  }
  if (!why.empty()) machine.warnings.push_back("commands run by the engine's execs: " + why);
  if (spec.idle.count() > 0)
    machine.warnings.emplace_back("the idle timeout is not kept: the container has no guest");
  id = co_await create(spec, machine);
  co_return id;
}

// One that was made and not started by a host that ended meanwhile.
Task<void> Machines::complete_guest(wire::ContainerInfo found) {
  const std::string wanted = found.label(wire::kGuestLabel);
  if (wanted.empty() || found.running || !guests_.wanted()) co_return;
  const std::string hash = co_await guests_.hash();
  if (hash != wanted) co_return;
  const std::string why = co_await guests_.fill(found.id, hash, found.image_id);
  if (!why.empty())
    throw fault(Code::unavailable, "docker.guest_volume",
                "the container cannot get its guest: " + why);
}

// Somebody has the name: it is this session's machine, made at the same moment, or a stranger.
Task<std::optional<wire::ContainerInfo>> Machines::adopt_named(std::string name,
                                                               HttpAnswer conflict) {
  for (int naps = 0; naps < kNameNaps; ++naps) {
    std::optional<wire::ContainerInfo> other = co_await inspect(name);
    if (other) {
      if (session_id && other->label(wire::kSandboxIdLabel) == *session_id) co_return other;
      throw fault(Code::conflict, "docker.name_taken",
                  "another container has the name " + name + ": " + other->id.substr(0, 12))
          .detail("containerId", other->id);
    }
    co_await plugin::sleep_for(kNap);
  }
  engine_.throw_if_refused(conflict, "create the container");
  throw engine_.no_answer_of_api("create the container");
}

// From whatever state to one that runs.
Task<void> Machines::run(Machine& machine) {
  for (int naps = 0; naps < kGoneNaps; ++naps) {
    const std::string id = machine.info.id;
    if (machine.info.running && machine.info.paused) {
      const HttpAnswer answer = co_await engine_.call("POST", path_of(id, "/unpause"));
      if (answer.status != 404 && answer.status != 409)
        engine_.throw_if_refused(answer, "unpause the container");
    } else if (machine.info.restarting) {
      co_await plugin::sleep_for(kNap);
    } else if (!machine.info.running) {
      const HttpAnswer answer =
          co_await engine_.call("POST", path_of(id, "/start"), std::string(), kSlow);
      if (answer.status != 404) engine_.throw_if_refused(answer, "start the container");
    } else {
      co_return;
    }
    std::optional<wire::ContainerInfo> now = co_await inspect(id);
    if (!now)
      throw fault(Code::unavailable, "docker.vanished", "the container went while it was started")
          .may_have_started(true);
    machine.info = std::move(*now);
    if (!machine.info.running && !machine.info.restarting)
      throw fault(Code::unavailable, "docker.ended",
                  "the container ended at once, with " + std::to_string(machine.info.exit_code) +
                      ": its command must keep running" +
                      (machine.info.error.empty() ? "" : ": " + machine.info.error))
          .detail("exitCode", static_cast<long long>(machine.info.exit_code));
  }
  throw fault(Code::unavailable, "docker.restarting", "the container does not come up")
      .may_have_started(true);
}

// The engine makes the working directory for root.
Task<void> Machines::own_directory(Machine& machine) {
  if (options_->user.empty() || machine.info.working_directory.empty()) co_return;
  const std::vector<std::string> words = {
      "/bin/sh",     "-c", std::string(kOwnScript), "sh", machine.info.working_directory,
      options_->user};
  std::string why;
  try {
    const std::int64_t code = co_await Exec::run_helper(engine_, machine.info.id, "0", words);
    if (code != 0) why = "chown ended with " + std::to_string(code);
  } catch (const Error& error) {
    why = error.message();
  }
  if (!why.empty())
    machine.warnings.push_back("the working directory may not be writable for the user " +
                               options_->user + ": " + why);
}

Task<Machine> Machines::start(MachineSpec spec, Boot boot, ImageChoice* choice,
                              std::function<void(const std::string&)> on_identity) {
  Machine machine;
  std::optional<wire::ContainerInfo> found = co_await find();
  if (found && found->is_going()) {
    co_await remove_one(found->id);
    found.reset();
  }
  if (!found) {
    Booted from = co_await checkpoints.choose(boot);
    if (from.image.empty() && choice != nullptr) from = co_await choice->choose();
    spec.checkpoint = from.image;
    machine.provenance = from.provenance;
    if (from.image.empty()) co_await need_image(spec.image);
    spec.host = co_await options_->mark->read(engine_.lane());
    const std::string id = co_await create_with_guest(spec, machine);
    on_identity(id);
    container_id = id;
    found = co_await inspect(id);
    if (!found)
      throw fault(Code::unavailable, "docker.vanished", "the container went while it was started")
          .may_have_started(true);
  } else {
    on_identity(found->id);
    container_id = found->id;
    const std::string spec_hash = found->label(wire::kSpecLabel);
    if (!spec_hash.empty() && spec_hash != MachineSpec::hash(*options_, spec))
      machine.warnings.push_back(
          "the container was made with other options: destroy and start the sandbox to apply them");
    const std::string idle = found->label(wire::kIdleLabel);
    if (idle != (spec.idle.count() > 0 ? std::to_string(spec.idle.count()) : std::string()))
      machine.warnings.push_back("the container keeps the idle timeout that it was made with: " +
                                 (idle.empty() ? "none" : idle + " ms"));
    co_await complete_guest(*found);
  }
  machine.info = std::move(*found);
  std::exception_ptr failed;
  try {
    co_await run(machine);
    if (machine.created) co_await own_directory(machine);
  } catch (...) {
    failed = std::current_exception();
  }
  if (!failed) co_return machine;
  // What was made now and does not run is not left behind.
  if (machine.created) {
    try {
      co_await plugin::with_stop(plugin::StopToken(), remove_one(machine.info.id));
    } catch (const Error& error) {
      plugin::Log::warn("a container that did not start is left behind",
                        {{"container", machine.info.id}, {"error", error.message()}});
    }
  }
  std::rethrow_exception(failed);
}

// ---- Ending

Task<void> Machines::stop() {
  std::optional<wire::ContainerInfo> found = co_await find();
  if (!found || (!found->running && !found->restarting)) co_return;
  if (found->paused) co_await engine_.call("POST", path_of(found->id, "/unpause"));
  const auto seconds = options_->stop_timeout;
  const HttpAnswer answer = co_await engine_.call(
      "POST", path_of(found->id, "/stop?t=") + std::to_string(seconds.count()), std::string(),
      seconds + kSlow);
  if (answer.status != 404) engine_.throw_if_refused(answer, "stop the container");
}

Task<void> Machines::remove_one(std::string id) {
  const HttpAnswer answer =
      co_await engine_.call("DELETE", path_of(id, "?force=true&v=true"), std::string(), kSlow);
  // 409: it is being removed already.
  if (answer.status != 404 && answer.status != 409)
    engine_.throw_if_refused(answer, "remove the container");
  co_await wait_until_gone(id);
}

Task<void> Machines::wait_until_gone(std::string id) {
  for (int naps = 0; naps < kGoneNaps; ++naps) {
    const std::optional<wire::ContainerInfo> still = co_await inspect(id);
    if (!still) co_return;
    co_await plugin::sleep_for(kNap);
  }
  throw fault(Code::unavailable, "docker.not_gone", "the container is still being removed: " + id);
}

Task<std::vector<std::string>> Machines::remove() {
  std::vector<wire::ContainerSummary> all = co_await list();
  const auto known_is = [this](const auto& one) { return one.id == container_id; };
  if (container_id && std::none_of(all.begin(), all.end(), known_is)) {
    const std::optional<wire::ContainerInfo> known = co_await find();
    if (known) {
      all.emplace_back();
      all.back().id = known->id;
      all.back().image_id = known->image_id;
    }
  }
  std::vector<std::string> images;
  for (const wire::ContainerSummary& one : all) {
    co_await remove_one(one.id);
    if (!one.image_id.empty()) images.push_back(one.image_id);
  }
  container_id.reset();
  co_return images;
}

}  // namespace sandforge::docker
