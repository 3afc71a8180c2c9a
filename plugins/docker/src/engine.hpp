// A client of one engine: where it is, which version of the API both speak, and what its refusals
// mean.
#pragma once

#include <sandforge/plugin/http_stream.hpp>
#include <sandforge/wire/docker/endpoint.hpp>
#include <sandforge/wire/docker/names.hpp>

#include "fault.hpp"

namespace sandforge::docker {

namespace wire = sandforge::wire::docker;
using plugin::HttpAnswer;
using plugin::HttpStream;
using plugin::Task;
using std::chrono::milliseconds;

// How an engine is reached. PEM texts are secret where they are keys.
class EngineOptions {
 public:
  EngineOptions() {}
  wire::Endpoint endpoint;
  std::string ca_pem, cert_pem, key_pem;
  std::string cert_folder;                     // DOCKER_CERT_PATH: read where no PEM is given
  std::optional<wire::ApiVersion> newest_api;  // DOCKER_API_VERSION: not above this one
};

// Belongs to one lane, on which all of it runs. What is awaited throws typed errors that name the
// endpoint.
class Engine {
 public:
  // What this client speaks.
  static constexpr int kOldestMinor = 41;
  static constexpr int kNewestMinor = 51;

  Engine(const plugin::Lane& lane, std::shared_ptr<const EngineOptions> options)
      : lane_(lane), options_(std::move(options)) {}

  // Finds out the version, once: absent, refusing, too old and too new engines are told apart.
  Task<void> connect();
  // One request, whose path begins behind the version. Any status is an answer.
  Task<HttpAnswer> call(std::string method, std::string path, std::string body = {},
                        milliseconds timeout = std::chrono::minutes(1));
  // The same, as a stream: flags are SF_HTTP_*. Its connection is kept for it alone.
  Task<HttpStream> open(plugin::HttpRequest request, std::uint32_t flags = 0);
  // An upgrade whose events go to objects of the plugin's own. After connect, on the lane.
  sf_status upgrade(plugin::HttpRequest request, const sf_stream_events& io,
                    const sf_http_events& events, sf_stream** stream, const sf_error_sink* err);
  // A stream for a body that is written to it.
  Task<HttpStream> upload(plugin::HttpRequest request);

  // Throws what a refusal means: 401 unauthenticated, 403 forbidden, 404 not_found, 409 conflict,
  // 507 and "no space left" no_space, 5xx unavailable. `what` is what was tried: "create the
  // container".
  void throw_if_refused(const HttpAnswer& answer, std::string_view what) const;
  // An answer that the API does not know.
  Error no_answer_of_api(std::string_view what) const;

  const plugin::Lane& lane() const noexcept { return lane_; }
  const std::string& shown() const noexcept { return options_->endpoint.shown; }
  std::string api() const { return version_ ? version_->text() : std::string(); }
  const std::string& server() const noexcept { return server_; }

 private:
  Task<void> read_certificates();
  Task<HttpAnswer> ping();
  void make_clients(const EngineOptions& with);
  void agree(const HttpAnswer& answer);
  Error unreachable(const Error& why) const;
  void prepare(plugin::HttpRequest& request, std::uint32_t flags) const;
  std::string target(const std::string& path) const;

  const plugin::Lane lane_;
  const std::shared_ptr<const EngineOptions> options_;
  // Commands that run hold connections: what ends them must not wait for one.
  std::optional<plugin::HttpClient> calls_;
  std::optional<plugin::HttpClient> streams_;
  std::optional<wire::ApiVersion> version_;
  std::string server_;
};

}  // namespace sandforge::docker
