// The services of the fake host that only keep values.
#include <sandforge/testing/host.hpp>

#include <catch2/catch.hpp>

#include <sandforge/testing/consumer.hpp>

using namespace sandforge::testing;

namespace {

template <class Table>
const Table* service_of(Host& host, const char* id) {
  return static_cast<const Table*>(host.vtbl->service(&host, str(id)));
}

}  // namespace

TEST_CASE("secret fields are marked and masked, also inside the message and other fields") {
  Host host;
  const auto* log = service_of<sf_log_service>(host, SF_SERVICE_LOG);
  const sf_log_field fields[] = {
      {sizeof(sf_log_field), str("url"), str("https://hush@host/?k=hush"), 0, 0},
      {sizeof(sf_log_field), str("key"), str("hush"), SF_FIELD_SECRET, 0},
      {sizeof(sf_log_field), str("empty"), str(""), SF_FIELD_SECRET, 0}};
  log->write(&host, SF_LOG_WARN, str("sent hush twice: hush"), fields, 3, sizeof(sf_log_field));
  REQUIRE(host.log().size() == 1);
  const LogRecord record = host.log()[0];
  CHECK(record.level == SF_LOG_WARN);
  CHECK(record.message == "sent *** twice: ***");
  CHECK(record.fields[0] == LogField{"url", "https://***@host/?k=***", false});
  CHECK(record.fields[1] == LogField{"key", "***", true});
  CHECK_FALSE(host.logged("hush"));
  CHECK(host.logged("twice"));
}

TEST_CASE("variables, folders and secrets are what the test put in") {
  Host host;
  host.env["NAME"] = "value";
  host.forbidden_env = {"OTHER"};
  host.paths[SF_PATH_DATA] = "/data";
  host.secrets["key"] = "s";
  std::string value;
  const sf_text_sink into{&value, [](void* ctx, sf_str piece) noexcept {
                            *static_cast<std::string*>(ctx) += text(piece);
                          }};
  const auto* env = service_of<sf_env_service>(host, SF_SERVICE_ENV);
  CHECK(env->get(&host, str("NAME"), &into) == SF_OK);
  CHECK(value == "value");
  CHECK(env->get(&host, str("NONE"), &into) == SF_NOT_FOUND);
  CHECK(env->get(&host, str("OTHER"), &into) == SF_FORBIDDEN);
  const auto* paths = service_of<sf_paths_service>(host, SF_SERVICE_PATHS);
  CHECK(text(paths->get(&host, SF_PATH_DATA)) == "/data");
  CHECK(paths->get(&host, SF_PATH_CACHE).ptr == nullptr);

  Lane* lane = Lane::create(host.loop);
  const auto* secrets = service_of<sf_secrets_service>(host, SF_SERVICE_SECRETS);
  Result known, unknown;
  secrets->get(&host, lane, nullptr, str("key"), text_completion(known), nullptr, nullptr);
  secrets->get(&host, lane, nullptr, str("none"), text_completion(unknown), nullptr, nullptr);
  host.loop.drain();
  CHECK(known.text == "s");
  CHECK(unknown.failure.code == SF_NOT_FOUND);
  lane->release();
}

TEST_CASE("state is kept by session and key, and can be looked at") {
  Host host;
  Lane* lane = Lane::create(host.loop);
  const auto* state = service_of<sf_state_service>(host, SF_SERVICE_STATE);
  Result set, too_long;
  CHECK(state->set(&host, lane, nullptr, str("k"), bytes("v"), completion(set), nullptr, nullptr) ==
        SF_OK);
  host.loop.drain();
  CHECK(set.done == 1);
  CHECK(host.state == std::map<std::string, std::string>{{"/k", "v"}});
  const std::string large(SF_STATE_VALUE_MAX + 1, 'x');
  CHECK(state->set(&host, lane, nullptr, str("k"), bytes(large), completion(too_long), nullptr,
                   nullptr) == SF_INVALID);
  std::string value = "?";
  const sf_state_value_completion into{&value,
                                       [](void* ctx, const sf_error*, sf_bytes found) noexcept {
                                         *static_cast<std::string*>(ctx) = text(found);
                                       }};
  state->get(&host, lane, nullptr, str("k"), into, nullptr, nullptr);
  host.loop.drain();
  CHECK(value == "v");
  lane->release();
}

TEST_CASE("the clock is the loop's, and an absent service is absent") {
  Host host;
  const auto* clock = service_of<sf_clock_service>(host, SF_SERVICE_CLOCK);
  const std::int64_t before = clock->now(&host);
  CHECK(before == host.now());
  host.loop.advance(std::chrono::seconds(2));
  CHECK(clock->now(&host) == before + 2'000'000'000);
  CHECK(clock->monotonic(&host) == 2'000'000'000);
  host.absent = {SF_SERVICE_CLOCK};
  CHECK(host.vtbl->service(&host, str(SF_SERVICE_CLOCK)) == nullptr);
  CHECK(host.vtbl->service(&host, str("nobody's/1")) == nullptr);
}

TEST_CASE("what was not given back is told") {
  Host host;
  CHECK(left_over().empty());
  Lane* one = Lane::create(host.loop);
  Lane* two = Lane::create(host.loop);
  sf_op* op = nullptr;
  Op::give(&op, nullptr);
  CHECK(left_over() == "2 lanes, 1 operation");
  one->release();
  two->release();
  op->vtbl->release(op);
  CHECK(left_over().empty());
}
