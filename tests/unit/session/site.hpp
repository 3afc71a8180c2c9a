// Hosts that share a store and a pretend provider.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "sandforge/session.hpp"
#include "session/claim_owner.hpp"
#include "support/temp_dir.hpp"
#include "unit/sandbox/fixture.hpp"

namespace sandforge::test {

inline std::shared_ptr<SessionStore> open_store(const TempDir& dir,
                                                std::function<std::int64_t()> now_ms = nullptr) {
  SqliteStoreOptions options;
  options.now_ms = std::move(now_ms);
  options.path = dir / "sessions.db";
  options.busy_timeout = std::chrono::milliseconds(60'000);
  return open_sqlite_session_store(options).value();
}

// One machine park, one database, any number of hosts.
struct Site {
  struct Host {
    std::shared_ptr<SessionStore> store;
    std::shared_ptr<SessionManager> manager;
  };

  Host host(SessionManager::Options options = {}, std::function<std::int64_t()> now_ms = nullptr) {
    Host out;
    out.store = open_store(dir, std::move(now_ms));
    if (wrap_store) out.store = wrap_store(out.store);
    if (!options.resolve)
      options.resolve = [](const std::string& reference) -> std::optional<std::string> {
        if (reference == "${KNOWN}") return "from-host";
        return std::nullopt;
      };
    out.manager = SessionManager::create(
        runtime, out.store,
        [this](const SessionRecord& record, OpenPurpose purpose, Handler<OpenedProvider> done) {
          ++opened;
          last_purpose = purpose;
          if (record.provider == "broken")
            return std::move(done)(Error(Status::unavailable, "no such plugin", "plugin.missing"));
          OpenedProvider provider;
          provider.backend = world->provider(record.provider);
          provider.effective = [](const json::Object& stored) -> Result<json::Object> {
            auto all = stored;
            if (!all.contains("cpuCount")) all.set("cpuCount", 2);
            return all;
          };
          std::move(done)(provider);
        },
        std::move(options));
    return out;
  }

  SessionRecord record(const std::string& id) {
    return open_store(dir)->find(SessionId(id)).value().value();
  }
  bool known(const std::string& id) {
    return open_store(dir)->find(SessionId(id)).value().has_value();
  }

  TempDir dir;
  Runtime runtime;
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>(runtime);
  // Of hosts that are made from now on.
  std::function<std::shared_ptr<SessionStore>(std::shared_ptr<SessionStore>)> wrap_store;
  std::atomic<int> opened{0};
  std::atomic<OpenPurpose> last_purpose{OpenPurpose::use};
};

inline SessionSpec spec(const std::string& id) {
  SessionSpec out;
  out.id = SessionId(id);
  out.provider = "fake";
  return out;
}

inline std::string printenv(const std::shared_ptr<Session>& session, const std::string& name) {
  return session->sandbox()->execute_command("printenv " + name).out;
}

// Of claims, by a process that lived and has ended.
inline std::string owner_of_a_dead_process() {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto owner = make_claim_owner();
    const auto wrote = ::write(pipe[1], owner.data(), owner.size());
    ::_exit(wrote < 0 ? 1 : 0);
  }
  ::close(pipe[1]);
  std::string owner(512, '\0');
  owner.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(pipe[0], owner.data(), 512))));
  ::close(pipe[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return owner;
}

}  // namespace sandforge::test
