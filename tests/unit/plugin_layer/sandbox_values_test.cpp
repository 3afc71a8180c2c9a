// What goes into the life cycle of a sandbox and what comes out of it.
#include <sandforge/plugin/sandbox_values.hpp>

#include <catch2/catch.hpp>

#include "ground.hpp"

namespace testing = sandforge::testing;
using namespace sandforge::plugin;
using namespace sandforge::test;

namespace {

// What the host hears of a start. The texts are copies: they are borrowed for the callback.
class Heard {
 public:
  std::string identities;
  int done = 0;
  testing::Failure failure;
  sf_start_result result{};
  std::string texts;

  sf_start_events events() {
    return {sizeof(sf_start_events), this,
            [](void* ctx, sf_str id) noexcept {
              static_cast<Heard*>(ctx)->identities += testing::text(id) + ";";
            },
            [](void* ctx, const sf_error* error, const sf_start_result* raw) noexcept {
              auto& me = *static_cast<Heard*>(ctx);
              ++me.done;
              me.failure = testing::Failure::copy(error);
              if (raw == nullptr) return;
              me.result = *raw;
              me.texts = testing::text(raw->sandbox_id) + " " +
                         testing::text(raw->working_directory) + " " +
                         testing::text(raw->template_pending_id) + " " +
                         testing::text(raw->warnings) + " " + testing::text(raw->env_names);
            }};
  }
};

sf_start_request request_of_nothing() {
  sf_start_request request{};
  request.struct_size = sizeof request;
  return request;
}

}  // namespace

TEST_CASE("a start knows what the host wants, after the host's own memory is gone") {
  Ground ground;
  Heard heard;
  std::string text = "document";
  const sf_env_entry env[] = {{to_bytes("SET"), to_bytes("1")},
                              {to_bytes("UNSET"), sf_bytes{nullptr, 0}}};
  sf_start_request request = request_of_nothing();
  request.env = env;
  request.env_count = 2;
  request.flags = SF_START_ENV_GIVEN;
  request.template_document = to_str(text);
  request.idempotency_key = to_str("key");
  request.timeout_ms = 1500;
  Starting starting(ground.lane, request, heard.events());
  text = "replaced";
  REQUIRE(starting.env().size() == 2);
  CHECK(starting.env()[0].name == "SET");
  CHECK(starting.env()[0].value == "1");
  CHECK_FALSE(starting.env()[1].value);
  CHECK(starting.env_given());
  CHECK(starting.template_document() == "document");
  CHECK(starting.idempotency_key() == "key");
  CHECK(starting.timeout() == std::chrono::milliseconds(1500));
  CHECK_FALSE(starting.stop().stop_requested());
  const StopSource stop;
  starting.bind(stop.token());
  stop.request_stop();
  CHECK(starting.stop().stop_requested());

  const Starting plain(ground.lane, request_of_nothing(), heard.events());
  CHECK(plain.env().empty());
  CHECK_FALSE(plain.env_given());
  CHECK_FALSE(plain.template_document());
  CHECK(plain.timeout().count() == 0);
}

TEST_CASE("only the first identity counts, and the host hears it on the lane") {
  Ground ground;
  Heard heard;
  Starting starting(ground.lane, request_of_nothing(), heard.events());
  starting.identify("from a thread");
  starting.identify("second");
  CHECK(heard.identities.empty());
  ground.on_lane([&] { CHECK(heard.identities == "from a thread;"); });
  Starting other(ground.lane, request_of_nothing(), heard.events());
  ground.on_lane([&] {
    other.identify("at once");
    CHECK(heard.identities == "from a thread;at once;");
  });
}

TEST_CASE("how a start went is told with all of its parts") {
  Ground ground;
  Heard heard;
  const Starting starting(ground.lane, request_of_nothing(), heard.events());
  Started started(Outcome::created, "id", "/work");
  started.provenance = Provenance::family;
  started.template_pending_id = "build";
  started.template_retry_after = std::chrono::milliseconds(250);
  started.warnings = {"slow"};
  started.env_names = {"A", "B"};
  starting.end(nullptr, &started);
  CHECK(heard.result.struct_size == sizeof(sf_start_result));
  CHECK(heard.result.outcome == SF_OUTCOME_CREATED);
  CHECK(heard.result.provenance == SF_PROVENANCE_FAMILY);
  CHECK(heard.result.template_retry_after_ms == 250);
  CHECK(heard.texts == R"(id /work build ["slow"] ["A","B"])");

  const Started nothing;
  starting.end(nullptr, &nothing);
  CHECK(heard.result.outcome == SF_OUTCOME_UNKNOWN);
  CHECK(heard.result.provenance == SF_PROVENANCE_NONE);
  CHECK(heard.result.sandbox_id.ptr == nullptr);
  CHECK(heard.result.template_pending_id.ptr == nullptr);
  CHECK(heard.result.template_retry_after_ms == SF_NONE);
  CHECK(heard.texts == "    ");

  const sf_error error = detail::plain_error(SF_GONE, "no machine");
  starting.end(&error, nullptr);
  CHECK(heard.failure.message == "no machine");
  CHECK(heard.done == 3);
}

namespace {

class Told {
 public:
  sf_sandbox_info info{};
  std::string sandbox_id;
  std::string metadata;
  sf_info_completion completion() {
    return {this, [](void* ctx, const sf_error*, const sf_sandbox_info* raw) noexcept {
              auto& me = *static_cast<Told*>(ctx);
              me.info = *raw;
              me.sandbox_id = testing::text(raw->sandbox_id);
              me.metadata = testing::text(raw->metadata);
            }};
  }
};

}  // namespace

TEST_CASE("what a provider does not know about a sandbox is told as not known") {
  Told told;
  SandboxInfo().tell(told.completion());
  CHECK(told.info.state == SF_STATE_UNKNOWN);
  CHECK(told.info.sandbox_id.ptr == nullptr);
  CHECK(told.info.created_at == 0);
  CHECK(told.info.memory_mb == SF_NONE);
  CHECK(told.info.memory_used_mb == SF_NONE);
  CHECK(told.info.disk_mb == SF_NONE);
  CHECK(told.info.disk_used_mb == SF_NONE);
  CHECK(told.info.cpu_millis == SF_NONE);
  CHECK(told.metadata.empty());
}

TEST_CASE("what a provider knows about a sandbox is told, zero too") {
  SandboxInfo info(State::stopped);
  info.sandbox_id = "id";
  info.created_at = 1;
  info.timeout_at = 2;
  info.memory_mb = 0;
  info.memory_used_mb = 3;
  info.disk_mb = 4;
  info.disk_used_mb = 5;
  info.cpu_millis = 250;
  info.metadata.set("zone", "z1");
  Told told;
  info.tell(told.completion());
  CHECK(told.info.state == SF_STATE_STOPPED);
  CHECK(told.sandbox_id == "id");
  CHECK(told.info.created_at == 1);
  CHECK(told.info.timeout_at == 2);
  CHECK(told.info.memory_mb == 0);
  CHECK(told.info.memory_used_mb == 3);
  CHECK(told.info.disk_mb == 4);
  CHECK(told.info.disk_used_mb == 5);
  CHECK(told.info.cpu_millis == 250);
  CHECK(told.metadata == R"({"zone":"z1"})");
}
