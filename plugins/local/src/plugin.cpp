// The provider `local`: its options, its settings schema (none), its entry.
#include <string>

#include "environment.hpp"
#include "sandbox.hpp"
#include "sandforge/ext/host_paths.h"

namespace sandforge::local {
namespace {

sf_host* g_host = nullptr;

// Nothing to tune; the features that hosts and the conformance cases ask for.
constexpr std::string_view kSettingsSchema =
    R"({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","title":"Local","properties":{},"additionalProperties":false})";
constexpr std::string_view kDescribe =
    R"({"features":["spawn.stdin","spawn.signal","spawn.kill","spawn.user","spawn.detach","spawn.tree","stderr.separate","stderr.combined","env.per_command","env.unset","pty","processes.list","processes.attach","files","files.watch","output.credit","checkpoints","destroy.keeps_directory"],"boundary":"none"})";

std::optional<std::string> name_of(sf_str text) {
  const auto name = view(text);
  return name.empty() ? std::nullopt : std::optional(std::string(name));
}

class Provider {
 public:
  Provider(std::shared_ptr<const ProviderSettings> settings, sf_lane* lane)
      : handle_{{&kProvider}, this}, settings_(std::move(settings)), lane_(lane) {}

  sf_provider* handle() noexcept { return &handle_.base; }

 private:
  struct Handle {
    sf_provider base;
    Provider* owner;
  };
  static const sf_provider_vtbl kProvider;
  static Provider& of(sf_provider* self) noexcept {
    return *reinterpret_cast<Handle*>(self)->owner;
  }

  void describe(sf_describe_completion done) const {
    post(lane_.get(), [done] {
      sf_describe_result result{};
      result.struct_size = sizeof result;
      result.settings_schema = as_str(kSettingsSchema);
      result.describe = as_str(kDescribe);
      done.done(done.ctx, nullptr, &result);
    });
  }

  sf_status create(const sf_create_request& request, sf_sandbox** sandbox,
                   const sf_error_sink* err) const {
    std::string_view id, known_folder;
    bool chosen = false;
    if (request.context != nullptr) {
      const auto* fields = request.context->vtbl->fields(request.context);
      id = view(fields->session_id);
      chosen = (fields->flags & SF_CONTEXT_CALLER_CHOSE_ID) != 0;
      known_folder = view(fields->sandbox_id);
    }
    if (id.empty())
      return report(
          err, Failure{SF_INVALID, "local.no_id", "a local sandbox needs an id", {}, 0, false});
    if (id.find('\0') != std::string_view::npos)
      return report(err, Failure{SF_INVALID, "local.bad_id", "the id holds a NUL", {}, 0, false});
    SessionPlace place;
    place.root = settings_->root;
    place.name = encode_id(id);
    // A session that was started before goes on where it was: the root of today is for new ones.
    // What is no absolute path is no id of ours, and leads to nothing.
    if (known_folder.substr(0, 1) == "/") {
      auto parts = split_folder(known_folder);
      if (!parts)
        return report(err, Failure{SF_INVALID, "local.bad_sandbox_id",
                                   "the sandbox id is no folder of a local session: " +
                                       std::string(known_folder),
                                   std::string(known_folder), 0, false});
      place.root = std::move(parts->root);
      place.name = std::move(parts->name);
    }
    place.working_directory = std::string(view(request.working_directory));
    place.guest_program = settings_->guest_program;
    BootNames boot;
    boot.own = name_of(request.checkpoint_name);
    boot.seed = name_of(request.seed_checkpoint_name);
    if (!boot.own && chosen) boot.own = std::string(id);
    *sandbox = make_sandbox(settings_, std::move(place), std::move(boot), request.lane);
    return SF_OK;
  }

  Handle handle_;
  std::shared_ptr<const ProviderSettings> settings_;
  LaneRef lane_;
};

const sf_provider_vtbl Provider::kProvider = {
    sizeof(sf_provider_vtbl),
    [](sf_provider* self, sf_describe_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        of(self).describe(done);
        if (op != nullptr) *op = no_op();
        return sf_status{SF_OK};
      });
    },
    [](sf_provider* self, const sf_create_request* request, sf_sandbox** sandbox,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return of(self).create(*request, sandbox, err); });
    },
    [](sf_provider*, sf_str) noexcept -> const void* { return nullptr; },
    [](sf_provider* self) noexcept { delete &of(self); },
};

template <class Service>
const Service* service(std::string_view id) noexcept {
  return static_cast<const Service*>(g_host->vtbl->service(g_host, as_str(id)));
}

sf_status open(const sf_open_request& request, sf_provider** provider, const sf_error_sink* err) {
  const auto parsed = json::parse(view(request.options));
  if (!parsed || !parsed.value.is_object())
    return report(err,
                  Failure{SF_INVALID, "local.options", "options are no JSON object", {}, 0, false});
  auto settings = std::make_shared<ProviderSettings>();
  settings->host = g_host;
  settings->executor = service<sf_executor_service>(SF_SERVICE_EXECUTOR);
  if (settings->executor == nullptr || !SF_HAS_FN(settings->executor, adopt_descriptor))
    return report(err, Failure{SF_UNSUPPORTED,
                               "local.no_executor",
                               "the host cannot make streams of descriptors",
                               {},
                               0,
                               false});
  const auto* paths = service<sf_paths_service>(SF_SERVICE_PATHS);
  if (paths == nullptr)
    return report(
        err, Failure{SF_UNSUPPORTED, "local.no_paths", "the host gives no folders", {}, 0, false});
  settings->guest_program =
      std::string(view(paths->get(g_host, SF_PATH_PLUGIN))) + "/sandforge-guest";

  const HostEnvironment host(g_host);
  std::optional<std::string> root;
  if (const auto* value = parsed.value.find("root"); value != nullptr && value->is_string())
    root = value->as_string();
  Root chosen = choose_root(root, host);
  if (chosen.path.empty() || chosen.path.front() != '/') {
    Failure failure{SF_INVALID, "local.root", {}, chosen.path, 0, false};
    failure.message = chosen.path.empty()
                          ? "there is no folder for sessions: set the option root, or HOME"
                          : "the root must be an absolute folder, \"" + chosen.path + "\" of the " +
                                (chosen.from == "option root" ? "" : "variable ") + chosen.from +
                                " is none";
    if (chosen.from == "option root") failure.pointer = "/root";
    return report(err, failure);
  }
  settings->root = std::move(chosen.path);
  while (settings->root.size() > 1 && settings->root.back() == '/')
    settings->root.pop_back();
  if (const auto* env = parsed.value.find("env"); env != nullptr && env->is_object()) {
    settings->env.emplace();
    for (const auto& [name, value] : env->as_object())
      if (value.is_string()) settings->env->insert_or_assign(name, value.as_string());
  }
  if (const auto* value = parsed.value.find("guestSilenceMs");
      value != nullptr && value->is_integer() && value->as_integer() > 0)
    settings->guest_silence_ms = static_cast<std::uint64_t>(value->as_integer());
  *provider = (new Provider(std::move(settings), request.lane))->handle();
  return SF_OK;
}

const sf_plugin kPlugin = {
    sizeof(sf_plugin),
    SF_ABI_MAJOR,
    SF_ABI_MINOR,
    [](sf_host* host, const sf_error_sink*) noexcept -> sf_status {
      g_host = host;
      return SF_OK;
    },
    [](const sf_open_request* request, sf_provider** provider, const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return open(*request, provider, err); });
    },
};

}  // namespace
}  // namespace sandforge::local

extern "C" SF_EXPORT const sf_plugin* sandforge_plugin_entry_v1(void) noexcept {
  return &sandforge::local::kPlugin;
}
