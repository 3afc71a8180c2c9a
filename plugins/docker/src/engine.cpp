#include "engine.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/wire/docker/messages.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sandforge::docker {
namespace {

constexpr std::uint32_t kMostStreams = 1024;
constexpr milliseconds kPingTimeout = std::chrono::seconds(10);
constexpr milliseconds kKeepalive = std::chrono::seconds(15);
constexpr milliseconds kUserTimeout = std::chrono::seconds(30);
constexpr std::size_t kLongestAnswer = 16U << 20;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad() || (!in && text.empty()))
    throw fault(Code::invalid, "docker.certificate", "cannot read " + path.string())
        .detail("path", path.string());
  return text;
}

std::string system_text(const Error& why) {
  const json::Value* number = why.details().find("errno");
  const int code =
      number != nullptr && number->is_integer() ? static_cast<int>(number->as_integer()) : 0;
  switch (code) {
    case ENOENT:
      return "there is no such socket: is Docker installed, and does it run?";
    case ECONNREFUSED:
      return "nobody listens there: the engine does not run";
    case EACCES:
    case EPERM:
      return "permission denied: this user may not use the socket (it belongs to the group docker)";
    default:
      return why.message();
  }
}

}  // namespace

// The host's errors name a connection; who reads them knows an engine.
Error Engine::unreachable(const Error& why) const {
  const json::Value* given = why.details().find("reason");
  const std::string reason = given != nullptr && given->is_string() ? given->as_string() : "";
  if (why.details().find("tls") != nullptr)
    return fault(Code::unauthenticated, "docker.tls",
                 "no trust between this client and the Docker engine at " + shown() + ": " +
                     why.message() + ": ca.pem, cert.pem and key.pem in DOCKER_CERT_PATH, or the " +
                     "option engine, must belong to that engine")
        .may_have_started(why.may_have_started());
  if (reason != "http.connect" && reason != "http.timeout") return why;
  Error error = why.code() == Code::timeout
                    ? fault(Code::timeout, "docker.timeout",
                            "the Docker engine at " + shown() + " does not answer in time")
                    : fault(why.code() == Code::forbidden ? Code::forbidden : Code::unavailable,
                            why.code() == Code::forbidden ? "docker.denied" : "docker.absent",
                            "no Docker engine at " + shown() + ": " + system_text(why));
  error.may_have_started(why.may_have_started());
  return error;
}

void Engine::make_clients(const EngineOptions& with) {
  plugin::HttpOptions http(with.endpoint.base_url);
  http.ca_pem = with.ca_pem;
  http.client_cert_pem = with.cert_pem;
  http.client_key_pem = with.key_pem;
  http.keepalive = kKeepalive;
  http.user_timeout = kUserTimeout;
  calls_.emplace(lane_, http);
  http.max_connections = kMostStreams;
  streams_.emplace(lane_, http);
}

Task<void> Engine::read_certificates() {
  EngineOptions with = *options_;
  const bool wanted = with.endpoint.tls && with.ca_pem.empty() && with.cert_pem.empty();
  if (wanted && !with.cert_folder.empty()) {
    const auto read = [folder = std::filesystem::path(with.cert_folder)] {
      return std::vector<std::string>{read_file(folder / "ca.pem"), read_file(folder / "cert.pem"),
                                      read_file(folder / "key.pem")};
    };
    std::vector<std::string> files = co_await plugin::run_blocking(read);
    with.ca_pem = std::move(files[0]);
    with.cert_pem = std::move(files[1]);
    with.key_pem = std::move(files[2]);
  }
  // Another call may have been here meanwhile.
  if (!calls_) make_clients(with);
}

Task<HttpAnswer> Engine::ping() {
  plugin::HttpRequest request("GET", "/_ping");
  request.timeout = kPingTimeout;
  std::optional<Error> problem;
  try {
    HttpAnswer answer = co_await calls_->send(request);
    co_return answer;
  } catch (const Error& error) {
    problem = unreachable(error);
  }
  throw *problem;
}

Task<void> Engine::connect() {
  if (version_) co_return;
  if (!calls_) co_await read_certificates();
  const HttpAnswer answer = co_await ping();
  if (answer.status == 400 && answer.body.find("HTTPS server") != std::string::npos)
    throw fault(Code::unauthenticated, "docker.tls",
                "the Docker engine at " + shown() + " wants TLS: DOCKER_TLS_VERIFY and " +
                    "DOCKER_CERT_PATH, or the option engine, say how");
  throw_if_refused(answer, "reach the engine");
  agree(answer);
}

void Engine::agree(const HttpAnswer& answer) {
  const auto offered = wire::parse_api_version(answer.header("Api-Version"));
  if (!offered)
    throw fault(
        Code::invalid, "docker.no_engine",
        "what answers at " + shown() + " is no Docker engine: it names no version of the API");
  if (answer.header("OSType") == "windows")
    throw fault(Code::unsupported, "docker.windows",
                "the engine at " + shown() + " runs Windows containers; Linux ones are needed");
  wire::ApiVersion oldest, newest;
  oldest.major = newest.major = 1;
  oldest.minor = kOldestMinor;
  newest.minor = kNewestMinor;
  if (options_->newest_api && *options_->newest_api < newest) newest = *options_->newest_api;
  if (*offered < oldest)
    throw fault(Code::unsupported, "docker.too_old",
                "the engine at " + shown() + " is too old: it speaks version " + offered->text() +
                    " of the API, and " + oldest.text() + " is the oldest that is understood");
  version_ = *offered < newest ? *offered : newest;
  server_ = answer.header("Server");
}

std::string Engine::target(const std::string& path) const {
  return "/v" + version_->text() + path;
}

Task<HttpAnswer> Engine::call(std::string method, std::string path, std::string body,
                              milliseconds timeout) {
  co_await connect();
  plugin::HttpRequest request(method, target(path), std::move(body));
  if (!request.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  request.timeout = timeout;
  request.max_answer = kLongestAnswer;
  // What was sent on a connection that turns out to be dead may have had its effect.
  request.fresh_connection = method == "POST";
  std::optional<Error> problem;
  try {
    HttpAnswer answer = co_await calls_->send(request);
    co_return answer;
  } catch (const Error& error) {
    problem = unreachable(error);
  }
  throw *problem;
}

void Engine::prepare(plugin::HttpRequest& request, std::uint32_t flags) const {
  request.target = target(request.target);
  if (!request.body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  if ((flags & SF_HTTP_UPGRADE) != 0) {
    request.headers.emplace_back("Connection", "Upgrade");
    request.headers.emplace_back("Upgrade", "tcp");
  }
  request.idle_timeout = milliseconds(0);
  request.fresh_connection = true;
}

sf_status Engine::upgrade(plugin::HttpRequest request, const sf_stream_events& io,
                          const sf_http_events& events, sf_stream** stream,
                          const sf_error_sink* err) {
  prepare(request, SF_HTTP_UPGRADE);
  const plugin::detail::HttpRequestView raw(request, SF_HTTP_UPGRADE);
  const auto& service = plugin::detail::need(plugin::detail::services().http, SF_SERVICE_HTTP);
  return service.request(streams_->get(), raw.get(), &io, &events, stream, err);
}

Task<HttpStream> Engine::open(plugin::HttpRequest request, std::uint32_t flags) {
  co_await connect();
  prepare(request, flags);
  std::optional<Error> problem;
  try {
    HttpStream stream = co_await HttpStream::open(*streams_, request, flags);
    co_return std::move(stream);
  } catch (const Error& error) {
    problem = unreachable(error);
  }
  throw *problem;
}

Task<HttpStream> Engine::upload(plugin::HttpRequest request) {
  co_await connect();
  request.target = target(request.target);
  request.timeout = request.idle_timeout = milliseconds(0);
  request.fresh_connection = true;
  HttpStream stream = HttpStream::upload(*streams_, request);
  co_return std::move(stream);
}

void Engine::throw_if_refused(const HttpAnswer& answer, std::string_view what) const {
  if (answer.status < 400) return;
  const std::string said = wire::error_message(answer.body);
  std::string message = "the engine refuses to " + std::string(what);
  if (!said.empty()) message += ": " + said;
  const bool full =
      answer.status == 507 || said.find("no space left on device") != std::string::npos;
  Code code = answer.status >= 500 ? Code::unavailable : Code::invalid;
  std::string reason = "docker.refused";
  if (full) code = Code::no_space, reason = "docker.no_space";
  if (answer.status == 401) code = Code::unauthenticated;
  if (answer.status == 403) code = Code::forbidden;
  if (answer.status == 404) code = Code::not_found;
  if (answer.status == 409) code = Code::conflict;
  if (answer.status == 429) code = Code::rate_limited;
  if (said.find("client version") != std::string::npos &&
      (said.find("too old") != std::string::npos || said.find("too new") != std::string::npos)) {
    code = Code::unsupported;
    reason = "docker.version";
  }
  Error error = fault(code, std::move(reason), std::move(message));
  error.detail("httpStatus", static_cast<long long>(answer.status));
  error.may_have_started(answer.status >= 500);
  throw error;
}

Error Engine::no_answer_of_api(std::string_view what) const {
  return fault(Code::internal, "docker.answer",
               "the engine at " + shown() + " answered what its API does not know, when asked to " +
                   std::string(what))
      .may_have_started(true);
}

}  // namespace sandforge::docker
