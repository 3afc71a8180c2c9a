// Services that only look something up: log, env, clock, paths.
#include "sandforge/host_services.hpp"

#include <sys/stat.h>
#include <algorithm>

#include <catch2/catch.hpp>

#include "sandforge/ext/host_clock.h"
#include "sandforge/ext/host_env.h"
#include "sandforge/ext/host_executor.h"
#include "sandforge/ext/host_http.h"
#include "sandforge/ext/host_log.h"
#include "sandforge/ext/host_paths.h"
#include "sandforge/ext/host_process.h"
#include "sandforge/ext/host_state.h"
#include "services/log_bucket.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;

namespace {

const void* ask(Bench& bench, const char* id) {
  sf_host* host = &bench.plugin->host;
  return host->vtbl->service(host, str(id));
}

template <class T>
const T& service(Bench& bench, const char* id) {
  const auto* table = static_cast<const T*>(ask(bench, id));
  REQUIRE(table != nullptr);
  return *table;
}

}  // namespace

TEST_CASE("services: those that the manifest names and the host has") {
  Bench bench;
  CHECK(bench.plugin->host.vtbl->abi_major == SF_ABI_MAJOR);
  CHECK(ask(bench, SF_SERVICE_LOG) != nullptr);
  CHECK(ask(bench, SF_SERVICE_EXECUTOR) != nullptr);
  CHECK(ask(bench, SF_SERVICE_STATE) == nullptr);  // the host has no store
  CHECK(ask(bench, "sandforge.host.log/2") == nullptr);
  CHECK(ask(bench, SF_SERVICE_PROCESS) == nullptr);  // not in the manifest
  CHECK(ask(bench, SF_SERVICE_HTTP) == nullptr);
  Bench web({"http"});
  CHECK(ask(web, SF_SERVICE_HTTP) != nullptr);
  CHECK(bench.plugin->faults.total() == 0);
  bench.plugin->host.attach(nullptr);
  CHECK(ask(bench, SF_SERVICE_LOG) == nullptr);
}

TEST_CASE("log service: fields, secrets, levels, and the plugin's name") {
  Bench bench;
  const auto& log = service<sf_log_service>(bench, SF_SERVICE_LOG);
  sf_host* host = &bench.plugin->host;
  CHECK(log.level(host) == SF_LOG_INFO);
  const sf_log_field fields[] = {
      {sizeof(sf_log_field), str("user"), str("ada"), 0, 0},
      {sizeof(sf_log_field), str("key"), str("k-123456"), SF_FIELD_SECRET, 0}};
  log.write(host, SF_LOG_ERROR, str("key k-123456 refused"), fields, 2, sizeof(sf_log_field));
  log.write(host, SF_LOG_DEBUG, str("not kept"), nullptr, 0, 0);
  log.write(host, 99, str("a level of later"), nullptr, 0, 0);
  const std::string text = bench.log();
  CHECK(text.find("ERROR key *** refused plugin=fake user=ada key=***") != std::string::npos);
  CHECK(text.find("not kept") == std::string::npos);
  CHECK(text.find("ERROR a level of later") != std::string::npos);
  log.write(host, SF_LOG_INFO, str("x"), fields, 2, 3);
  CHECK(bench.faults(Fault::bad_value) == 1);
  bench.services->logger->set_level(LogLevel::off);
  CHECK(log.level(host) == SF_LOG_ERROR + 1);
}

namespace {

std::shared_ptr<HostServices> with_clock(Bench& bench, std::shared_ptr<Clock> clock) {
  auto services = std::make_shared<HostServices>(*bench.services);
  services->clock = std::move(clock);
  bench.plugin->host.attach(services);
  return services;
}

// How many lines there are of so many that the plugin writes.
std::uint64_t records_of(Bench& bench, std::uint64_t times) {
  const auto& log = service<sf_log_service>(bench, SF_SERVICE_LOG);
  const auto before = bench.log().size();
  for (std::uint64_t i = 0; i < times; ++i)
    log.write(&bench.plugin->host, SF_LOG_INFO, str("said"), nullptr, 0, 0);
  const std::string text = bench.log().substr(before);
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("log service: a plugin has a bucket of records, the host has none") {
  Bench bench;
  const auto clock = std::make_shared<ManualClock>();
  auto services = with_clock(bench, clock);
  const auto& log = service<sf_log_service>(bench, SF_SERVICE_LOG);
  sf_host* host = &bench.plugin->host;
  const auto logged = [&](std::uint64_t times) { return records_of(bench, times); };
  CHECK(logged(services::kLogBurst + 40) == services::kLogBurst);
  // What is not kept takes nothing out, and is not lost.
  log.write(host, SF_LOG_DEBUG, str("not kept"), nullptr, 0, 0);
  for (int i = 0; i < 2000; ++i)
    services->logger->write(LogLevel::info, "the host's own");
  CHECK(bench.log().find("lost") == std::string::npos);
  // A moment later there is room for one, which says what was lost before it.
  clock->advance(std::chrono::nanoseconds(1'000'000'000 / services::kLogPerSecond));
  CHECK(logged(3) == 2);
  CHECK(bench.log().find(" WARN  40 records were lost plugin=fake\n") != std::string::npos);
  services->logger->set_level(LogLevel::error);
  clock->advance(std::chrono::seconds(1));
  log.write(host, SF_LOG_ERROR, str("bad"), nullptr, 0, 0);
  CHECK(bench.log().find(" ERROR 2 records were lost plugin=fake\n") != std::string::npos);
  services->logger->set_level(LogLevel::info);
  CHECK(logged(services::kLogBurst) == services::kLogPerSecond - 1);
  clock->advance(std::chrono::hours(10));
  CHECK(logged(2 * services::kLogBurst) == services::kLogBurst + 1);  // with the note

  // Another clock, which stands far before the first: the bucket is empty at the most.
  const auto earlier = std::make_shared<ManualClock>();
  with_clock(bench, earlier);
  CHECK(logged(1) == 0);
  earlier->advance(std::chrono::seconds(1));
  CHECK(logged(services::kLogBurst) == services::kLogPerSecond + 1);
}

TEST_CASE("log service: a jump of the wall clock fills no bucket and empties none") {
  struct Jumping final : Clock {
    std::int64_t now_ns() const noexcept override { return wall; }
    std::uint64_t monotonic_ns() const noexcept override { return 5; }
    std::int64_t wall = 1'700'000'000'000'000'000;
  };
  Bench bench;
  const auto clock = std::make_shared<Jumping>();
  with_clock(bench, clock);
  const auto logged = [&](std::uint64_t times) { return records_of(bench, times); };
  CHECK(logged(10) == 10);
  clock->wall -= std::int64_t{86'400} * 1'000'000'000;
  CHECK(logged(10) == 10);
  clock->wall += std::int64_t{30} * 86'400 * 1'000'000'000;
  CHECK(logged(2 * services::kLogBurst) == services::kLogBurst - 20);
  clock->wall += std::int64_t{86'400} * 1'000'000'000;
  CHECK(logged(10) == 0);
}

TEST_CASE("env service: names of the manifest, and no others") {
  Bench bench;
  auto services = std::make_shared<HostServices>(*bench.services);
  std::optional<std::string> value = "t0k";
  services->env = [&](const std::string& name) -> std::optional<std::string> {
    CHECK(name == "FAKE_TOKEN");
    return value;
  };
  bench.plugin->host.attach(services);
  const auto& env = service<sf_env_service>(bench, SF_SERVICE_ENV);
  sf_host* host = &bench.plugin->host;
  std::string got;
  const sf_text_sink sink{&got, [](void* ctx, sf_str piece) noexcept {
                            static_cast<std::string*>(ctx)->append(piece.ptr, piece.len);
                          }};
  CHECK(env.get(host, str("FAKE_TOKEN"), &sink) == SF_OK);
  CHECK(got == "t0k");
  value = std::nullopt;
  CHECK(env.get(host, str("FAKE_TOKEN"), &sink) == SF_NOT_FOUND);
  CHECK(env.get(host, str("HOME"), &sink) == SF_FORBIDDEN);
  CHECK(bench.faults(Fault::unlisted_variable) == 1);
  CHECK(got == "t0k");
}

TEST_CASE("env service: the process's environment by default") {
  CHECK(HostServices::environment_variable("PATH").has_value());
  CHECK_FALSE(HostServices::environment_variable("SANDFORGE_SURELY_NOT_SET").has_value());
}

TEST_CASE("clock service: the host's clock") {
  Bench bench;
  auto services = std::make_shared<HostServices>(*bench.services);
  const auto clock = std::make_shared<ManualClock>(5000);
  services->clock = clock;
  bench.plugin->host.attach(services);
  const auto& table = service<sf_clock_service>(bench, SF_SERVICE_CLOCK);
  sf_host* host = &bench.plugin->host;
  CHECK(table.now(host) == 5000);
  clock->advance(std::chrono::nanoseconds(7));
  CHECK(table.now(host) == 5007);
  CHECK(table.monotonic(host) == 7);
}

TEST_CASE("paths service: private folders, made when they are asked for") {
  Bench bench;
  const TempDir dir;
  auto services = std::make_shared<HostServices>(*bench.services);
  services->folders.data = dir / "data";
  services->folders.runtime = dir / std::string(70, 'r');
  bench.plugin->host.attach(services);
  const auto& paths = service<sf_paths_service>(bench, SF_SERVICE_PATHS);
  sf_host* host = &bench.plugin->host;
  const auto get = [&](std::uint32_t kind) {
    const sf_bytes path = paths.get(host, kind);
    return path.ptr == nullptr ? std::string("(none)")
                               : std::string(reinterpret_cast<const char*>(path.ptr), path.len);
  };
  CHECK(get(SF_PATH_PLUGIN) == "/nowhere");
  CHECK_FALSE(std::filesystem::exists(dir / "data"));
  CHECK(get(SF_PATH_DATA) == (dir / "data" / "fake").string());
  struct stat status {};
  REQUIRE(::stat((dir / "data" / "fake").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  CHECK(get(SF_PATH_CACHE) == "(none)");
  CHECK(get(SF_PATH_RUNTIME) == "(none)");
  CHECK(bench.log().find("is longer than 60 bytes") != std::string::npos);
  CHECK(get(77) == "(none)");

  std::filesystem::permissions(dir / "data" / "fake", std::filesystem::perms(0755));
  CHECK(get(SF_PATH_DATA) == "(none)");
  CHECK(bench.log().find("is open to other users") != std::string::npos);

  auto others = std::make_shared<HostServices>(*services);
  others->folders.data = dir.write("file", "") / "data";
  bench.plugin->host.attach(others);
  CHECK(get(SF_PATH_DATA) == "(none)");
  CHECK(bench.log().find("has no parent folder: Not a directory") != std::string::npos);
}
