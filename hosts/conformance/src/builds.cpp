#include "builds.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "random.hpp"
#include "sandforge/settings.hpp"

namespace sandforge::conformance {
namespace {

constexpr auto kBoundOfBuild = 10min;

std::string text_of(const Build& build) {
  return build.id.str() + "\n" + build.template_id.str() + "\n" + build.error + "\n";
}

}  // namespace

template <class T, class Call>
T Builds::ask(Call call) const {
  auto* builds = builds_of(*provider_);
  if (builds == nullptr)
    throw_error(Error(Status::unsupported, "this provider has no builds", "feature.builds"));
  return await_result<T>([&](Handler<T> done) {
    auto held = std::make_shared<Handler<T>>(std::move(done));
    provider_->lane().post(
        [builds, keep = provider_, call, held] { call(*builds, std::move(*held)); });
  });
}

ResolvedTemplate Builds::resolve(const Recipe& recipe) const {
  return ask<ResolvedTemplate>([recipe](BuildsBackend& builds, Handler<ResolvedTemplate> done) {
    builds.resolve(recipe, std::move(done));
  });
}

Build Builds::start(const Recipe& recipe) const {
  return ask<Build>([recipe](BuildsBackend& builds, Handler<Build> done) {
    builds.start(recipe, std::move(done));
  });
}

Build Builds::get(const Recipe& recipe, const BuildId& id) const {
  auto request = recipe;
  request.build = id;
  return ask<Build>([request](BuildsBackend& builds, Handler<Build> done) {
    builds.get(request, std::move(done));
  });
}

std::vector<Build> Builds::list(const Recipe& recipe) const {
  return ask<std::vector<Build>>([recipe](BuildsBackend& builds, Handler<std::vector<Build>> done) {
    builds.list(recipe, std::move(done));
  });
}

std::string Builds::log(const Recipe& recipe, const BuildId& id) const {
  auto request = recipe;
  request.build = id;
  const auto text = std::make_shared<std::string>();
  ask<void>([request, text](BuildsBackend& builds, Handler<void> done) {
    const auto keep = [text](Bytes bytes) {
      text->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    builds.logs(request, 0, keep, std::move(done));
  });
  return *text;
}

void Builds::cancel(const Recipe& recipe, const BuildId& id) const {
  auto request = recipe;
  request.build = id;
  ask<void>([request](BuildsBackend& builds, Handler<void> done) {
    builds.cancel(request, std::move(done));
  });
}

Build Builds::ended(const Recipe& recipe, const Build& build) const {
  Build now = build;
  const auto over = [&] {
    now = get(recipe, build.id);
    return now.status != BuildStatus::pending && now.status != BuildStatus::building;
  };
  if (!eventually(over, kBoundOfBuild)) {
    findings().add("the build " + build.id.str() + " is still " +
                   std::string(to_string(now.status)));
    throw Abandoned{};
  }
  return now;
}

std::string Builds::everything_about(const Recipe& recipe, const BuildId& id) const {
  std::string out = text_of(get(recipe, id));
  try {
    for (const auto& build : list(recipe))
      out += text_of(build);
  } catch (const UnsupportedFeatureError&) {
  }
  try {
    out += log(recipe, id);
  } catch (const UnsupportedFeatureError&) {
  }
  return out;
}

TemplateFn Builds::document_of(const Recipe& recipe) const {
  return [provider = provider_, recipe](Handler<std::optional<std::string>> done) {
    auto held = std::make_shared<Handler<std::optional<std::string>>>(std::move(done));
    provider->lane().post([provider, recipe, held] {
      builds_of(*provider)->resolve(recipe, [held](Result<ResolvedTemplate> resolved) {
        if (!resolved.ok()) return std::move(*held)(std::move(resolved).error());
        // The start goes on without it, and says why.
        if (!resolved->document && !resolved->warnings.empty())
          return std::move(*held)(Error(Status::unavailable, resolved->warnings.front()));
        std::move (*held)(std::move(resolved->document));
      });
    });
  };
}

Recipe recipe_of(Host& host, const json::Object& settings) {
  const auto compiled = compile_schema(host.description().settings_schema, SchemaProfile::settings);
  REQUIRE((compiled.schema != nullptr));
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId(host.id("recipe"));
  context->caller_chose_id = true;
  context->repo_full_name = "suite/" + host.setting().token;
  Recipe out;
  out.context = std::move(context);
  out.settings = effective_settings(*compiled.schema, settings).document.as_object();
  return out;
}

// Of a repository of this machine, with one commit that only this run has.
Recipe recipe_of_repository(Host& host) {
  const auto at = (host.scratch() / "fresh").string();
  const std::string git = "git -C '" + at + "' -c user.name=suite -c user.email=suite@invalid ";
  const std::string text = "{ git init -q '" + at + "' && echo " + host.setting().token + " > '" +
                           at + "/name' && " + git + "add name && " + git +
                           "commit -q -m fresh; } >/dev/null 2>&1";
  if (std::system(text.c_str()) != 0)
    unverified("no settings give a template, and git is not to be had for a repository");
  auto recipe = recipe_of(host);
  auto context = std::make_shared<SessionContext>(*recipe.context);
  context->repository_access = [url = "file://" + at](Handler<RepositoryAccess> done) {
    RepositoryAccess access;
    access.clone_url = url;
    std::move(done)(std::move(access));
  };
  recipe.context = std::move(context);
  return recipe;
}

Recipe fresh_recipe(Host& host) {
  // The token makes it another one in each case and each run.
  Random random(host.setting().seed ^ std::hash<std::string>()(host.setting().token));
  const Builds builds(host);
  const auto* fields = host.description().settings_schema.find("properties");
  for (int i = 0; i < 20 && fields != nullptr; ++i) {
    auto recipe = recipe_of(host, fitting_document(fields->as_object(), random));
    if (builds.resolve(recipe).document) return recipe;
  }
  auto recipe = recipe_of_repository(host);
  if (builds.resolve(recipe).document) return recipe;
  unverified("neither settings nor a repository of this machine give a session a template");
}

std::shared_ptr<Sandbox> make(Host& host, const Recipe& recipe, const std::string& name) {
  auto config = host.config(name);
  auto context = std::make_shared<SessionContext>(*recipe.context);
  context->session_id = SessionId(config.id);
  config.context = std::move(context);
  config.settings = recipe.settings;
  config.template_document = Builds(host).document_of(recipe);
  return host.make(std::move(config));
}

}  // namespace sandforge::conformance
