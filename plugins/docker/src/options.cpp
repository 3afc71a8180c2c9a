#include "options.hpp"

#include <sandforge/support/hash.hpp>
#include <sandforge/wire/docker/messages.hpp>

namespace sandforge::docker {
namespace {

using json::Array;
using json::Object;
using json::Value;
using plugin::Document;

const std::vector<std::string> kIdle = {"sleep", "infinity"};

Error wrong(const std::string& pointer, const std::string& why) {
  return fault(Code::invalid, "docker.options", why).detail("pointer", pointer);
}

// Options are valid by the manifest's schema: what is there has its type.
const Value* member(const Document& options, std::string_view key) {
  const Value* value = options.object().find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}
std::vector<std::string> texts(const Document& options, std::string_view key) {
  std::vector<std::string> out;
  if (const Value* value = member(options, key))
    for (const Value& item : value->as_array())
      out.push_back(item.as_string());
  return out;
}
Array array_of(const std::vector<std::string>& texts) {
  Array out;
  for (const std::string& text : texts)
    out.emplace_back(text);
  return out;
}

std::optional<std::string> variable(const plugin::Host& host, const char* name) {
  std::optional<std::string> value = host.env(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::shared_ptr<const EngineOptions> read_engine(const Document& given, const plugin::Host& host) {
  auto out = std::make_shared<EngineOptions>();
  const bool verify = variable(host, "DOCKER_TLS_VERIFY").has_value();
  std::string where = given.string("host").value_or("");
  const bool by_option = !where.empty();
  if (!by_option) where = variable(host, "DOCKER_HOST").value_or("");
  out->ca_pem = given.string("ca").value_or("");
  out->cert_pem = given.string("cert").value_or("");
  out->key_pem = given.string("key").value_or("");
  if (out->cert_pem.empty() != out->key_pem.empty())
    throw wrong("/engine", "a client's certificate and its key go together");
  const bool pem = !out->ca_pem.empty() || !out->cert_pem.empty();
  wire::EndpointResult found = wire::parse_endpoint(where, verify || pem);
  if (!found.endpoint) throw wrong(by_option ? "/engine/host" : "", found.error);
  if (pem && !found.endpoint->tls)
    throw wrong("/engine", "certificates are for engines that are reached by TLS, not for " +
                               found.endpoint->shown);
  out->endpoint = std::move(*found.endpoint);
  out->cert_folder = variable(host, "DOCKER_CERT_PATH").value_or("");
  if (const auto version = variable(host, "DOCKER_API_VERSION"))
    out->newest_api = wire::parse_api_version(*version);
  return out;
}

// ---- What goes to the engine as it is, by another name

struct Renamed {
  const char* ours;
  const char* theirs;
};
constexpr Renamed kPlain[] = {{"privileged", "Privileged"},   {"memory", "Memory"},
                              {"memorySwap", "MemorySwap"},   {"cpuShares", "CpuShares"},
                              {"cpuQuota", "CpuQuota"},       {"cpuPeriod", "CpuPeriod"},
                              {"pidsLimit", "PidsLimit"},     {"readonlyRootfs", "ReadonlyRootfs"},
                              {"capDrop", "CapDrop"},         {"capAdd", "CapAdd"},
                              {"securityOpt", "SecurityOpt"}, {"tmpfs", "Tmpfs"}};

Object renamed(const Object& from, std::initializer_list<Renamed> names) {
  Object out;
  for (const Renamed& name : names)
    if (const Value* value = from.find(name.ours)) out.set(name.theirs, *value);
  return out;
}

Array binds(const Value& volumes) {
  Array out;
  for (const auto& [source, target] : volumes.as_object())
    out.emplace_back(source + ':' + target.as_string());
  return out;
}

Array mounts(const Value& given) {
  Array out;
  for (const Value& item : given.as_array()) {
    Object mount = renamed(
        item.as_object(),
        {{"type", "Type"}, {"target", "Target"}, {"source", "Source"}, {"readOnly", "ReadOnly"}});
    if (const Value* volume = item.find("volume"))
      mount.set("VolumeOptions",
                renamed(volume->as_object(),
                        {{"subpath", "Subpath"}, {"noCopy", "NoCopy"}, {"labels", "Labels"}}));
    if (const Value* bind = item.find("bind"))
      mount.set("BindOptions", renamed(bind->as_object(), {{"propagation", "Propagation"}}));
    if (const Value* tmpfs = item.find("tmpfs"))
      mount.set("TmpfsOptions",
                renamed(tmpfs->as_object(), {{"sizeBytes", "SizeBytes"}, {"mode", "Mode"}}));
    out.emplace_back(std::move(mount));
  }
  return out;
}

Array ulimits(const Value& given) {
  Array out;
  for (const Value& item : given.as_array())
    out.emplace_back(
        renamed(item.as_object(), {{"name", "Name"}, {"soft", "Soft"}, {"hard", "Hard"}}));
  return out;
}

// The engine's default network reaches other containers and this machine: that is no isolation, so
// none is claimed for it.
std::optional<std::string> network_mode(const Document& options) {
  const auto isolation = options.string("networkIsolation");
  const auto name = options.string("networkName");
  if (name && !isolation)
    throw wrong("/networkName", "a network is named for networkIsolation PRIVATE");
  if (!isolation) return std::nullopt;
  if (*isolation == "NONE") return "none";
  if (*isolation == "PRIVATE") {
    if (!name) throw wrong("/networkName", "networkIsolation PRIVATE needs the name of a network");
    return *name;
  }
  throw fault(Code::unsupported, "docker.isolation",
              "an engine cannot keep a container from this machine and its other networks, so "
              "networkIsolation ISOLATED is not offered: use NONE, PRIVATE, or leave it out")
      .detail("pointer", "/networkIsolation");
}

Object read_host_config(const Document& options) {
  Object out;
  out.set("Init", options.boolean("init").value_or(true));
  for (const Renamed& name : kPlain)
    if (const Value* value = member(options, name.ours)) out.set(name.theirs, *value);
  if (const auto cpus = options.number("cpus"))
    out.set("NanoCpus", static_cast<long long>(*cpus * 1e9));
  if (const Value* volumes = member(options, "volumes")) out.set("Binds", binds(*volumes));
  if (const Value* given = member(options, "mounts")) out.set("Mounts", mounts(*given));
  if (const Value* given = member(options, "ulimits")) out.set("Ulimits", ulimits(*given));
  if (const auto mode = network_mode(options)) out.set("NetworkMode", *mode);
  return out;
}

// Who may mount what it likes could change the program that all containers of the engine share.
bool may_mount(const Document& options) {
  if (options.boolean("privileged").value_or(false)) return true;
  for (const std::string& name : texts(options, "capAdd"))
    if (name == "ALL" || name == "SYS_ADMIN" || name == "CAP_SYS_ADMIN") return true;
  return false;
}

std::shared_ptr<GuestProgram> read_guest(const Document& options, const plugin::Host& host) {
  const std::string path = options.string("commandPath").value_or("auto");
  if (path != "auto" || may_mount(options)) return nullptr;
  const std::optional<std::string> folder = host.folder(SF_PATH_PLUGIN);
  return folder ? std::make_shared<GuestProgram>(*folder + "/sandforge-guest") : nullptr;
}

PullPolicy read_pull(const Document& options) {
  const std::string policy = options.string("pullPolicy").value_or("missing");
  if (policy == "always") return PullPolicy::always;
  return policy == "never" ? PullPolicy::never : PullPolicy::missing;
}

std::map<std::string, RegistryLogin> read_logins(const Document& options) {
  std::map<std::string, RegistryLogin> out;
  const Value* given = member(options, "registries");
  if (given == nullptr) return out;
  for (const auto& [host, value] : given->as_object()) {
    const Document login(value.as_object());
    RegistryLogin& one = out[host];
    one.username = login.string("username").value_or("");
    one.password = login.string("password").value_or("");
    one.identity_token = login.string("identityToken").value_or("");
  }
  return out;
}

// Published at the engine's machine, for that machine alone unless an address says otherwise.
void read_ports(const Document& options, Object& exposed, Object& host_config) {
  const Value* given = member(options, "ports");
  if (given == nullptr || given->as_array().empty()) return;
  if (options.string("networkIsolation").value_or("") == "NONE")
    throw wrong("/ports", "a sandbox without a network publishes no ports");
  Object bindings;
  for (const Value& item : given->as_array()) {
    const Document port(item.as_object());
    const std::string name = std::to_string(port.integer("port").value_or(0)) + '/' +
                             port.string("protocol").value_or("tcp");
    const std::int64_t host = port.integer("hostPort").value_or(0);
    Object binding;
    binding.set("HostIp", port.string("address").value_or("127.0.0.1"));
    binding.set("HostPort", host == 0 ? std::string() : std::to_string(host));
    Array all;
    if (const Value* others = bindings.find(name)) all = others->as_array();
    all.emplace_back(std::move(binding));
    bindings.set(name, std::move(all));
    exposed.set(name, Object());
  }
  host_config.set("PortBindings", std::move(bindings));
}

// Everything but the labels of the session.
Object body_of(const ProviderOptions& options, const MachineSpec& spec) {
  Object body;
  body.set("Image", spec.image);
  body.set("Cmd", array_of(options.command));
  body.set("WorkingDir", spec.working_directory);
  body.set("OpenStdin", true);
  body.set("Tty", false);
  if (!options.user.empty()) body.set("User", options.user);
  if (!spec.env.empty()) body.set("Env", array_of(spec.env));
  if (!options.exposed_ports.empty()) body.set("ExposedPorts", options.exposed_ports);
  body.set("HostConfig", options.host_config);
  return body;
}

}  // namespace

ProviderOptions::ProviderOptions(const plugin::Opening& opening) {
  const Document& given = opening.options;
  engine = read_engine(given.document("engine"), opening.host());
  name_prefix = given.string("name").value_or("sandforge");
  image = given.string("image").value_or("");
  const Document defaults = given.document("defaults");
  base_image = defaults.string("baseImage").value_or("");
  owner = defaults.string("owner").value_or("");
  working_directory = given.string("workingDirectory").value_or("/workspace");
  user = given.string("user").value_or("");
  platform = given.string("platform").value_or("");
  has_instructions = given.has("instructions");
  instructions = given.string("instructions").value_or("");
  pull = read_pull(given);
  logins = read_logins(given);
  command = texts(given, "command");
  has_command = !command.empty();
  if (!has_command) command = kIdle;
  if (const Value* value = member(given, "labels"))
    for (const auto& [name, text] : value->as_object())
      labels.emplace_back(name, text.as_string());
  if (const Value* value = member(given, "env"))
    for (const auto& [name, text] : value->as_object())
      env.emplace_back(name, text.as_string());
  host_config = read_host_config(given);
  read_only_root = given.boolean("readonlyRootfs").value_or(false);
  read_ports(given, exposed_ports, host_config);
  guest_silence = milliseconds(given.integer("guestSilenceMs").value_or(guest_silence.count()));
  guest = read_guest(given, opening.host());
  idle = milliseconds(given.integer("idleTimeoutMs").value_or(0));
  if (idle.count() > 0 && guest == nullptr)
    throw fault(Code::unsupported, "docker.idle",
                "an idle timeout is kept by the guest of the container, and these options give it "
                "none")
        .detail("pointer", "/idleTimeoutMs");
  const Document of_template = given.document("template");
  build_network = of_template.string("network").value_or("");
  if (const Value* value = member(of_template, "buildEnv"))
    for (const auto& [name, text] : value->as_object())
      build_env[name] = text.as_string();
  if (const Value* value = member(of_template, "volumes"))
    for (const auto& [source, target] : value->as_object())
      build_binds.push_back(source + ':' + target.as_string());
  build_time =
      std::chrono::seconds(of_template.integer("buildTimeout").value_or(build_time.count()));
  keep_newest = static_cast<std::size_t>(of_template.integer("keepNewest").value_or(3));
  keep_young = std::chrono::hours(of_template.integer("keepHours").value_or(keep_young.count()));
  stop_timeout = std::chrono::seconds(given.integer("stopTimeout").value_or(10));
}

wire::Labels labels_of(const ProviderOptions& options, const std::string& session_id,
                       const std::string& spec_hash) {
  wire::Labels out = options.labels;
  out.emplace_back(wire::kSandboxLabel, "true");
  out.emplace_back(wire::kSandboxIdLabel, session_id);
  out.emplace_back(wire::kSpecLabel, spec_hash);
  return out;
}

std::string MachineSpec::hash(const ProviderOptions& options, const MachineSpec& spec) {
  MachineSpec shape = spec;
  shape.env.clear();  // values of variables leave no trace, not even a hash
  return sha256_hex(json::write_canonical(Value(body_of(options, shape))));
}

namespace {

// The guest becomes the first process, from a volume that only it may be read from.
void add_guest(Object& body, const ProviderOptions& options, const MachineSpec& spec) {
  Object labels, volume_options, volume, tmpfs_options, tmpfs;
  labels.set(std::string(wire::kGuestLabel), spec.guest);
  volume_options.set("NoCopy", true);
  volume_options.set("Labels", std::move(labels));
  volume.set("Type", "volume");
  volume.set("Source", GuestVolumes::name(spec.guest));
  volume.set("Target", kGuestFolder);
  volume.set("ReadOnly", true);
  volume.set("VolumeOptions", std::move(volume_options));
  tmpfs_options.set("SizeBytes", 1LL << 20);
  tmpfs_options.set("Mode", 01777LL);
  tmpfs.set("Type", "tmpfs");
  tmpfs.set("Target", kGuestRun);
  tmpfs.set("TmpfsOptions", std::move(tmpfs_options));
  Object host;
  if (const Value* given = body.find("HostConfig")) host = given->as_object();
  Array mounts;
  if (const Value* given = host.find("Mounts")) mounts = given->as_array();
  mounts.emplace_back(std::move(volume));
  mounts.emplace_back(std::move(tmpfs));
  host.set("Mounts", std::move(mounts));
  body.set("HostConfig", std::move(host));
  body.set("Entrypoint", array_of({kGuestPath}));
  std::vector<std::string> words = {
      "serve",        "--socket", kGuestSocket,       "--root", spec.working_directory,
      "--files-root", "/",        "--own-environment"};
  if (spec.idle.count() > 0) {
    words.emplace_back("--idle-ms");
    words.push_back(std::to_string(spec.idle.count()));
  }
  if (options.has_command) {
    // Also where somebody else stops the container.
    words.emplace_back("--grace-ms");
    words.push_back(std::to_string(milliseconds(options.stop_timeout).count()));
    words.emplace_back("--");
    words.insert(words.end(), spec.entrypoint.begin(), spec.entrypoint.end());
    words.insert(words.end(), options.command.begin(), options.command.end());
  }
  body.set("Cmd", array_of(words));
}

}  // namespace

std::string MachineSpec::body(const ProviderOptions& options, const MachineSpec& spec,
                              const std::string& session_id) {
  Object body = body_of(options, spec);
  if (!spec.checkpoint.empty()) body.set("Image", spec.checkpoint);
  if (!spec.guest.empty()) add_guest(body, options, spec);
  Object labels;
  for (const auto& [name, value] : labels_of(options, session_id, hash(options, spec)))
    labels.set(name, value);
  if (!spec.guest.empty()) labels.set(std::string(wire::kGuestLabel), spec.guest);
  if (!spec.host.empty()) labels.set(std::string(kHostLabel), spec.host);
  if (!spec.guest.empty() && spec.idle.count() > 0)
    labels.set(std::string(wire::kIdleLabel), std::to_string(spec.idle.count()));
  body.set("Labels", std::move(labels));
  return json::write(Value(std::move(body)));
}

}  // namespace sandforge::docker
