#include "sandforge/builds.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

#include "commands/commands.hpp"
#include "commands/template_build.hpp"
#include "exit_codes.hpp"
#include "new_session.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/settings.hpp"
#include "sandforge/support/repo_template.hpp"
#include "sandforge/support/template.hpp"

namespace sandforge::cli {
namespace {

constexpr std::size_t kLongestTemplate = 1U << 20;
constexpr std::chrono::milliseconds kFirstLook{50}, kLastLook{2000};  // at a build without a log

// The builds of a provider, in blocking form.
class Builds {
 public:
  explicit Builds(std::shared_ptr<ProviderBackend> provider) : provider_(std::move(provider)) {
    if (builds_of(*provider_) == nullptr)
      throw_error(Error(Status::unsupported, "this provider has no builds", "feature.builds"));
  }
  template <class T, class Call>
  T ask(Call call) const {
    return await_result<T>([&](Handler<T> done) {
      auto held = std::make_shared<Handler<T>>(std::move(done));
      provider_->lane().post(
          [keep = provider_, call, held] { call(*builds_of(*keep), std::move(*held)); });
    });
  }

 private:
  const std::shared_ptr<ProviderBackend> provider_;
};

json::Object to_object(const Build& build) {
  json::Object out;
  out.set("buildId", build.id.str());
  out.set("templateId", build.template_id.str());
  out.set("status", to_string(build.status));
  if (build.started_at_ns) out.set("startedAt", *build.started_at_ns / 1'000'000);
  if (build.finished_at_ns) out.set("finishedAt", *build.finished_at_ns / 1'000'000);
  if (!build.error.empty()) out.set("error", build.error);
  return out;
}

// What a session of these arguments is made of, as far as its template is concerned.
std::shared_ptr<const SessionContext> context_of(App& app, const SessionArguments& arguments) {
  auto plan = setup_plan_of(arguments);
  normalize(plan).value();
  const auto config = app.config();
  const auto access = [&](const RepositoryPlan& repository) -> RepositoryAccessFn {
    RepositoryAccess out;
    out.clone_url = repository.url;
    if (!repository.credential.empty()) {
      const auto token = app.resolve(repository.credential, config);
      if (!token)
        throw_error(Error(Status::not_found, "there is no value for " + repository.credential,
                          "build.no_token"));
      app.redactor().add(*token);
      out.authorization = Authorization{"bearer", *token, {}};
    }
    return [out](Handler<RepositoryAccess> done) { std::move(done)(RepositoryAccess(out)); };
  };
  auto context = std::make_shared<SessionContext>();
  context->session_id = make_session_id();
  if (!arguments.ref.empty())
    context->resolve_head = [ref = arguments.ref](std::string, std::string,
                                                  Handler<std::optional<std::string>> done) {
      std::move(done)(std::optional<std::string>(ref));
    };
  if (plan.repositories.size() == 1) {
    const auto& only = plan.repositories[0];
    context->repository_access = access(only);
    std::string commands;
    for (const auto& command : only.setup_commands)
      commands += (commands.empty() ? "" : " && ") + command;
    if (!commands.empty()) context->setup_command = commands;
    return context;
  }
  context->repos.emplace();
  for (const auto& repository : plan.repositories)
    context->repos->push_back({access(repository), repository.setup_commands});
  context->workspace_setup_commands = plan.workspace_commands;
  return context;
}

int list_builds(App& app, const Builds& builds, const BuildRequest& request) {
  const auto all = builds.ask<std::vector<Build>>(
      [request](BuildsBackend& backend, Handler<std::vector<Build>> done) {
        backend.list(request, std::move(done));
      });
  const auto& terminal = app.terminal();
  if (terminal.json()) {
    json::Array out;
    for (const auto& build : all)
      out.emplace_back(to_object(build));
    return terminal.exit_code_after(terminal.print_json(out));
  }
  std::vector<std::vector<std::string>> rows;
  const auto now = system_clock()->now_ns();
  for (const auto& build : all)
    rows.push_back({build.id.str(), std::string(to_string(build.status)),
                    build.started_at_ns ? age(*build.started_at_ns, now) : "-"});
  return terminal.exit_code_after(terminal.print_table({"BUILD", "STATUS", "STARTED"}, rows));
}

bool is_going_on(const Build& build) {
  return build.status == BuildStatus::building || build.status == BuildStatus::pending;
}

// Its log as it grows, where there is one, until it ends. An interrupt cancels it.
Build follow(App& app, const std::shared_ptr<ProviderBackend>& provider, const Builds& builds,
             const BuildRequest& request) {
  const std::stop_callback cancelled(app.interrupts().token(), [provider, request] {
    provider->lane().post(
        [provider, request] { builds_of(*provider)->cancel(request, [](const Result<void>&) {}); });
  });
  try {
    builds.ask<void>([request, &app](BuildsBackend& backend, Handler<void> done) {
      const auto show = [&app](Bytes bytes) {
        app.terminal().pass_on(
            2, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      };
      backend.logs(request, 0, show, std::move(done));
    });
  } catch (const Exception& failure) {
    // No log, or no more of it: the build goes on.
    if (failure.error().code != Status::unsupported)
      app.terminal().note("the log of the build: " + failure.error().message);
  }
  for (;;) {
    auto build = builds.ask<Build>([request](BuildsBackend& backend, Handler<Build> done) {
      backend.get(request, std::move(done));
    });
    if (!is_going_on(build)) return build;
    std::this_thread::sleep_for(
        std::clamp(build.retry_after.value_or(kLastLook), kFirstLook, kLastLook));
  }
}

class Opened {
 public:
  Opened(App& app, const std::string& provider) {
    const auto config = app.config();
    auto setup = app.open_provider(provider, config);
    backend = std::move(setup.backend);
    features = std::move(setup.description.features);
    const auto* configured = config ? config->find_provider(provider) : nullptr;
    const auto effective = effective_settings(
        *setup.settings_schema, configured != nullptr ? configured->settings : json::Value(nullptr),
        setup.host_defaults);
    if (effective.document.is_object()) request.settings = effective.document.as_object();
  }
  bool has(const char* feature) const {
    return std::find(features.begin(), features.end(), feature) != features.end();
  }
  void must_take_documents(const std::string& provider) const {
    if (!has("builds.document"))
      throw_error(Error(Status::unsupported,
                        "the provider '" + provider + "' builds no templates of files",
                        "feature.builds.document"));
  }
  std::shared_ptr<ProviderBackend> backend;
  std::vector<std::string> features;
  BuildRequest request;
};

// To its end.
Build run_build(App& app, const Opened& opened, const Builds& builds, BuildRequest request) {
  auto build = builds.ask<Build>([request](BuildsBackend& backend, Handler<Build> done) {
    backend.start(request, std::move(done));
  });
  request.build = build.id;
  if (is_going_on(build)) build = follow(app, opened.backend, builds, request);
  return build;
}

void must_be_ready(const Build& build) {
  if (build.status == BuildStatus::ready) return;
  throw_error(Error(Status::unavailable,
                    "the build is " + std::string(to_string(build.status)) +
                        (build.error.empty() ? "" : ": " + build.error),
                    "build.not_ready"));
}

}  // namespace

std::string read_template(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kLongestTemplate + 1, '\0');
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!in && in.gcount() == 0)
    throw_error(
        Error(Status::not_found, file + " cannot be read, or is empty", "template.no_file"));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLongestTemplate)
    throw_error(Error(Status::invalid, file + " is too long for a template", "template.too_long"));
  try {
    return Template::parse(text).text();
  } catch (const std::exception& mistake) {
    throw_error(Error(Status::invalid, file + ": " + mistake.what(), "template.invalid"));
  }
}

void build_ahead(App& app, const std::string& provider, const std::string& document) {
  const Opened opened(app, provider);
  opened.must_take_documents(provider);
  auto request = opened.request;
  request.template_document = document;
  must_be_ready(run_build(app, opened, Builds(opened.backend), std::move(request)));
}

std::optional<std::string> built_template(App& app, const std::string& provider,
                                          const SessionArguments& arguments) {
  // Checkpoints go first; of a branch nobody here knows the commit; in another folder a template's
  // checkouts are of no use.
  constexpr std::size_t kCommit = 40;
  if (arguments.repositories.empty() || !arguments.from.empty() || arguments.cwd ||
      (!arguments.ref.empty() && (arguments.ref.size() != kCommit || !is_commit(arguments.ref))))
    return std::nullopt;
  try {
    const Opened opened(app, provider);
    if (builds_of(*opened.backend) == nullptr) return std::nullopt;
    const Builds builds(opened.backend);
    auto request = opened.request;
    request.context = context_of(app, arguments);
    auto resolved = builds.ask<ResolvedTemplate>(
        [request](BuildsBackend& backend, Handler<ResolvedTemplate> done) {
          backend.resolve(request, std::move(done));
        });
    // Where a template's build bears another name than its identity, this finds none.
    request.build = BuildId(resolved.identity);
    if (!resolved.document || request.build.empty()) return std::nullopt;
    const auto build = builds.ask<Build>([request](BuildsBackend& backend, Handler<Build> done) {
      backend.get(request, std::move(done));
    });
    if (build.status == BuildStatus::ready) return std::move(resolved.document);
  } catch (const Exception& failure) {
    // Most have no templates. No start fails because of that; what is wrong with the provider, its
    // start tells.
    app.logger().write(LogLevel::debug, "the template of the repositories is not known",
                       {{"why", failure.error().message}});
  }
  return std::nullopt;
}

int build_command(App& app, const BuildArguments& arguments) {
  const auto provider = app.choose_provider(arguments.session.provider);
  app.check_configured(provider);
  const Opened opened(app, provider);
  const Builds builds(opened.backend);
  auto request = opened.request;
  if (arguments.list) return list_builds(app, builds, request);
  if (arguments.session.template_file.empty()) {
    request.context = context_of(app, arguments.session);
  } else {
    opened.must_take_documents(provider);
    request.template_document = read_template(arguments.session.template_file);
  }
  const auto build = run_build(app, opened, builds, std::move(request));
  const auto& terminal = app.terminal();
  if (terminal.json()) {
    const int told = terminal.exit_code_after(terminal.print_json(to_object(build)));
    return told != kOk || build.status == BuildStatus::ready ? told : kFailure;
  }
  must_be_ready(build);
  return terminal.exit_code_after(terminal.print(build.template_id.str() + "\n"));
}

}  // namespace sandforge::cli
