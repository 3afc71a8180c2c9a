#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "cli.hpp"
#include "sandforge/session_store.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;

namespace {

// A provider without sandboxes. As it is opened, another host removes the session.
ProviderDefinition removing(const std::string& database) {
  auto definition = custom_provider([](CreateRequest) -> Result<std::shared_ptr<SandboxBackend>> {
    return Error(Status::internal, "nothing is to be started");
  });
  definition.open = [database, open = definition.open](
                        const json::Object& options, const Lane& lane,
                        Handler<std::shared_ptr<ProviderBackend>> done) {
    SqliteStoreOptions store;
    store.path = database;
    open_sqlite_session_store(store).value()->erase(SessionId("s"), std::nullopt).value();
    open(options, lane, std::move(done));
  };
  return definition;
}

// What the program says on standard error.
std::string said(const std::string& file, const std::vector<std::string>& words,
                 ProviderDefinition provider, int expected) {
  const int kept = ::dup(2);
  const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(to, 2);
  ::close(to);
  const int code = cli::cli_main(words, {std::move(provider)});
  ::dup2(kept, 2);
  ::close(kept);
  CHECK(code == expected);
  std::ostringstream out;
  out << std::ifstream(file).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("Of a session that another host removed nobody says that it was kept") {
  const test::TempDir dir;
  const auto provider = [&] { return removing((dir / "sessions.db").native()); };
  const std::vector<std::string> words{"--state", dir.str(),   "start", "--provider",
                                       "custom",  "--session", "s"};
  CHECK(said((dir / "said").native(), words, provider(), 125) ==
        "sandforge: nothing is to be started\n");
}
