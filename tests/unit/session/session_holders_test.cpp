// Who has a session open, and what a host removes that removes only what nobody else uses.
#include <sys/prctl.h>

#include <catch2/catch.hpp>

#include "sandforge/clock.hpp"
#include "unit/session/site.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

const SessionId kId("s1");

}  // namespace

TEST_CASE("Of two hosts that open a new id at once, one made the session") {
  Site site;
  const auto first = site.host();
  const auto second = site.host();
  const auto one = first.manager->open(spec("s1"), OpenMode::either);
  const auto other = second.manager->open(spec("s1"), OpenMode::either);
  CHECK(one->made_here());
  CHECK_FALSE(other->made_here());
  CHECK(site.record("s1").holders.size() == 2);
}

TEST_CASE("Nobody removes an unused session that another host has open") {
  Site site;
  const auto first = site.host();
  const auto second = site.host();
  first.manager->open(spec("s1"), OpenMode::either)->sandbox()->start();
  const auto other = second.manager->open(spec("s1"), OpenMode::either);
  other->sandbox()->start();
  CHECK_FALSE(first.manager->remove_unused(kId));
  CHECK_FALSE(second.manager->remove_unused(kId));
  CHECK(site.world->counts().destroys == 0);
  CHECK_FALSE(site.record("s1").claim);
  CHECK(other->sandbox()->execute_command("echo still here").out == "still here\n");
  // To remove it is still a choice.
  first.manager->destroy(kId);
  CHECK_FALSE(site.known("s1"));
}

TEST_CASE("A session that only this host has open is removed") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::either)->sandbox()->start();
  CHECK(host.manager->remove_unused(kId));
  CHECK(site.world->machine_count() == 0);
  CHECK_FALSE(site.known("s1"));
  CHECK(host.manager->remove_unused(kId));  // absent
}

TEST_CASE("A host that was killed holds nothing") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::either);
  const std::string dead = owner_of_a_dead_process();
  REQUIRE_FALSE(dead.empty());
  CHECK(host.store->hold(kId, dead).value().holders.size() == 2);
  // The next one that opens it clears up.
  site.host().manager->attach(kId);
  CHECK(site.record("s1").holders.size() == 2);
  CHECK(host.store->hold(kId, dead).ok());
  const auto alone = site.host();
  alone.manager->open(spec("s2"), OpenMode::either);
  CHECK(alone.store->hold(SessionId("s2"), dead).ok());
  CHECK(alone.manager->remove_unused(SessionId("s2")));
}

TEST_CASE("A host whose process is named with a line break is known to live, and to have ended") {
  char name[16] = {};
  REQUIRE(::prctl(PR_GET_NAME, name) == 0);
  REQUIRE(::prctl(PR_SET_NAME, "a\n) b") == 0);
  const auto own = make_claim_owner();
  const bool lives = claim_owner_lives(own);
  const auto dead = owner_of_a_dead_process();
  REQUIRE(::prctl(PR_SET_NAME, name) == 0);
  CHECK(lives);
  CHECK(claim_owner_lives(own));
  CHECK(claim_owner_is_gone(dead));
}

TEST_CASE("A process of an earlier boot holds nothing, one of another pid namespace for a week") {
  Site site;
  const auto host = site.host();
  const std::string here = make_claim_owner();
  const auto colon = here.find(':'), slash = here.find('/');
  const auto earlier = "00000000-0000-4000-8000-000000000000" + here.substr(colon);
  const auto elsewhere = here.substr(0, colon) + ":1" + here.substr(slash);
  const auto insert = [&](const std::string& id, std::int64_t used_ns) {
    SessionRecord record;
    record.id = SessionId(id);
    record.provider = "fake";
    record.last_used_at_ns = used_ns;
    host.store->insert(record).value();
  };
  const std::int64_t now = system_clock()->now_ns(), day = 86'400'000'000'000;

  insert("s1", now);
  host.store->hold(kId, earlier).value();
  CHECK(host.manager->remove_unused(kId));
  insert("s1", now);
  host.store->hold(kId, earlier).value();
  // The next one that opens it clears up.
  host.manager->attach(kId);
  CHECK(site.record("s1").holders.size() == 1);

  const SessionId used("used"), unused("unused");
  insert("used", now - day);
  insert("unused", now - 8 * day);
  for (const auto& id : {used, unused})
    host.store->hold(id, elsewhere).value();
  CHECK_FALSE(host.manager->remove_unused(used));
  host.manager->attach(used);
  CHECK(site.record("used").holders.size() == 2);
  CHECK(host.manager->remove_unused(unused));
  insert("unused", now - 8 * day);
  host.store->hold(unused, elsewhere).value();
  host.store->hold(unused, "kept").value();
  host.manager->attach(unused);
  CHECK(site.record("unused").holders.size() == 2);
  CHECK_FALSE(host.manager->remove_unused(unused));
}

TEST_CASE("What is kept for good is not removed") {
  Site site;
  const auto host = site.host();
  host.manager->open(spec("s1"), OpenMode::either);
  auto kept = spec("s1");
  kept.keep = true;
  site.host().manager->open(kept, OpenMode::either);
  CHECK_FALSE(host.manager->remove_unused(kId));
  CHECK(site.known("s1"));
  // Also when the host that wants to keep it has it open already.
  host.manager->open(spec("s2"), OpenMode::either);
  kept.id = SessionId("s2");
  host.manager->open(kept, OpenMode::either);
  CHECK_FALSE(host.manager->remove_unused(SessionId("s2")));
}

TEST_CASE("A session that is opened while its machine is being removed gets another machine") {
  Site site;
  const auto first = site.host();
  const auto second = site.host();
  first.manager->open(spec("s1"), OpenMode::either)->sandbox()->start();
  site.world->next_destroy(std::nullopt, true);
  auto removal =
      later<bool>([&](auto done) { first.manager->async_remove_unused(kId, std::move(done)); });
  REQUIRE(site.world->wait_held());
  const auto session = second.manager->open(spec("s1"), OpenMode::either);
  site.world->release();
  CHECK_FALSE(get(removal).value());
  CHECK(session->sandbox()->start().outcome == StartOutcome::created);
  CHECK(session->sandbox()->execute_command("echo fresh").out == "fresh\n");
  CHECK(site.world->machine_count() == 1);
  CHECK(site.world->counts().destroys == 1);
}

TEST_CASE("A host uses the machine that another one has made since it opened the session") {
  Site site;
  site.world->strict_lanes = true;
  const auto first = site.host();
  const auto second = site.host();
  const auto mine = first.manager->open(spec("s1"), OpenMode::either);
  const auto theirs = second.manager->open(spec("s1"), OpenMode::either);
  CHECK(mine->sandbox()->start().outcome == StartOutcome::created);
  CHECK(theirs->sandbox()->start().outcome == StartOutcome::connected);
  CHECK(theirs->sandbox()->execute_command("echo shared").out == "shared\n");
  CHECK(site.world->machine_count() == 1);
}

TEST_CASE("A host learns when it opens a provider only to remove a session") {
  Site site;
  site.host().manager->open(spec("s1"), OpenMode::create)->sandbox()->start();
  CHECK(site.last_purpose == OpenPurpose::use);
  site.host().manager->destroy(kId);
  CHECK(site.last_purpose == OpenPurpose::removal);
  CHECK(site.world->machine_count() == 0);
}
