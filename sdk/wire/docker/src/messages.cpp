#include "sandforge/wire/docker/messages.hpp"

#include "sandforge/support/utf8.hpp"

namespace sandforge::wire::docker {
namespace {

constexpr std::size_t kLongestMessage = 2048;

std::string text_of(const json::Object& object, std::string_view key) {
  const json::Value* value = object.find(key);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}
bool flag_of(const json::Object& object, std::string_view key) {
  const json::Value* value = object.find(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}
std::optional<std::int64_t> integer_of(const json::Object& object, std::string_view key) {
  const json::Value* value = object.find(key);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  return value->as_integer();
}
const json::Object& object_of(const json::Object& object, std::string_view key) {
  static const json::Object none;
  const json::Value* value = object.find(key);
  return value != nullptr && value->is_object() ? value->as_object() : none;
}
Texts texts_of(const json::Object& object, std::string_view key) {
  Texts out;
  const json::Value* value = object.find(key);
  if (value == nullptr || !value->is_array()) return out;
  for (const json::Value& item : value->as_array())
    if (item.is_string()) out.push_back(item.as_string());
  return out;
}
std::optional<Texts> maybe_texts_of(const json::Object& object, std::string_view key) {
  const json::Value* value = object.find(key);
  if (value == nullptr || !value->is_array()) return std::nullopt;
  return texts_of(object, key);
}
// As a word that no variable is put into.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '$') out += '\\';
    out += c;
  }
  return out + '"';
}
json::Array array_of(const Texts& texts) {
  json::Array out;
  for (const std::string& text : texts)
    out.emplace_back(text);
  return out;
}

json::ParseResult parse(std::string_view body) {
  json::Limits limits;
  limits.bytes = 16U << 20;
  return json::parse(body, limits);
}

std::optional<json::Object> parse_object(std::string_view body) {
  json::ParseResult parsed = parse(body);
  if (!parsed || !parsed.value.is_object()) return std::nullopt;
  return std::move(parsed.value.as_object());
}

}  // namespace

std::string error_message(std::string_view body) {
  std::string text;
  if (const auto object = parse_object(body)) {
    text = text_of(*object, "message");
  } else {
    text = body.substr(0, kLongestMessage);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return escape_controls(text.substr(0, kLongestMessage));
}

std::optional<CreatedContainer> read_created_container(std::string_view body) {
  const auto object = parse_object(body);
  if (!object || text_of(*object, "Id").empty()) return std::nullopt;
  CreatedContainer out;
  out.id = text_of(*object, "Id");
  out.warnings = texts_of(*object, "Warnings");
  return out;
}

namespace {

// Engines write names as paths.
std::string without_slash(std::string name) {
  if (!name.empty() && name.front() == '/') name.erase(0, 1);
  return name;
}

}  // namespace

std::optional<std::vector<ContainerSummary>> read_containers(std::string_view body) {
  const json::ParseResult parsed = parse(body);
  if (!parsed || !parsed.value.is_array()) return std::nullopt;
  std::vector<ContainerSummary> out;
  for (const json::Value& item : parsed.value.as_array()) {
    if (!item.is_object() || text_of(item.as_object(), "Id").empty()) return std::nullopt;
    ContainerSummary one;
    one.id = text_of(item.as_object(), "Id");
    const json::Value* names = item.as_object().find("Names");
    if (names != nullptr && names->is_array() && !names->as_array().empty() &&
        names->as_array()[0].is_string())
      one.name = without_slash(names->as_array()[0].as_string());
    one.created = integer_of(item.as_object(), "Created").value_or(0);
    one.state = text_of(item.as_object(), "State");
    one.image_id = text_of(item.as_object(), "ImageID");
    one.labels = object_of(item.as_object(), "Labels");
    out.push_back(std::move(one));
  }
  return out;
}

std::string ContainerSummary::label(std::string_view wanted) const {
  return text_of(labels, wanted);
}

std::string ContainerInfo::label(std::string_view wanted) const {
  return text_of(labels, wanted);
}

std::optional<ContainerInfo> read_container(std::string_view body) {
  const auto object = parse_object(body);
  if (!object || text_of(*object, "Id").empty()) return std::nullopt;
  ContainerInfo out;
  out.id = text_of(*object, "Id");
  out.name = without_slash(text_of(*object, "Name"));
  out.image_id = text_of(*object, "Image");
  out.created = text_of(*object, "Created");
  const json::Object& state = object_of(*object, "State");
  out.status = text_of(state, "Status");
  out.running = flag_of(state, "Running");
  out.paused = flag_of(state, "Paused");
  out.restarting = flag_of(state, "Restarting");
  out.dead = flag_of(state, "Dead");
  out.oom_killed = flag_of(state, "OOMKilled");
  out.exit_code = integer_of(state, "ExitCode").value_or(0);
  out.error = text_of(state, "Error");
  const json::Object& config = object_of(*object, "Config");
  out.image = text_of(config, "Image");
  out.working_directory = text_of(config, "WorkingDir");
  out.user = text_of(config, "User");
  out.env = texts_of(config, "Env");
  out.entrypoint = maybe_texts_of(config, "Entrypoint");
  out.labels = object_of(config, "Labels");
  const json::Object& limits = object_of(*object, "HostConfig");
  out.memory = integer_of(limits, "Memory").value_or(0);
  out.nano_cpus = integer_of(limits, "NanoCpus").value_or(0);
  if (const json::Value* mounts = object->find("Mounts"); mounts != nullptr && mounts->is_array())
    for (const json::Value& mount : mounts->as_array())
      if (mount.is_object()) out.mounted.push_back(text_of(mount.as_object(), "Destination"));
  for (const auto& [path, options] : object_of(limits, "Tmpfs"))
    out.mounted.push_back(path);
  for (const auto& [port, bound] : object_of(object_of(*object, "NetworkSettings"), "Ports")) {
    if (!bound.is_array()) continue;  // exposed, and not published
    for (const json::Value& one : bound.as_array()) {
      if (!one.is_object()) continue;
      out.ports.emplace_back();
      out.ports.back().port = port;
      out.ports.back().address = text_of(one.as_object(), "HostIp");
      out.ports.back().host_port = text_of(one.as_object(), "HostPort");
    }
  }
  return out;
}

std::string ImageInfo::label(std::string_view wanted) const {
  return text_of(labels, wanted);
}

std::optional<ImageInfo> read_image(std::string_view body) {
  const auto object = parse_object(body);
  if (!object || text_of(*object, "Id").empty()) return std::nullopt;
  ImageInfo out;
  out.id = text_of(*object, "Id");
  out.tags = texts_of(*object, "RepoTags");
  out.bytes = static_cast<std::uint64_t>(integer_of(*object, "Size").value_or(0));
  const json::Object& config = object_of(*object, "Config");
  out.labels = object_of(config, "Labels");
  out.user = text_of(config, "User");
  out.env = texts_of(config, "Env");
  out.entrypoint = maybe_texts_of(config, "Entrypoint");
  return out;
}

std::optional<std::vector<ImageInfo>> read_images(std::string_view body) {
  const json::ParseResult parsed = parse(body);
  if (!parsed || !parsed.value.is_array()) return std::nullopt;
  std::vector<ImageInfo> out;
  for (const json::Value& item : parsed.value.as_array()) {
    if (!item.is_object() || text_of(item.as_object(), "Id").empty()) return std::nullopt;
    ImageInfo one;
    one.id = text_of(item.as_object(), "Id");
    one.tags = texts_of(item.as_object(), "RepoTags");
    one.bytes = static_cast<std::uint64_t>(integer_of(item.as_object(), "Size").value_or(0));
    one.parent = text_of(item.as_object(), "ParentId");
    one.created = integer_of(item.as_object(), "Created").value_or(0);
    one.labels = object_of(item.as_object(), "Labels");
    out.push_back(std::move(one));
  }
  return out;
}

std::string VolumeInfo::label(std::string_view wanted) const {
  return text_of(labels, wanted);
}

std::optional<std::vector<VolumeInfo>> read_volumes(std::string_view body) {
  const auto object = parse_object(body);
  if (!object) return std::nullopt;
  std::vector<VolumeInfo> out;
  const json::Value* volumes = object->find("Volumes");
  if (volumes == nullptr || !volumes->is_array()) return out;
  for (const json::Value& item : volumes->as_array()) {
    if (!item.is_object() || text_of(item.as_object(), "Name").empty()) return std::nullopt;
    VolumeInfo one;
    one.name = text_of(item.as_object(), "Name");
    one.created = text_of(item.as_object(), "CreatedAt");
    one.labels = object_of(item.as_object(), "Labels");
    out.push_back(std::move(one));
  }
  return out;
}

std::optional<std::string> read_exec_id(std::string_view body) {
  const auto object = parse_object(body);
  if (!object || text_of(*object, "Id").empty()) return std::nullopt;
  return text_of(*object, "Id");
}

std::optional<ExecInfo> read_exec(std::string_view body) {
  const auto object = parse_object(body);
  if (!object || !object->contains("Running")) return std::nullopt;
  ExecInfo out;
  out.running = flag_of(*object, "Running");
  out.exit_code = integer_of(*object, "ExitCode");
  return out;
}

Progress::Progress(const json::Object& object)
    : id(text_of(object, "id")), status(text_of(object, "status")) {
  const json::Object& detail = object_of(object, "progressDetail");
  current = integer_of(detail, "current");
  total = integer_of(detail, "total");
  const bool failed = object.contains("errorDetail") || object.contains("error");
  if (!failed) return;
  error = text_of(object_of(object, "errorDetail"), "message");
  if (error.empty()) error = text_of(object, "error");
  if (error.empty()) error = "the engine gives no reason";
  error = escape_controls(error.substr(0, kLongestMessage));
}

std::string write_exec(const ExecRequest& request) {
  json::Object body;
  body.set("AttachStdin", request.pipe_stdin);
  body.set("AttachStdout", request.attach);
  body.set("AttachStderr", request.attach);
  body.set("Tty", false);
  body.set("Cmd", array_of(request.command));
  if (!request.env.empty()) body.set("Env", array_of(request.env));
  if (!request.user.empty()) body.set("User", request.user);
  if (!request.directory.empty()) body.set("WorkingDir", request.directory);
  return json::write(json::Value(std::move(body)));
}

std::string write_exec_start(bool detach) {
  return detach ? R"({"Detach":true,"Tty":false})" : R"({"Detach":false,"Tty":false})";
}

std::string label_filter(std::string_view name, std::string_view value) {
  Labels only;
  only.emplace_back(name, value);
  return label_filter(only);
}

std::string label_filter(const Labels& all) {
  json::Array labels;
  for (const auto& [name, value] : all)
    labels.emplace_back(name + (value.empty() ? "" : "=" + value));
  json::Object filter;
  filter.set("label", std::move(labels));
  return json::write(json::Value(std::move(filter)));
}

std::string write_env(std::string_view name, std::string_view value) {
  return "ENV " + std::string(name) + '=' + quoted(value);
}

std::string write_label(std::string_view name, std::string_view value) {
  return "LABEL " + std::string(name) + '=' + quoted(value);
}

std::string write_entrypoint(const Texts& words) {
  return "ENTRYPOINT " + json::write(json::Value(array_of(words)));
}

}  // namespace sandforge::wire::docker
