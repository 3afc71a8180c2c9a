#include "environment.hpp"

#include <array>

#include "abi_glue.hpp"
#include "paths.hpp"

namespace sandforge::local {
namespace {

// Each of them is named in manifest.json too: that is what the env service goes by.
constexpr std::array<std::string_view, 25> kInherited = {"HOME",
                                                         "USER",
                                                         "LOGNAME",
                                                         "SHELL",
                                                         "LANG",
                                                         "LC_ALL",
                                                         "LC_ADDRESS",
                                                         "LC_COLLATE",
                                                         "LC_CTYPE",
                                                         "LC_IDENTIFICATION",
                                                         "LC_MEASUREMENT",
                                                         "LC_MESSAGES",
                                                         "LC_MONETARY",
                                                         "LC_NAME",
                                                         "LC_NUMERIC",
                                                         "LC_PAPER",
                                                         "LC_TELEPHONE",
                                                         "LC_TIME",
                                                         "TZ",
                                                         "TMPDIR",
                                                         "SSL_CERT_FILE",
                                                         "SSL_CERT_DIR",
                                                         "GIT_SSL_CAINFO",
                                                         "CURL_CA_BUNDLE",
                                                         "NODE_EXTRA_CA_CERTS"};

constexpr std::string_view kFallbackPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string_view trimmed(std::string_view s) noexcept {
  const auto first = s.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

HostEnvironment::HostEnvironment(sf_host* host) noexcept
    : host_(host),
      service_(
          static_cast<const sf_env_service*>(host->vtbl->service(host, as_str(SF_SERVICE_ENV)))) {}

std::optional<std::string> HostEnvironment::get(std::string_view name) const {
  if (service_ == nullptr) return std::nullopt;
  std::string value;
  const sf_text_sink sink{&value, [](void* ctx, sf_str piece) noexcept {
                            static_cast<std::string*>(ctx)->append(view(piece));
                          }};
  if (service_->get(host_, as_str(name), &sink) != SF_OK) return std::nullopt;
  return value;
}

Environment path_only(const HostEnvironment& host) {
  return {{"PATH", host.get("PATH").value_or(std::string(kFallbackPath))}};
}

Environment default_environment(const HostEnvironment& host) {
  Environment env = path_only(host);
  for (const auto name : kInherited)
    if (auto value = host.get(name)) env.emplace(name, std::move(*value));
  return env;
}

Root choose_root(const std::optional<std::string>& option, const HostEnvironment& host) {
  const std::string home = host.get("HOME").value_or("");
  if (option && !trimmed(*option).empty())
    return {expand_home(trimmed(*option), home), "option root"};
  for (const auto name : {"MASTRACODE_LOCAL_SANDBOX_ROOT", "SANDFORGE_LOCAL_ROOT"}) {
    const auto value = host.get(name);
    if (value && !trimmed(*value).empty()) return {expand_home(trimmed(*value), home), name};
  }
  return {home.empty() ? home : home + "/.mastracode/web/sandboxes", "HOME"};
}

}  // namespace sandforge::local
