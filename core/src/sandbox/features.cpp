#include "sandbox/features.hpp"

#include <algorithm>
#include <utility>

namespace sandforge {

bool has_feature(const Features& features, std::string_view name) noexcept {
  return std::find(features->begin(), features->end(), name) != features->end();
}

void ProviderBackend::features(Handler<Features> done) {
  if (features_) {
    lane().post([known = features_, done = std::move(done)]() mutable {
      std::move(done)(std::move(known));
    });
    return;
  }
  describe([this, done = std::move(done)](Result<Description> description) mutable {
    if (!description) return std::move(done)(std::move(description).error());
    features_ = std::make_shared<const std::vector<std::string>>(std::move(description->features));
    std::move(done)(features_);
  });
}

namespace sandbox {
namespace {

bool unsets(const EnvMap& env) {
  return std::any_of(env.begin(), env.end(), [](const auto& entry) { return !entry.second; });
}

}  // namespace

bool needs_features(const Command& command) noexcept {
  return command.stdin_pipe || !command.user.empty() || command.detach || command.tty ||
         command.combined || !command.env.empty();
}

std::optional<Error> check_feature(std::string_view name, std::string_view what,
                                   const std::string& provider, const Features& features) {
  if (has_feature(features, name)) return std::nullopt;
  Error error(Status::unsupported,
              "provider '" + provider + "' does not offer " + std::string(what) + " (" +
                  std::string(name) + ")",
              "feature." + std::string(name));
  error.details.set("feature", name);
  error.details.set("provider", provider);
  return error;
}

std::optional<Error> check_features(const Command& command, const std::string& provider,
                                    const Features& features) {
  const auto lacks = [&](bool asked, std::string_view name,
                         std::string_view what) -> std::optional<Error> {
    return asked ? check_feature(name, what, provider, features) : std::nullopt;
  };
  // A terminal brings its own input.
  if (auto bad = lacks(command.tty.has_value(), feature::kPty, "terminals")) return bad;
  if (auto bad =
          lacks(command.stdin_pipe && !command.tty, feature::kStdin, "standard input for commands"))
    return bad;
  if (auto bad = lacks(!command.user.empty(), feature::kUser, "a user for each command"))
    return bad;
  if (auto bad = lacks(command.detach, feature::kDetach, "commands that outlive the connection"))
    return bad;
  if (auto bad = lacks(!command.env.empty(), feature::kEnv, "an environment for each command"))
    return bad;
  if (auto bad = lacks(unsets(command.env), feature::kUnset, "unsetting variables")) return bad;
  return lacks(command.combined && has_feature(features, feature::kSeparate), feature::kCombined,
               "combined output");
}

}  // namespace sandbox
}  // namespace sandforge
