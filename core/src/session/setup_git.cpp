#include "session/setup_git.hpp"

#include <array>
#include <utility>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/hash.hpp"
#include "sandforge/support/redact.hpp"

namespace sandforge::setup {
namespace {

constexpr std::string_view kUser = "x-access-token";

// Would turn git's attention elsewhere, or write what it sends into a log.
constexpr std::array<const char*, 17> kUnset = {"GIT_DIR",
                                                "GIT_WORK_TREE",
                                                "GIT_INDEX_FILE",
                                                "GIT_OBJECT_DIRECTORY",
                                                "GIT_COMMON_DIR",
                                                "GIT_CONFIG",
                                                "GIT_CONFIG_PARAMETERS",
                                                "GIT_TRACE",
                                                "GIT_TRACE_CURL",
                                                "GIT_TRACE_PACKET",
                                                "GIT_TRACE2",
                                                "GIT_TRACE2_EVENT",
                                                "GIT_TRACE2_PERF",
                                                "GIT_CURL_VERBOSE",
                                                "GIT_TRACE_SETUP",
                                                "GIT_ASKPASS",
                                                "SSH_ASKPASS"};

std::string basic_credential(const Authorization& authorization) {
  const std::string user =
      authorization.username.empty() ? std::string(kUser) : authorization.username;
  return base64_encode(user + ":" + authorization.token);
}

bool is_this_machine(const std::string& host) {
  const auto name =
      host.front() == '[' ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return name == "localhost" || name == "[::1]" || name.rfind("127.", 0) == 0;
}

Result<void> check_secure(const CloneUrl& url) {
  if (url.protocol == "https" || (url.protocol == "http" && is_this_machine(url.host))) return {};
  return Error(Status::invalid,
               "a credential is only sent over https, and this clone URL is " + url.protocol,
               "setup.insecure_url");
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Meaning {
  std::string_view words;
  Status code;
  std::string_view reason;
};

constexpr std::array<Meaning, 22> kMeanings = {{
    {"Authentication failed", Status::unauthenticated, "setup.git_auth"},
    {"could not read Username", Status::unauthenticated, "setup.git_auth"},
    {"could not read Password", Status::unauthenticated, "setup.git_auth"},
    {"Permission denied (publickey", Status::unauthenticated, "setup.git_auth"},
    {"returned error: 401", Status::unauthenticated, "setup.git_auth"},
    {"returned error: 403", Status::unauthenticated, "setup.git_auth"},
    {"returned error: 301", Status::invalid, "setup.git_redirect"},
    {"returned error: 302", Status::invalid, "setup.git_redirect"},
    {"returned error: 307", Status::invalid, "setup.git_redirect"},
    {"returned error: 308", Status::invalid, "setup.git_redirect"},
    {"No space left on device", Status::no_space, "setup.no_space"},
    {"Disk quota exceeded", Status::no_space, "setup.no_space"},
    {"File too large", Status::no_space, "setup.no_space"},
    {"Could not resolve host", Status::unavailable, "setup.git_unreachable"},
    {"Failed to connect", Status::unavailable, "setup.git_unreachable"},
    {"Connection refused", Status::unavailable, "setup.git_unreachable"},
    {"Connection timed out", Status::unavailable, "setup.git_unreachable"},
    {"Operation too slow", Status::unavailable, "setup.git_unreachable"},
    {"Repository not found", Status::not_found, "setup.git_not_found"},
    {"not found", Status::not_found, "setup.git_not_found"},
    {"does not exist", Status::not_found, "setup.git_not_found"},
    {"does not appear to be a git repository", Status::not_found, "setup.git_not_found"},
}};

}  // namespace

Result<EnvMap> git_env(const CloneUrl& url, const Authorization* authorization) {
  std::vector<std::pair<std::string, std::string>> config = {
      {"core.hooksPath", "/dev/null"},
      {"core.fsmonitor", "false"},
      {"gc.auto", "0"},
      {"maintenance.auto", "false"},
      {"advice.detachedHead", "false"},
      {"http.lowSpeedLimit", "1"},
      {"http.lowSpeedTime", "120"},
  };
  const bool carries = authorization != nullptr && !authorization->token.empty();
  if (carries) {
    if (auto secure = check_secure(url); !secure) return std::move(secure).error();
    config.emplace_back("credential.helper", "");  // none may be asked, or told
    // git gives the header below to whatever host it was sent on to.
    config.emplace_back("http.followRedirects", "false");
    config.emplace_back("http." + url.url + ".extraheader",
                        "AUTHORIZATION: basic " + basic_credential(*authorization));
  }
  EnvMap env;
  for (const auto* name : kUnset)
    env[name] = std::nullopt;
  // Where it goes is not for files to say that commands of the machine can write.
  if (carries) {
    env["GIT_CONFIG_GLOBAL"] = "/dev/null";
    env["GIT_CONFIG_SYSTEM"] = "/dev/null";
    env["GIT_CONFIG_NOSYSTEM"] = "1";
  }
  env["GIT_CONFIG_COUNT"] = std::to_string(config.size());
  for (std::size_t i = 0; i < config.size(); ++i) {
    env["GIT_CONFIG_KEY_" + std::to_string(i)] = config[i].first;
    env["GIT_CONFIG_VALUE_" + std::to_string(i)] = config[i].second;
  }
  env["GIT_TERMINAL_PROMPT"] = "0";
  env["GIT_ALLOW_PROTOCOL"] = url.protocol;
  env["LC_ALL"] = "C";  // the words of its errors are read
  return env;
}

std::string redact(const std::string& text, const Authorization* authorization) {
  Redactor redactor;
  if (authorization != nullptr) {
    redactor.add_passing(authorization->token);
    redactor.add_passing(basic_credential(*authorization));
  }
  return redactor.redact(text);
}

Error git_error(std::string_view what, const std::string& repository, const std::string& text,
                const std::string& stderr_text) {
  Error error(Status::invalid, "git could not " + std::string(what) + " '" + repository + "'",
              "setup.git_failed");
  for (const auto& meaning : kMeanings)
    if (has(stderr_text, meaning.words)) {
      error.code = meaning.code;
      error.reason = meaning.reason;
      break;
    }
  if (!text.empty()) error.message += ": " + text;
  if (error.reason == "setup.git_redirect")
    error.message +=
        ": the server sends it to another address, where no credential may follow; name that one";
  error.details.set("repository", repository);
  error.details.set("stderr", redact(stderr_text, nullptr));
  return error;
}

std::string commands_digest(const std::vector<std::string>& commands) {
  std::string joined;
  for (std::size_t i = 0; i < commands.size(); ++i)
    joined += (i == 0 ? "" : "\n") + commands[i];
  return "sha256:" + sha256_hex(joined);
}

std::string plan_digest(const SetupPlan& plan) {
  return "sha256:" + sha256_hex(json::write_canonical(to_json(plan)));
}

}  // namespace sandforge::setup
