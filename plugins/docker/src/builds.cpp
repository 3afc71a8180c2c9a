#include "builds.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/utf8.hpp>

#include <algorithm>

#include "builds_index.hpp"

namespace sandforge::docker {
namespace {

using plugin::Build;
using plugin::BuildStatus;

constexpr std::size_t kTemplatesKept = 64;
constexpr std::size_t kBuildsKept = 100;
constexpr std::size_t kLogKept = 8U << 10;  // escaped, it is less than the most of a value
constexpr std::size_t kErrorKept = 2U << 10;
constexpr milliseconds kLookAgain{2000};
constexpr milliseconds kLogNap{100};
constexpr const char* kBuildIndex = "builds";

std::string build_key(const std::string& id) {
  return "build/" + id;
}

Build ready_build(const TemplateImage& image) {
  Build out(image.identity, BuildStatus::ready);
  out.template_id = image.identity;
  out.started_at = out.finished_at = image.created_at;
  return out;
}

// A template that nobody could resolve, with a family: it says what may stand in, and no more.
bool is_family_alone(const Template& of) {
  return of.operations().empty() && !of.base();
}

}  // namespace

// ---- Templates

Task<RepoOutcome> DockerBuilds::outcome_of(plugin::Context context) {
  RepoRequest request = plugin::request_of(context);
  request.build_env = options_->build_env;
  RepoRules rules;
  rules.urls = RepoRules::Urls::any;
  rules.working_directory = options_->working_directory;
  RepoOutcome outcome =
      co_await plugin::resolve_repo_template_task(context, request, rules, &heads_);
  co_return outcome;
}

Template DockerBuilds::base(const plugin::Settings& settings) const {
  std::string image = settings.string("baseImage").value_or(options_->base_image);
  if (image.empty()) image = options_->image;
  return Template().from(image.empty() ? std::string(ProviderOptions::kDefaultImage) : image);
}

RepoStyle DockerBuilds::style(const plugin::Settings& settings) const {
  RepoStyle out;
  out.owner = settings.string("owner").value_or(options_->owner);
  out.install_git =
      !settings.string("baseImage") && options_->base_image.empty() && options_->image.empty();
  return out;
}

Task<plugin::ResolvedTemplate> DockerBuilds::resolve(plugin::Context context,
                                                     plugin::Settings settings) {
  if (!context.has_repository()) co_return plugin::ResolvedTemplate();
  const RepoOutcome outcome = co_await outcome_of(context);
  const RepoStyle by = style(settings);
  plugin::ResolvedTemplate out = plugin::resolved_template(outcome, by, base(settings));
  if (outcome.plan) keep_secrets(out.identity, repo_secrets(*outcome.plan, by));
  // A start still learns from it which older images may stand in.
  if (!out.document && !out.family.empty()) {
    const Template stand_in = Template().with_family(out.family);
    out.document = stand_in.text();
    out.identity = stand_in.identity();
  }
  co_return out;
}

void DockerBuilds::keep_secrets(const std::string& identity, Secrets secrets) {
  if (secrets.empty()) return;
  const std::lock_guard lock(mutex_);
  secrets_.remove_if([&](const auto& one) { return one.first == identity; });
  secrets_.emplace_front(identity, std::move(secrets));
  if (secrets_.size() > kTemplatesKept) secrets_.pop_back();
}

std::map<std::string, std::string> DockerBuilds::take_secrets(const std::string& identity) {
  const std::lock_guard lock(mutex_);
  for (auto at = secrets_.begin(); at != secrets_.end(); ++at) {
    if (at->first != identity) continue;
    Secrets out = std::move(at->second);
    secrets_.erase(at);
    return out;
  }
  return {};
}

// ---- Running

Engine& DockerBuilds::engine() {
  if (!engine_) engine_.emplace(lane_, options_->engine);
  return *engine_;
}

std::shared_ptr<BuildRecord> DockerBuilds::record(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : found->second;
}

std::optional<Build> DockerBuilds::known(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(id);
  if (found == records_.end()) return std::nullopt;
  return found->second->build;
}

Build DockerBuilds::begin(const std::string& document, Secrets ephemeral, Secrets secrets) {
  const Template of = Template::parse(document);
  const auto order = std::make_shared<BuildOrder>();
  order->document = document;
  order->identity = of.identity();
  order->family = family_key(of);
  order->ephemeral = std::move(ephemeral);
  order->secrets = std::move(secrets);
  const auto record = std::make_shared<BuildRecord>();
  Build& build = record->build;
  build = Build(order->identity, BuildStatus::building);
  build.template_id = order->identity;
  build.started_at = plugin::Host().now();
  build.retry_after = kLookAgain;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<BuildRecord>& slot = records_[order->identity];
    if (slot && !slot->ended()) return slot->build;
    slot = record;
    forget_oldest();
  }
  Build out = build;
  const auto me = shared_from_this();
  plugin::Coroutine::launch<void>(
      lane_, record->stop.token(), [me, record, order] { return run(me, record, order); },
      [me, record](const std::exception_ptr& error, auto*) {
        record->clock.request_stop();
        if (error)
          me->settle(*record, BuildStatus::failed, me->why_stopped(record->stop.token().reason()));
      });
  limit(record);
  return out;
}

void DockerBuilds::limit(const std::shared_ptr<BuildRecord>& record) {
  const auto time = options_->build_time;
  if (time.count() == 0) return;
  plugin::Coroutine::launch<void>(
      lane_, record->clock.token(), [time] { return plugin::sleep_for(time); },
      [record](const std::exception_ptr& stopped, auto*) {
        if (!stopped) record->stop.request_stop(plugin::StopReason::timed_out);
      });
}

std::string DockerBuilds::why_stopped(plugin::StopReason reason) const {
  if (reason != plugin::StopReason::timed_out) return "the build was cancelled";
  return "the build took longer than " + std::to_string(options_->build_time.count()) +
         " s, its time limit (template.buildTimeout)";
}

// Its log goes with it; what is kept of it is read again.
void DockerBuilds::forget_oldest() {
  while (records_.size() > kBuildsKept) {
    auto oldest = records_.end();
    for (auto at = records_.begin(); at != records_.end(); ++at) {
      if (!at->second->ended()) continue;
      if (oldest == records_.end() ||
          at->second->build.finished_at < oldest->second->build.finished_at)
        oldest = at;
    }
    if (oldest == records_.end()) return;
    records_.erase(oldest);
  }
}

void DockerBuilds::settle(BuildRecord& record, BuildStatus status, std::string error) {
  const std::lock_guard lock(mutex_);
  if (record.ended()) return;
  record.build.status = status;
  record.build.error = std::move(error);
  record.build.finished_at = plugin::Host().now();
  record.build.retry_after.reset();
}

Task<void> DockerBuilds::run(std::shared_ptr<DockerBuilds> me, std::shared_ptr<BuildRecord> record,
                             std::shared_ptr<const BuildOrder> order) {
  Redactor redactor;
  for (const auto* values : {&order->secrets, &order->ephemeral})
    for (const auto& [name, value] : *values)
      redactor.add(value);
  TemplateImages images(me->engine(), me->options_);
  std::string why;
  bool ready = false;
  try {
    const std::optional<TemplateImage> there = co_await images.find(order->identity);
    if (!there) co_await images.build(order, record->log);
    ready = true;
  } catch (const std::exception& error) {
    why = redactor.redact(error.what());
  }
  if (!ready && record->stop.stop_requested()) why = me->why_stopped(record->stop.token().reason());
  if (!ready) record->log->add(why + "\n");
  Build ended = record->build;
  ended.status = ready ? BuildStatus::ready : BuildStatus::failed;
  ended.error = why;
  ended.finished_at = plugin::Host().now();
  // Before anybody hears of the end: who does may end this host.
  co_await plugin::with_stop(plugin::StopToken(), me->keep(ended, record->log->tail(kLogKept)));
  me->settle(*record, ended.status, why);
}

// ---- What a later host reads

Task<std::optional<json::Value>> DockerBuilds::kept(std::string key) {
  std::optional<std::string> text;
  try {
    text = co_await plugin::Host().state(lane_, nullptr, key);
  } catch (const Error& error) {
    plugin::Log::debug("the state of builds cannot be read", {{"why", error.message()}});
  }
  if (!text) co_return std::nullopt;
  json::ParseResult parsed = json::parse(*text);
  if (!parsed) co_return std::nullopt;
  co_return std::move(parsed.value);
}

// This one, and what of this process ended before: two that end at once write one index.
std::vector<std::string> DockerBuilds::ended_after(const std::string& id) const {
  std::vector<std::string> out = {id};
  const std::lock_guard lock(mutex_);
  for (const auto& [other, record] : records_)
    if (record->ended() && other != id) out.push_back(other);
  return out;
}

Task<void> DockerBuilds::keep(Build build, std::string log) {
  const std::optional<json::Value> before = co_await kept(kBuildIndex);
  const BuildsIndex index =
      index_builds(ended_after(build.build_id), before.value_or(json::Value()), kBuildsKept);
  json::Array ids;
  for (const std::string& id : index.kept)
    ids.emplace_back(id);
  json::Object one;
  one.set("status", build.status == BuildStatus::ready ? "ready" : "failed");
  one.set("startedAt", std::to_string(build.started_at));
  one.set("finishedAt", std::to_string(build.finished_at));
  one.set("error", to_valid_utf8(build.error.substr(0, kErrorKept)));
  one.set("log", to_valid_utf8(log));
  const std::string text = json::write(json::Value(std::move(one)));
  const std::string list = json::write(json::Value(std::move(ids)));
  try {
    co_await plugin::Host().set_state(lane_, nullptr, build_key(build.build_id), text);
    co_await plugin::Host().set_state(lane_, nullptr, kBuildIndex, list);
    for (const std::string& id : index.dropped)
      co_await plugin::Host().set_state(lane_, nullptr, build_key(id), std::nullopt);
  } catch (const Error& error) {
    plugin::Log::warn("the state of a build is not kept", {{"why", error.message()}});
  }
}

Task<std::optional<Build>> DockerBuilds::kept_build(std::string id) {
  const std::optional<json::Value> found = co_await kept(build_key(id));
  if (!found || !found->is_object()) co_return std::nullopt;
  const plugin::Document one(found->as_object());
  Build out(id, BuildStatus::failed);
  // Its image is gone, or it would not have been asked for here.
  if (one.string("status").value_or("") != "failed") out.status = BuildStatus::unknown;
  out.template_id = id;
  out.error = one.string("error").value_or("");
  out.started_at = std::strtoll(one.string("startedAt").value_or("0").c_str(), nullptr, 10);
  out.finished_at = std::strtoll(one.string("finishedAt").value_or("0").c_str(), nullptr, 10);
  co_return out;
}

// ---- The calls of the host

Task<Build> DockerBuilds::start(plugin::BuildRequest request) {
  std::string document, identity;
  Secrets secrets;
  if (request.template_document) {
    const Template given = Template::parse(*request.template_document);
    document = given.text();
    identity = given.identity();
  } else {
    const RepoOutcome outcome = co_await outcome_of(request.context);
    if (!outcome.plan || !outcome.complete || !request.context.has_repository()) {
      std::string why = "the session context yields no template to build";
      for (const std::string& warning : outcome.warnings)
        why += ": " + warning;
      throw fault(Code::unavailable, "docker.no_template", why);
    }
    const RepoStyle by = style(request.settings);
    const plugin::ResolvedTemplate resolved =
        plugin::resolved_template(outcome, by, base(request.settings));
    document = *resolved.document;
    identity = resolved.identity;
    secrets = repo_secrets(*outcome.plan, by);
  }
  TemplateImages images(engine(), options_);
  const std::optional<TemplateImage> there = co_await images.find(identity);
  const std::optional<Build> running = known(identity);
  if (there && (!running || running->status != BuildStatus::building))
    co_return ready_build(*there);
  Secrets ephemeral;
  for (const plugin::EnvEntry& entry : request.ephemeral_env)
    if (entry.value) ephemeral[entry.name] = *entry.value;
  static_cast<void>(Template().set_ephemeral_envs(ephemeral));  // throws what is wrong with them
  co_return begin(document, std::move(ephemeral), std::move(secrets));
}

Task<Build> DockerBuilds::get(std::string id) {
  const std::optional<Build> here = known(id);
  if (here && here->status != BuildStatus::ready) co_return *here;
  TemplateImages images(engine(), options_);
  const std::optional<TemplateImage> there = co_await images.find(id);
  if (there && here) co_return *here;
  if (there) co_return ready_build(*there);
  const bool elsewhere = co_await claim_lives(engine(), claim_name(id));
  if (elsewhere) {
    Build running(id, BuildStatus::building);
    running.template_id = id;
    running.retry_after = kLookAgain;
    co_return running;
  }
  const std::optional<Build> before = co_await kept_build(id);
  if (before) co_return *before;
  co_return Build(id, BuildStatus::unknown);
}

Task<std::vector<Build>> DockerBuilds::list() {
  TemplateImages images(engine(), options_);
  std::map<std::string, Build> all;
  const std::vector<TemplateImage> there = co_await images.list();
  for (const TemplateImage& image : there)
    all[image.identity] = ready_build(image);
  const std::optional<json::Value> index = co_await kept(kBuildIndex);
  if (index && index->is_array()) {
    for (const json::Value& id : index->as_array()) {
      if (!id.is_string() || all.count(id.as_string()) != 0) continue;
      const std::optional<Build> before = co_await kept_build(id.as_string());
      if (before) all[before->build_id] = *before;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, record] : records_)
      if (record->build.status != BuildStatus::ready || all.count(id) != 0) all[id] = record->build;
  }
  std::vector<Build> out;
  for (const auto& [id, build] : all)
    out.push_back(build);
  std::sort(out.begin(), out.end(),
            [](const Build& a, const Build& b) { return a.started_at > b.started_at; });
  co_return out;
}

Task<void> DockerBuilds::logs(std::string id, std::uint64_t cursor, plugin::Io& io) {
  const std::shared_ptr<BuildRecord> here = record(id);
  if (!here) {
    const std::optional<json::Value> before = co_await kept(build_key(id));
    if (!before || !before->is_object())
      throw fault(Code::not_found, "docker.no_log", "there is no log of the build " + id);
    const std::string text = plugin::Document(before->as_object()).string("log").value_or("");
    if (cursor < text.size()) co_await plugin::write_all(io, text.substr(cursor));
    co_return;
  }
  for (;;) {
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      over = here->ended();
    }
    std::string piece = here->log->read(cursor);
    if (!piece.empty()) co_await plugin::write_all(io, std::move(piece));
    if (over) co_return;
    plugin::throw_if_stopped(io.stop_reason());
    co_await plugin::sleep_for(kLogNap);
  }
}

void DockerBuilds::cancel(const std::string& id) {
  const std::shared_ptr<BuildRecord> here = record(id);
  if (here) here->stop.request_stop();
}

// ---- What a machine boots

Task<Booted> TemplateChoice::choose() {
  Booted out;
  const Template of = Template::parse(document_);
  TemplateImages images(engine_, options_);
  if (is_family_alone(of)) {
    warnings.emplace_back("the template could not be resolved: what stands in for it was booted");
  } else {
    const std::string identity = of.identity();
    const std::optional<TemplateImage> exact = co_await images.find(identity);
    if (exact) {
      out.image = exact->reference;
      out.provenance = plugin::Provenance::exact;
      co_return out;
    }
    std::optional<Build> build = builds_->known(identity);
    const bool begins = !build || build->status == BuildStatus::ready;
    if (begins) build = builds_->begin(document_, {}, builds_->take_secrets(identity));
    if (build->status == BuildStatus::failed) {
      warnings.push_back("the template could not be built: " + build->error);
    } else {
      pending = identity;
    }
  }
  const std::optional<TemplateImage> older = co_await images.newest(family_key(of));
  if (older) {
    out.image = older->reference;
    out.provenance = plugin::Provenance::family;
  }
  co_return out;
}

}  // namespace sandforge::docker
