// Claims: of several hosts that start, stop or remove a session at once, one does it.
#include <catch2/catch.hpp>

#include "unit/session/site.hpp"

using namespace sandforge;
using namespace sandforge::test;
using std::chrono::milliseconds;

TEST_CASE("Two hosts that start a session at once get one machine") {
  Site site;
  const auto first = site.host(), second = site.host();
  first.manager->open(spec("s1"), OpenMode::create);
  second.manager->attach(SessionId("s1"));
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  auto one = later<StartedInfo>(
      [&](auto done) { first.manager->async_start(SessionId("s1"), std::move(done)); });
  REQUIRE(site.world->wait_held());
  auto two = later<StartedInfo>(
      [&](auto done) { second.manager->async_start(SessionId("s1"), std::move(done)); });
  // The second waits for the claim: it does not ask the provider.
  CHECK(site.world->counts().starts == 1);
  site.world->release();
  CHECK(get(one).value().outcome == StartOutcome::created);
  CHECK(get(two).value().outcome == StartOutcome::connected);
  CHECK(site.world->machine_count() == 1);
  CHECK(site.record("s1").generation == 1);
  CHECK(site.world->creates().back().context->sandbox_id == ProviderSandboxId("m1"));
}

TEST_CASE("A claim that another host holds for too long is an error") {
  Site site;
  SessionManager::Options options;
  options.claim_wait = milliseconds(50);
  const auto host = site.host(options);
  host.manager->open(spec("s1"), OpenMode::create);
  host.store->claim(SessionId("s1"), "somebody", milliseconds(600'000), false).value();
  const auto error = error_of([&] { host.manager->start(SessionId("s1")); });
  CHECK(error.code == Status::conflict);
  CHECK(error.reason == "session.claimed");
  CHECK(site.world->counts().starts == 0);
}

TEST_CASE("The claim of a host that died is taken over at once") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  const std::string owner = owner_of_a_dead_process();
  REQUIRE_FALSE(owner.empty());
  CHECK(claim_owner_is_gone(owner));
  CHECK_FALSE(claim_owner_is_gone(make_claim_owner()));
  CHECK_FALSE(claim_owner_is_gone("another-machine/1:1/x"));

  host.store->claim(SessionId("s1"), owner, milliseconds(600'000), false).value();
  CHECK(host.manager->start(SessionId("s1")).outcome == StartOutcome::created);
}

TEST_CASE("A claim outlives its time as long as its owner is known to live") {
  Site site;
  std::atomic<std::int64_t> now{1'000'000};
  SessionManager::Options impatient;
  impatient.claim_wait = milliseconds(1);
  impatient.steal_after = milliseconds(1);
  const auto clock = [&] { return now.load(); };
  const auto first = site.host({}, clock), second = site.host(impatient, clock);
  first.manager->open(spec("s1"), OpenMode::create);
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  auto start = later<StartedInfo>(
      [&](auto done) { first.manager->async_start(SessionId("s1"), std::move(done)); });
  REQUIRE(site.world->wait_held());
  now += 3'600'000;  // the clock was set, or the machine slept
  CHECK(error_of([&] { second.manager->start(SessionId("s1")); }).reason == "session.claimed");
  CHECK(site.world->counts().starts == 1);
  site.world->release();
  CHECK(get(start).value().outcome == StartOutcome::created);
  CHECK(site.world->machine_count() == 1);
  CHECK(second.manager->start(SessionId("s1")).outcome == StartOutcome::connected);

  // Of one that may have ended the time alone decides.
  first.store->claim(SessionId("s1"), "another-machine:1/1:1/x", milliseconds(10), false).value();
  CHECK_FALSE(second.store->claim(SessionId("s1"), "me", milliseconds(10), false).ok());
  now += 11;
  CHECK(second.store->claim(SessionId("s1"), "me", milliseconds(10), false).ok());
}

TEST_CASE("A host that lost its claim leaves the machine to the one that took it over") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::create);
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  auto start = later<StartedInfo>(
      [&](auto done) { host.manager->async_start(SessionId("s1"), std::move(done)); });
  REQUIRE(site.world->wait_held());
  const SessionId id("s1");
  auto taken = host.store->claim(id, "winner", milliseconds(600'000), true).value();

  SECTION("that has adopted it") {
    taken.sandbox_id = ProviderSandboxId("m1");
    taken.start_key = "another key";
    taken.status = SessionStatus::running;
    ++taken.generation;
    host.store->update(taken).value();
    REQUIRE(host.store->release(id, "winner").ok());
    site.world->release();
    CHECK_FALSE(get(start).ok());
    CHECK(site.world->machine_count() == 1);
    CHECK(site.world->counts().destroys == 0);
    CHECK(site.record("s1").status == SessionStatus::running);
  }
  SECTION("that is about to adopt it, by the same key") {
    site.world->release();
    CHECK(eventually([&] { return site.world->machine_count() == 1; }));
    REQUIRE(host.store->release(id, "winner").ok());
    CHECK_FALSE(get(start).ok());
    CHECK(site.world->machine_count() == 1);
    CHECK(site.world->counts().destroys == 0);
  }
  SECTION("but not when that one gave the session another key, and knows no machine") {
    taken.start_key = "another key";
    host.store->update(taken).value();
    REQUIRE(host.store->release(id, "winner").ok());
    site.world->release();
    CHECK_FALSE(get(start).ok());
    CHECK(site.world->machine_count() == 0);
  }
  CHECK_FALSE(site.record("s1").claim);
  CHECK(host.manager->start(id).outcome != StartOutcome::unknown);
  CHECK(site.world->machine_count() == 1);
}

namespace {

// A store that cannot write when a claim is to be released, so many times.
class StuckStore final : public SessionStore {
 public:
  StuckStore(std::shared_ptr<SessionStore> store, int failures)
      : store_(std::move(store)), failures_(failures) {}

  Result<SessionRecord> insert(const SessionRecord& record) override {
    return store_->insert(record);
  }
  Result<std::optional<SessionRecord>> find(const SessionId& id) override {
    return store_->find(id);
  }
  Result<std::vector<SessionRecord>> list(const SessionQuery& query) override {
    return store_->list(query);
  }
  Result<SessionRecord> update(const SessionRecord& record) override {
    return store_->update(record);
  }
  Result<void> erase(const SessionId& id, std::optional<std::uint64_t> revision) override {
    return store_->erase(id, revision);
  }
  Result<void> touch(const SessionId& id, std::int64_t at_ns) override {
    return store_->touch(id, at_ns);
  }
  Result<SessionRecord> claim(const SessionId& id, const std::string& owner, milliseconds ttl,
                              bool steal) override {
    return store_->claim(id, owner, ttl, steal);
  }
  Result<void> renew(const SessionId& id, const std::string& owner, milliseconds ttl) override {
    return store_->renew(id, owner, ttl);
  }
  Result<SessionRecord> hold(const SessionId& id, const std::string& holder) override {
    return store_->hold(id, holder);
  }
  Result<void> release(const SessionId& id, const std::string& owner) override {
    if (failures_-- > 0) return Error(Status::no_space, "no space left", "store.full");
    return store_->release(id, owner);
  }

 private:
  const std::shared_ptr<SessionStore> store_;
  std::atomic<int> failures_;
};

}  // namespace

TEST_CASE("A claim that could not be given back is given back later") {
  Site site;
  SessionManager::Options options;
  options.claim_ttl = milliseconds(3);
  std::atomic<int> warnings{0};
  options.warn = [&](const SessionId&, const Error&) { ++warnings; };
  site.wrap_store = [](std::shared_ptr<SessionStore> store) {
    return std::make_shared<StuckStore>(std::move(store), 2);
  };
  const auto host = site.host(options);
  host.manager->open(spec("s1"), OpenMode::create);
  CHECK(host.manager->start(SessionId("s1")).outcome == StartOutcome::created);
  CHECK(eventually([&] { return !site.record("s1").claim; }));
  CHECK(warnings >= 1);
}

TEST_CASE("A claim is renewed while a start takes long") {
  Site site;
  SessionManager::Options options;
  options.claim_ttl = milliseconds(90);
  const auto host = site.host(options);
  host.manager->open(spec("s1"), OpenMode::create);
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  auto start = later<StartedInfo>(
      [&](auto done) { host.manager->async_start(SessionId("s1"), std::move(done)); });
  REQUIRE(site.world->wait_held());
  const auto first = site.record("s1").claim->expires_at_ms;
  CHECK(eventually([&] { return site.record("s1").claim->expires_at_ms > first; }));
  site.world->release();
  CHECK(get(start).ok());
  CHECK_FALSE(site.record("s1").claim);
}

TEST_CASE("Destroy takes a stuck start over, and the late machine is removed") {
  Site site;
  SessionManager::Options impatient;
  impatient.steal_after = milliseconds(1);
  const auto first = site.host(), second = site.host(impatient);
  first.manager->open(spec("s1"), OpenMode::create);
  fake::StartScript script;
  script.hold = true;
  site.world->next_start(script);
  auto start = later<StartedInfo>(
      [&](auto done) { first.manager->async_start(SessionId("s1"), std::move(done)); });
  REQUIRE(site.world->wait_held());
  second.manager->destroy(SessionId("s1"));
  CHECK_FALSE(site.known("s1"));
  site.world->release();
  CHECK_FALSE(get(start).ok());
  CHECK(eventually([&] { return site.world->machine_count() == 0; }));
}
