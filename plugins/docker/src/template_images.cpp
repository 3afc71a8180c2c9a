#include "template_images.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>
#include <sandforge/support/hash.hpp>
#include <sandforge/support/shell.hpp>
#include <sandforge/wire/docker/frames.hpp>

#include "machine.hpp"

namespace sandforge::docker {
namespace {

constexpr milliseconds kCommitTime = std::chrono::minutes(10);
constexpr milliseconds kEndedNap{20};
constexpr milliseconds kClaimNap{1000};
constexpr int kEndedNaps = 1500;  // thirty seconds
constexpr std::size_t kShownOfLog = 2000;

std::string container_path(const std::string& id, const std::string& rest) {
  return "/containers/" + percent_encode(id) + rest;
}

std::string text_member(const json::Value& of, const char* key) {
  const json::Value* value = of.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : "";
}
json::Value list_member(const json::Value& of, const char* key) {
  const json::Value* value = of.find(key);
  return value != nullptr && value->is_array() ? *value : json::Value(json::Array());
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_not_of('/') == std::string::npos
                         ? 0
                         : path.rfind('/', path.find_last_not_of('/'));
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

// The assignments that a step takes from its stdin, before its own secrets.
std::string assignments(const std::map<std::string, std::string>& values) {
  std::string out;
  for (const auto& [name, value] : values)
    out += "export " + name + "=" + shell_quote(value) + "\n";
  return out;
}

// The configuration of the next image. An engine puts the container's where a member is empty.
constexpr std::size_t kNameDigits = 20;

json::Object config_of(const BuildLayer& layer) {
  json::Object out;
  out.set("Entrypoint", layer.entrypoint);
  const bool none = layer.entrypoint.as_array().empty() && layer.command.as_array().empty();
  json::Array shell;
  shell.emplace_back("/bin/sh");
  out.set("Cmd", none ? json::Value(std::move(shell)) : layer.command);
  if (!layer.user.empty()) out.set("User", layer.user);
  out.set("WorkingDir", layer.workdir);
  return out;
}

}  // namespace

// ---- The log

void BuildLog::add(std::string_view text) {
  const std::lock_guard lock(mutex_);
  text_ += text;
  if (text_.size() <= kMost) return;
  const std::size_t over = text_.size() - kMost;
  text_.erase(0, over);
  dropped_ += over;
}

std::string BuildLog::read(std::uint64_t& cursor) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t from = std::max(cursor, dropped_);
  const std::uint64_t end = dropped_ + text_.size();
  if (from >= end) return {};
  cursor = end;
  return text_.substr(static_cast<std::size_t>(from - dropped_));
}

std::string BuildLog::tail(std::size_t most) const {
  const std::lock_guard lock(mutex_);
  return text_.size() <= most ? text_ : text_.substr(text_.size() - most);
}

std::string family_key(const Template& of) {
  if (!of.family()) return {};
  const TemplateResources& sizes = of.resources();
  return sha256_hex(*of.family() + '\n' + std::to_string(sizes.cpu_count.value_or(0)) + '\n' +
                    std::to_string(sizes.memory_mb.value_or(0)));
}

// ---- Looking

Task<std::optional<TemplateImage>> TemplateImages::find(std::string identity) {
  const HttpAnswer answer = co_await engine_.call(
      "GET", "/images/" + percent_encode_path(template_reference(identity)) + "/json");
  if (answer.status == 404) co_return std::nullopt;
  engine_.throw_if_refused(answer, "look at an image");
  const auto image = wire::read_image(answer.body);
  if (!image) throw engine_.no_answer_of_api("look at an image");
  std::optional<TemplateImage> out = told_template(*image);
  if (out && out->identity != identity) out.reset();
  co_return out;
}

Task<std::vector<TemplateImage>> TemplateImages::list() {
  wire::Query query;
  query.add("filters", wire::label_filter(kTemplateLabel));
  const HttpAnswer answer = co_await engine_.call("GET", "/images/json" + query.text());
  engine_.throw_if_refused(answer, "list the images");
  const auto found = wire::read_images(answer.body);
  if (!found) throw engine_.no_answer_of_api("list the images");
  std::vector<TemplateImage> out;
  for (const wire::ImageInfo& image : *found)
    if (auto one = told_template(image)) out.push_back(std::move(*one));
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.created_at > b.created_at; });
  co_return out;
}

Task<std::optional<TemplateImage>> TemplateImages::newest(std::string family) {
  if (family.empty()) co_return std::nullopt;
  const std::vector<TemplateImage> all = co_await list();
  for (const TemplateImage& image : all)
    if (image.family == family) co_return image;
  co_return std::nullopt;
}

Task<std::optional<std::string>> TemplateImages::cached(std::string key) {
  wire::Query query;
  query.add("all", "true").add("filters", wire::label_filter(kLayerLabel, key));
  const HttpAnswer answer = co_await engine_.call("GET", "/images/json" + query.text());
  engine_.throw_if_refused(answer, "list the images");
  const auto found = wire::read_images(answer.body);
  if (!found) throw engine_.no_answer_of_api("list the images");
  // The image of a whole template has the label of its last operation, too, and its own beside it.
  for (const wire::ImageInfo& image : *found)
    if (image.label(kTemplateLabel).empty()) co_return image.id;
  co_return std::nullopt;
}

Task<BuildLayer> TemplateImages::base_layer(std::string image) {
  Machines machines(engine_, options_);
  co_await machines.need_image(image);
  const HttpAnswer answer =
      co_await engine_.call("GET", "/images/" + percent_encode_path(image) + "/json");
  engine_.throw_if_refused(answer, "look at the image");
  const json::ParseResult parsed = json::parse(answer.body);
  const json::Value* config = parsed ? parsed.value.find("Config") : nullptr;
  BuildLayer out;
  if (parsed) out.id = text_member(parsed.value, "Id");
  if (out.id.empty()) throw engine_.no_answer_of_api("look at the image");
  const json::Value none{json::Object()};
  const json::Value& of = config != nullptr && config->is_object() ? *config : none;
  out.user = text_member(of, "User");
  out.workdir = text_member(of, "WorkingDir");
  if (out.workdir.empty()) out.workdir = "/";
  out.entrypoint = list_member(of, "Entrypoint");
  out.command = list_member(of, "Cmd");
  co_return out;
}

// ---- One step

class TemplateImages::Step {
 public:
  Step() {}
  std::shared_ptr<const BuildOrder> order;
  std::shared_ptr<BuildLog> log;
  std::shared_ptr<const Redactor> redactor;
  TemplateStep step;
  std::string name;  // "step 2 of 5 (run make)"
  BuildLayer parent;
  json::Object config;  // of the image that it becomes
  std::string claim;    // the container that stands for the right to build; empty: none
  std::vector<std::string> containers;
};

Task<std::string> TemplateImages::create(std::shared_ptr<Step> step, std::string user,
                                         std::string script) {
  json::Object host;
  host.set("Init", true);
  if (!options_->build_network.empty()) host.set("NetworkMode", options_->build_network);
  if (!options_->build_binds.empty()) {
    json::Array binds;
    for (const std::string& bind : options_->build_binds)
      binds.emplace_back(bind);
    host.set("Binds", std::move(binds));
  }
  json::Object labels;
  labels.set(std::string(kBuildLabel), step->order->identity);
  if (!step->claim.empty()) labels.set(std::string(kClaimedByLabel), step->claim);
  json::Array shell, words;
  shell.emplace_back("/bin/sh");
  shell.emplace_back("-c");
  words.emplace_back(std::move(script));
  json::Object body;
  body.set("Image", step->parent.id);
  body.set("Entrypoint", std::move(shell));
  body.set("Cmd", std::move(words));
  body.set("WorkingDir", step->step.workdir);
  if (!user.empty() && !step->parent.user.empty()) body.set("User", user);
  body.set("OpenStdin", true);
  body.set("StdinOnce", true);
  body.set("AttachStdin", true);
  body.set("AttachStdout", true);
  body.set("AttachStderr", true);
  body.set("Labels", std::move(labels));
  body.set("HostConfig", std::move(host));
  const std::string text = json::write(json::Value(std::move(body)));
  wire::Query query;
  query.add("name", std::string(kStepName) + random_digits(kNameDigits));
  if (!options_->platform.empty()) query.add("platform", options_->platform);
  // A stop between the making and its answer would leave a container that nobody knows.
  const HttpAnswer answer = co_await plugin::with_stop(
      plugin::StopToken(), engine_.call("POST", "/containers/create" + query.text(), text));
  engine_.throw_if_refused(answer, "create a build container");
  const auto made = wire::read_created_container(answer.body);
  if (!made) throw engine_.no_answer_of_api("create a build container");
  step->containers.push_back(made->id);
  co_return made->id;
}

// To its end: then the engine has ended all processes of the container.
Task<void> TemplateImages::run(std::shared_ptr<Step> step, std::string container,
                               std::string input) {
  plugin::HttpRequest attach(
      "POST", container_path(container, "/attach?stream=1&stdin=1&stdout=1&stderr=1"));
  HttpStream stream = co_await engine_.open(attach, SF_HTTP_UPGRADE);
  if (stream.status() >= 300) {
    const HttpAnswer refused = co_await stream.rest();
    engine_.throw_if_refused(refused, "attach to a build container");
    throw engine_.no_answer_of_api("attach to a build container");
  }
  const HttpAnswer begun = co_await engine_.call("POST", container_path(container, "/start"),
                                                 std::string(), kCommitTime);
  engine_.throw_if_refused(begun, "start a build container");
  try {
    if (!input.empty()) co_await stream.write_all(input);
    stream.shutdown_write();
  } catch (const Error& error) {
    // A step that ended without reading tells why by its end.
    if (error.code() == Code::cancelled) throw;
  }
  wire::Demultiplexer frames;
  RedactingStream redacting(*step->redactor);
  std::string said;
  const auto say = [&](const std::string& text) {
    step->log->add(text);
    said += text;
    if (said.size() > kShownOfLog) said.erase(0, said.size() - kShownOfLog);
  };
  for (;;) {
    const std::optional<plugin::Output> piece = co_await stream.read_some();
    if (!piece) break;
    std::string_view bytes = piece->data;
    while (const auto next = frames.next(bytes))
      say(redacting.feed(next->data));
  }
  say(redacting.flush());
  Machines machines(engine_, options_);
  for (int naps = 0; naps < kEndedNaps; ++naps) {
    const std::optional<wire::ContainerInfo> info = co_await machines.inspect(container);
    if (!info)
      throw fault(Code::unavailable, "docker.build_lost",
                  step->name + ": its container was removed from outside");
    if (!info->running && info->status != "created") {
      if (info->exit_code == 0 && !info->oom_killed) co_return;
      throw fault(Code::invalid, "docker.build_step",
                  step->name + " exited with " + std::to_string(info->exit_code) +
                      (info->oom_killed ? " (out of memory)" : "") + ":\n" + said)
          .detail("step", static_cast<long long>(step->step.position + 1))
          .detail("exitCode", static_cast<long long>(info->exit_code));
    }
    co_await plugin::sleep_for(kEndedNap);
  }
  throw fault(Code::unavailable, "docker.build_lost",
              step->name + ": its output has ended, and its processes have not");
}

Task<std::string> TemplateImages::commit(std::string container, std::string body,
                                         std::string reference) {
  wire::Query query;
  query.add("container", container);
  if (!reference.empty()) {
    const wire::ImageReference split = wire::split_image(reference);
    query.add("repo", split.repository).add("tag", split.tag);
  }
  const HttpAnswer answer =
      co_await engine_.call("POST", "/commit" + query.text(), body, kCommitTime);
  engine_.throw_if_refused(answer, "keep what a step did");
  const json::ParseResult parsed = json::parse(answer.body);
  std::string id;
  if (parsed) id = text_member(parsed.value, "Id");
  if (id.empty()) throw engine_.no_answer_of_api("keep what a step did");
  co_return id;
}

Task<std::string> TemplateImages::run_step(std::shared_ptr<Step> step) {
  const TemplateStep& of = step->step;
  const std::string config = json::write(json::Value(step->config));
  if (of.script.empty()) {
    const std::string still = co_await create(step, std::string(), "exit 0");
    std::string made = co_await commit(still, config, std::string());
    co_return made;
  }
  const auto& ephemeral = step->order->ephemeral;
  const bool wrapped = !ephemeral.empty();
  const std::string script =
      wrapped ? "eval \"$(cat)\" &&\neval " + shell_quote(of.script) : of.script;
  const std::string container = co_await create(step, of.user, script);
  co_await run(step, container, assignments(ephemeral));
  std::string made = co_await commit(container, config, std::string());
  co_return made;
}

// It runs in a container that is thrown away; the one path goes into another one.
Task<std::string> TemplateImages::run_secret_step(std::shared_ptr<Step> step) {
  const TemplateStep& of = step->step;
  const std::string own = secrets_input(of, step->order->secrets);
  const std::string input = assignments(step->order->ephemeral) + own;
  // A step with secrets takes its stdin by itself.
  const bool wrapped = of.secrets.empty() && !input.empty();
  const std::string script =
      wrapped ? "eval \"$(cat)\" &&\neval " + shell_quote(of.script) : of.script;
  const std::string thrown = co_await create(step, of.user, script);
  co_await run(step, thrown, input);
  const std::string path = shell_quote(of.output->path);
  std::string prepare = "mkdir -p -- " + shell_quote(folder_of(of.output->path));
  if (!of.output->owner.empty())
    prepare += " && if [ -e " + path + " ]; then chown -R -- " + shell_quote(of.output->owner) +
               " " + path + "; fi";
  const std::string kept = co_await create(step, "0", prepare);
  co_await run(step, kept, std::string());
  co_await move_output(step, thrown, kept);
  if (!of.output->owner.empty()) co_await run(step, kept, std::string());
  const std::string config = json::write(json::Value(step->config));
  std::string made = co_await commit(kept, config, std::string());
  co_return made;
}

Task<void> TemplateImages::move_output(std::shared_ptr<Step> step, std::string from,
                                       std::string to) {
  const std::string path = step->step.output->path;
  wire::Query out, in;
  out.add("path", path);
  in.add("path", folder_of(path));
  plugin::HttpRequest get("GET", container_path(from, "/archive" + out.text()));
  get.timeout = kCommitTime;
  HttpStream files = co_await engine_.open(get);
  if (files.status() != 200) {
    const HttpAnswer refused = co_await files.rest();
    if (refused.status == 404)
      throw fault(Code::invalid, "docker.build_step",
                  step->name + " did not leave what it is to leave: " + path)
          .detail("step", static_cast<long long>(step->step.position + 1));
    engine_.throw_if_refused(refused, "read what a step left");
  }
  plugin::HttpRequest put("PUT", container_path(to, "/archive" + in.text()));
  put.headers.emplace_back("Content-Type", "application/x-tar");
  HttpStream target = co_await engine_.upload(put);
  bool taken = true;
  while (taken) {
    const std::optional<plugin::Output> piece = co_await files.read_some();
    if (!piece) break;
    try {
      co_await target.write_all(std::string(piece->data));
    } catch (const Error&) {
      taken = false;  // it has answered, or the wait for its answer tells why not
    }
  }
  if (taken) target.shutdown_write();
  co_await target.answered();
  const HttpAnswer answer = co_await target.rest();
  engine_.throw_if_refused(answer, "keep what a step left");
}

Task<void> TemplateImages::remove(std::vector<std::string> containers) {
  for (const std::string& id : containers) {
    try {
      const HttpAnswer answer = co_await engine_.call(
          "DELETE", container_path(id, "?force=true&v=true"), std::string(), kCommitTime);
      if (answer.status != 404 && answer.status != 409)
        engine_.throw_if_refused(answer, "remove a build container");
    } catch (const Error& error) {
      plugin::Log::warn("a build container is left behind",
                        {{"container", id}, {"why", error.message()}});
    }
  }
}

// ---- All of them

// False: another host has made the image meanwhile.
Task<bool> TemplateImages::wait_for(BuildClaim& claim, std::string identity,
                                    std::shared_ptr<BuildLog> log) {
  for (bool told = false;; told = true) {
    const BuildClaim::Taken taken = co_await claim.take();
    // The other one had it until it was ready.
    const std::optional<TemplateImage> there = co_await find(identity);
    if (there) co_return false;
    if (taken != BuildClaim::Taken::others) co_return true;
    if (!told) log->add("another host builds the same: its end is waited for\n");
    co_await plugin::sleep_for(kClaimNap);
  }
}

Task<void> TemplateImages::build(std::shared_ptr<const BuildOrder> order,
                                 std::shared_ptr<BuildLog> log) {
  const Template of = Template::parse(order->document);
  const std::string base = of.base().value_or(
      options_->base_image.empty() ? ProviderOptions::kDefaultImage : options_->base_image);
  const BuildLayer layer = co_await base_layer(base);
  log->add("from " + base + "\n");
  BuildClaim claim(engine_, options_, order->identity, layer.id);
  std::exception_ptr failed;
  try {
    const bool mine = co_await wait_for(claim, order->identity, log);
    if (mine) co_await build_steps(order, log, layer, claim.container());
  } catch (...) {
    failed = std::current_exception();
  }
  co_await plugin::with_stop(plugin::StopToken(), claim.release());
  if (failed) std::rethrow_exception(failed);
  log->add("ready\n");
}

Task<void> TemplateImages::build_steps(std::shared_ptr<const BuildOrder> order,
                                       std::shared_ptr<BuildLog> log, BuildLayer layer,
                                       std::string claim) {
  const Template of = Template::parse(order->document);
  const auto redactor = std::make_shared<Redactor>();
  for (const auto* values : {&order->secrets, &order->ephemeral})
    for (const auto& [name, value] : *values)
      redactor->add(value);
  StepOptions where;
  where.workdir = layer.workdir;
  const std::vector<TemplateStep> steps = template_steps(of, where);
  for (std::size_t i = 0; i <= steps.size(); ++i) {
    const auto step = std::make_shared<Step>();
    step->order = order;
    step->log = log;
    step->redactor = redactor;
    step->parent = layer;
    step->claim = claim;
    const bool last = i == steps.size();
    json::Object labels;
    // An engine gives an image the labels of its container, and containers those of their image.
    labels.set(std::string(kBuildLabel), "");
    labels.set(std::string(kClaimedByLabel), "");
    std::string key;
    if (last) {
      step->step.position = i;
      step->step.workdir = layer.workdir;
      labels.set(std::string(kTemplateLabel), order->identity);
      labels.set(std::string(kTemplateFamilyLabel), order->family);
      labels.set(std::string(kTemplateTimeLabel), std::to_string(plugin::Host().now()));
    } else {
      step->step = steps[i];
      step->name = "step " + std::to_string(i + 1) + " of " + std::to_string(steps.size()) + " (" +
                   steps[i].title + ")";
      key = sha256_hex(layer.id + '\n' + options_->platform + '\n' + of.operation_text(i));
      labels.set(std::string(kLayerLabel), key);
      labels.set(std::string(kTemplateLabel), "");
      const std::optional<std::string> known = co_await cached(key);
      log->add(redactor->redact(step->name) + (known ? ": cached\n" : "\n"));
      if (i + 1 < steps.size())
        layer.workdir = steps[i + 1].workdir;
      else
        layer.workdir = template_config(of, where).workdir;
      if (layer.workdir.empty()) layer.workdir = where.workdir;
      if (known) {
        layer.id = *known;
        continue;
      }
    }
    step->config = config_of(layer);
    if (!last) {
      if (const auto* set = std::get_if<SetEnvs>(&of.operations()[i])) {
        json::Array env;
        for (const auto& [name, value] : set->values)
          env.emplace_back(name + '=' + value);
        step->config.set("Env", std::move(env));
      }
    }
    step->config.set("Labels", std::move(labels));
    std::exception_ptr failed;
    try {
      if (last) {
        const std::string still = co_await create(step, std::string(), "exit 0");
        layer.id = co_await commit(still, json::write(json::Value(step->config)),
                                   template_reference(order->identity));
      } else if (step->step.output) {
        layer.id = co_await run_secret_step(step);
      } else {
        layer.id = co_await run_step(step);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    co_await plugin::with_stop(plugin::StopToken(), remove(step->containers));
    if (failed) std::rethrow_exception(failed);
  }
}

}  // namespace sandforge::docker
