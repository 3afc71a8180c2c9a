#include "build_claim.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>

namespace sandforge::docker {
namespace {

constexpr milliseconds kClaimTime =
    std::chrono::minutes(2);        // for what an engine takes its time for
constexpr int kNeverStarted = 120;  // looks, at least a second apart
constexpr std::size_t kNameDigits = 40;
constexpr const char* kWaits = "while read -r line; do :; done";

std::string path_to(const std::string& container, const char* rest) {
  return "/containers/" + percent_encode(container) + rest;
}

}  // namespace

std::string claim_name(const std::string& identity) {
  return "sandforge-build-" + identity.substr(0, kNameDigits);
}

// Empty: the name is taken.
Task<std::string> BuildClaim::create() {
  json::Object labels, host, body;
  labels.set(std::string(kClaimLabel), identity_);
  host.set("AutoRemove", true);
  host.set("NetworkMode", "none");
  json::Array shell, words;
  shell.emplace_back("/bin/sh");
  shell.emplace_back("-c");
  words.emplace_back(kWaits);
  body.set("Image", image_);
  body.set("User", "0");
  body.set("Entrypoint", std::move(shell));
  body.set("Cmd", std::move(words));
  body.set("OpenStdin", true);
  body.set("StdinOnce", true);
  body.set("AttachStdin", true);
  body.set("Labels", std::move(labels));
  body.set("HostConfig", std::move(host));
  const std::string text = json::write(json::Value(std::move(body)));
  wire::Query query;
  query.add("name", name());
  if (!options_->platform.empty()) query.add("platform", options_->platform);
  const HttpAnswer answer = co_await plugin::with_stop(
      plugin::StopToken(), engine_.call("POST", "/containers/create" + query.text(), text));
  // Podman answers 500 where Docker answers 409.
  if (answer.status == 409 ||
      (answer.status == 500 &&
       wire::error_message(answer.body).find("already in use") != std::string::npos))
    co_return std::string();
  engine_.throw_if_refused(answer, "claim a build");
  const auto made = wire::read_created_container(answer.body);
  if (!made) throw engine_.no_answer_of_api("claim a build");
  co_return made->id;
}

Task<bool> BuildClaim::attach_and_start() {
  plugin::HttpRequest attach("POST", path_to(container_, "/attach?stream=1&stdin=1"));
  HttpStream stream = co_await engine_.open(attach, SF_HTTP_UPGRADE);
  if (stream.status() >= 300) co_return false;
  const HttpAnswer begun =
      co_await engine_.call("POST", path_to(container_, "/start"), std::string(), kClaimTime);
  if (begun.status >= 300) co_return false;
  held_.emplace(std::move(stream));
  co_return true;
}

// What has ended, and what never began, is cleared away for the next try.
Task<bool> BuildClaim::is_held() {
  const HttpAnswer answer = co_await engine_.call("GET", path_to(name(), "/json"));
  if (answer.status == 404) co_return false;
  engine_.throw_if_refused(answer, "look at who builds");
  const auto other = wire::read_container(answer.body);
  if (!other) throw engine_.no_answer_of_api("look at who builds");
  if (other->label(kClaimLabel).empty())
    throw fault(Code::conflict, "docker.name_taken",
                "another container has the name " + name() + ": " + other->id.substr(0, 12))
        .detail("containerId", other->id);
  const bool begins = other->status == "created" || other->status == "configured";
  if (!begins) never_started_ = 0;
  if (other->running || (begins && ++never_started_ < kNeverStarted)) co_return true;
  co_await remove(other->id);
  co_return false;
}

Task<BuildClaim::Taken> BuildClaim::take() {
  std::string made = co_await create();
  if (made.empty()) {
    const bool held = co_await is_held();
    if (held) co_return Taken::others;
    made = co_await create();
    if (made.empty()) co_return Taken::others;
  }
  container_ = made;
  std::exception_ptr failed;
  bool begun = false;
  try {
    begun = co_await attach_and_start();
  } catch (...) {
    failed = std::current_exception();
  }
  if (begun) co_return Taken::mine;
  co_await plugin::with_stop(plugin::StopToken(), release());
  if (failed) std::rethrow_exception(failed);
  co_return Taken::unguarded;
}

Task<void> BuildClaim::release() {
  if (container_.empty()) co_return;
  try {
    co_await remove(container_);
  } catch (const Error& error) {
    // It ends with the connection, which goes next.
    plugin::Log::debug("a claim to build is left to the engine", {{"why", error.message()}});
  }
  held_.reset();
  container_.clear();
}

Task<void> BuildClaim::remove(std::string container) {
  const HttpAnswer answer = co_await engine_.call(
      "DELETE", path_to(container, "?force=true&v=true"), std::string(), kClaimTime);
  if (answer.status != 404 && answer.status != 409)
    engine_.throw_if_refused(answer, "give up a build");
}

Task<bool> claim_lives(Engine& engine, std::string claim) {
  if (claim.empty()) co_return true;
  const HttpAnswer answer = co_await engine.call("GET", path_to(claim, "/json"));
  if (answer.status == 404) co_return false;
  engine.throw_if_refused(answer, "look at who builds");
  const auto there = wire::read_container(answer.body);
  if (!there) throw engine.no_answer_of_api("look at who builds");
  co_return there->running;
}

}  // namespace sandforge::docker
