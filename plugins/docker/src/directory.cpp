#include "directory.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>

#include <algorithm>

#include "build_claim.hpp"
#include "engine_time.hpp"
#include "guest.hpp"
#include "old_images.hpp"
#include "template_images.hpp"

namespace sandforge::docker {
namespace {

constexpr milliseconds kRemoveTime = std::chrono::minutes(5);
// Until then what was made and not started may be in the making; clocks of hosts may differ.
constexpr std::int64_t kInTheMaking = 3600 * kNanoseconds;
// Of builds that carry no sign of life: those of older versions.
constexpr std::int64_t kLongestBuild = 24 * 3600 * kNanoseconds;

bool begins_with(const std::string& text, std::string_view with) {
  return text.compare(0, with.size(), with) == 0;
}

// By name and label: names are nobody else's, and are not inherited as labels are.
bool is_session(const std::string& name, const std::string& session) {
  return wire::is_container_name(name, session);
}
bool is_step(const wire::ContainerSummary& one) {
  return begins_with(one.name, kStepName) && !one.label(kBuildLabel).empty();
}
bool is_claim(const wire::ContainerSummary& one) {
  const std::string identity = one.label(kClaimLabel);
  return !identity.empty() && one.name == claim_name(identity);
}
bool is_helper(const wire::ContainerSummary& one) {
  return begins_with(one.name, kFillsName) && !one.label(kFillsLabel).empty();
}

plugin::State state_of(const std::string& word) {
  if (word == "running" || word == "paused" || word == "restarting") return plugin::State::running;
  return plugin::State::stopped;
}

plugin::DirectoryEntry entry_of(const wire::ContainerSummary& one, const std::string& host) {
  plugin::DirectoryEntry out;
  out.sandbox_id = one.id;
  const std::string session = one.label(wire::kSandboxIdLabel);
  if (!session.empty()) out.session_id = session;
  out.state = state_of(one.state);
  out.own = !host.empty() && one.label(kHostLabel) == host;
  out.created_at = one.created * kNanoseconds;
  out.labels = one.labels;
  return out;
}

}  // namespace

Task<plugin::DirectoryPage> EngineDirectory::find(plugin::Document labels, std::string page,
                                                  std::uint32_t limit) {
  const std::string host = co_await options_->mark->read(engine_.lane());
  // Others use the first label, too, as the documents of this provider say; the second is ours.
  wire::Labels wanted;
  wanted.emplace_back(wire::kSandboxLabel, "true");
  wanted.emplace_back(wire::kSpecLabel, "");
  for (const auto& [name, value] : labels.object())
    if (value.is_string()) wanted.emplace_back(name, value.as_string());
  wire::Query query;
  query.add("all", "true").add("filters", wire::label_filter(wanted));
  const HttpAnswer answer = co_await engine_.call("GET", "/containers/json" + query.text());
  engine_.throw_if_refused(answer, "list the containers");
  auto found = wire::read_containers(answer.body);
  if (!found) throw engine_.no_answer_of_api("list the containers");
  std::sort(found->begin(), found->end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  plugin::DirectoryPage out;
  for (const wire::ContainerSummary& one : *found) {
    if (one.id <= page || one.state == "removing") continue;
    if (!is_session(one.name, one.label(wire::kSandboxIdLabel))) continue;
    if (limit != 0 && out.entries.size() == limit) {
      out.next = out.entries.back().sandbox_id;
      break;
    }
    out.entries.push_back(entry_of(one, host));
  }
  co_return out;
}

Task<void> EngineDirectory::remove(std::string container) {
  Machines machines(engine_, options_);
  const std::optional<wire::ContainerInfo> there = co_await machines.inspect(container);
  if (!there) co_return;
  if (there->id != container || there->label(wire::kSandboxLabel) != "true" ||
      there->label(wire::kSpecLabel).empty() ||
      !is_session(there->name, there->label(wire::kSandboxIdLabel)))
    throw fault(Code::conflict, "docker.foreign",
                "the container " + there->name + " is none of this provider's")
        .detail("containerId", there->id);
  machines.container_id = container;
  machines.any_session = true;
  const std::vector<std::string> images = co_await machines.remove();
  for (const std::string& image : images) {
    try {
      co_await machines.checkpoints.drop_unnamed(image);
    } catch (const Error& error) {
      plugin::Log::warn("an image without a name is left",
                        {{"image", image}, {"why", error.message()}});
    }
  }
}

// ---- What is left behind

Task<void> EngineDirectory::found(plugin::Leftover one, std::string path) {
  if (removes_) {
    try {
      const HttpAnswer answer = co_await engine_.call("DELETE", path, std::string(), kRemoveTime);
      if (answer.status != 404) engine_.throw_if_refused(answer, "remove it");
    } catch (const Error& error) {
      if (error.code() == Code::cancelled) throw;
      one.error = error.message();
    }
  }
  left_.push_back(std::move(one));
}

Task<std::vector<wire::ContainerSummary>> EngineDirectory::containers() {
  const HttpAnswer answer = co_await engine_.call("GET", "/containers/json?all=true");
  engine_.throw_if_refused(answer, "list the containers");
  auto all = wire::read_containers(answer.body);
  if (!all) throw engine_.no_answer_of_api("list the containers");
  co_return std::move(*all);
}

Task<void> EngineDirectory::sweep_containers(const std::vector<wire::ContainerSummary>& all) {
  const std::int64_t now = plugin::Host().now();
  for (const wire::ContainerSummary& one : all) {
    plugin::Leftover left;
    left.id = one.id;
    left.created_at = one.created * kNanoseconds;
    const std::int64_t age = now - left.created_at;
    if (is_step(one)) {
      const std::string claim = one.label(kClaimedByLabel);
      left.kind = "build container";
      left.reason = "its host does not build any more";
      bool lives = true;
      try {
        lives = co_await claim_lives(engine_, claim);
      } catch (const Error& error) {
        if (error.code() == Code::cancelled) throw;
        left.error = error.message();
      }
      if (!left.error.empty()) {
        left_.push_back(std::move(left));
        continue;
      }
      if (claim.empty() ? age < kLongestBuild : lives) continue;
    } else if (is_claim(one)) {
      // One that runs is somebody's; one that has ended is removed by the engine, or was cut short.
      left.kind = "build claim";
      left.reason = "it was made for a build that did not begin";
      if (one.state == "running" || age < kInTheMaking) continue;
    } else if (is_helper(one)) {
      left.kind = "helper container";
      left.reason = "it brought the guest's program, and was left";
      if (age < kInTheMaking) continue;
    } else {
      continue;
    }
    const std::string path = "/containers/" + left.id + "?force=true&v=true";
    co_await found(std::move(left), path);
  }
}

Task<void> EngineDirectory::sweep_images(const std::vector<wire::ContainerSummary>& all) {
  const HttpAnswer answer = co_await engine_.call("GET", "/images/json?all=true");
  engine_.throw_if_refused(answer, "list the images");
  const auto images = wire::read_images(answer.body);
  if (!images) throw engine_.no_answer_of_api("list the images");
  std::set<std::string> used;
  bool builds = false;
  for (const wire::ContainerSummary& one : all) {
    used.insert(one.image_id);
    builds = builds || is_claim(one) || is_step(one);
  }
  KeepPolicy policy;
  policy.newest = options_->keep_newest;
  policy.young = options_->keep_young;
  const std::vector<OldImage> old =
      old_images(*images, used, policy, plugin::Host().now(), !builds);
  for (const OldImage& one : old) {
    plugin::Leftover left;
    left.kind = one.is_template ? "template image" : "step image";
    left.id = one.is_template ? one.image.tags.front() : one.image.id;
    left.reason = one.reason;
    left.created_at = one.image.created * kNanoseconds;
    left.bytes = one.image.bytes;
    // What it was made from has its own turn.
    const std::string path = "/images/" + percent_encode_path(left.id) + "?noprune=true";
    co_await found(std::move(left), path);
  }
}

Task<void> EngineDirectory::sweep_volumes() {
  wire::Query query;
  query.add("filters",
            R"({"dangling":["true"],"label":[")" + std::string(wire::kGuestLabel) + R"("]})");
  const HttpAnswer answer = co_await engine_.call("GET", "/volumes" + query.text());
  engine_.throw_if_refused(answer, "list the volumes");
  const auto volumes = wire::read_volumes(answer.body);
  if (!volumes) throw engine_.no_answer_of_api("list the volumes");
  GuestVolumes guests(engine_, options_->guest);
  const std::string current = co_await guests.hash();
  const std::int64_t oldest =
      plugin::Host().now() - std::chrono::nanoseconds(options_->keep_young).count();
  for (const wire::VolumeInfo& volume : *volumes) {
    const std::string hash = volume.label(wire::kGuestLabel);
    const std::int64_t created = time_of(volume.created);
    const bool ours = !hash.empty() && volume.name == GuestVolumes::name(hash);
    if (!ours || hash == current || created == 0 || created > oldest) continue;
    plugin::Leftover left;
    left.kind = "guest volume";
    left.id = volume.name;
    left.reason = "no container has it, and this version has another guest";
    left.created_at = created;
    const std::string path = "/volumes/" + percent_encode(volume.name);
    co_await found(std::move(left), path);
  }
}

Task<std::vector<plugin::Leftover>> EngineDirectory::sweep(bool remove) {
  removes_ = remove;
  left_.clear();
  std::vector<wire::ContainerSummary> all = co_await containers();
  co_await sweep_containers(all);
  // What was removed uses nothing any more.
  if (remove) all = co_await containers();
  co_await sweep_images(all);
  co_await sweep_volumes();
  co_return std::move(left_);
}

}  // namespace sandforge::docker
