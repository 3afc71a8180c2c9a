#include "directory.hpp"

#include <algorithm>

namespace sandforge::docker {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

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
  out.created_at = one.created * kSecond;
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
  std::sort(found->begin(), found->end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  plugin::DirectoryPage out;
  for (const wire::ContainerSummary& one : *found) {
    if (one.id <= page || one.state == "removing") continue;
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
      there->label(wire::kSpecLabel).empty())
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

}  // namespace sandforge::docker
