#include "sandforge/directory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <mutex>
#include <sstream>

#include "cli.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/session_store.hpp"
#include "sandforge/support/json.hpp"
#include "support/temp_dir.hpp"

using namespace sandforge;

namespace {

constexpr std::int64_t kHour = 3600LL * 1'000'000'000;

// A provider with these sandboxes, and these remains. No sandbox of it starts.
class Shelf {
 public:
  std::vector<FoundSandbox> sandboxes;
  std::vector<Leftover> leftovers;
  std::vector<std::string> removed;  // ids, and "sweep"
  std::string fails;                 // id whose removal fails
  std::uint32_t page = 2;

  void add(const std::string& id, const std::string& session, std::int64_t age, bool own = true) {
    FoundSandbox one;
    one.sandbox_id = ProviderSandboxId(id);
    if (!session.empty()) one.session_id = SessionId(session);
    one.state = MachineState::running;
    one.own = own;
    one.created_at_ns = system_clock()->now_ns() - age;
    sandboxes.push_back(std::move(one));
  }
};

class ShelfProvider final : public ProviderBackend, public OffersDirectory, DirectoryBackend {
 public:
  ShelfProvider(std::shared_ptr<ProviderBackend> inner, Shelf& shelf)
      : inner_(std::move(inner)), shelf_(shelf) {}
  const std::string& name() const noexcept override { return inner_->name(); }
  const Lane& lane() const noexcept override { return inner_->lane(); }
  void describe(Handler<Description> done) override { inner_->describe(std::move(done)); }
  Result<std::shared_ptr<SandboxBackend>> create(CreateRequest request) override {
    return inner_->create(std::move(request));
  }
  DirectoryBackend* directory() noexcept override { return this; }

 private:
  std::shared_ptr<Pending> find(json::Object, std::string page, std::uint32_t,
                                Handler<FoundPage> done) override {
    FoundPage out;
    const std::size_t from = page.empty() ? 0 : std::stoul(page);
    for (std::size_t i = from; i < shelf_.sandboxes.size() && i < from + shelf_.page; ++i)
      out.sandboxes.push_back(shelf_.sandboxes[i]);
    if (from + shelf_.page < shelf_.sandboxes.size()) out.next = std::to_string(from + shelf_.page);
    return answer(std::move(done), Result<FoundPage>(std::move(out)));
  }
  std::shared_ptr<Pending> remove(ProviderSandboxId id, Handler<void> done) override {
    if (id.str() == shelf_.fails)
      return answer(std::move(done), Result<void>(Error(Status::unavailable, "it is stuck")));
    shelf_.removed.push_back(id.str());
    return answer(std::move(done), Result<void>());
  }
  std::shared_ptr<Pending> sweep(Sweep what, Handler<std::vector<Leftover>> done) override {
    if (what == Sweep::remove) shelf_.removed.emplace_back("sweep");
    return answer(std::move(done), Result<std::vector<Leftover>>(shelf_.leftovers));
  }
  template <class T>
  std::shared_ptr<Pending> answer(Handler<T> done, Result<T> result) {
    auto held =
        std::make_shared<std::pair<Handler<T>, Result<T>>>(std::move(done), std::move(result));
    lane().post([held] { std::move(held->first)(std::move(held->second)); });
    return nullptr;
  }

  const std::shared_ptr<ProviderBackend> inner_;
  Shelf& shelf_;
};

// The program with such a provider, and a store that knows the session "known" of it.
class Program {
 public:
  Shelf shelf;
  json::Value answer;
  std::string said;

  Program() {
    SessionRecord record;
    record.id = SessionId("known");
    record.provider = "custom";
    store()->insert(record).value();
  }
  std::shared_ptr<SessionStore> store() {
    SqliteStoreOptions options;
    options.path = (dir_ / "sessions.db").native();
    return open_sqlite_session_store(options).value();
  }
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), {"--json", "--state", dir_.str()});
    const auto file = (dir_ / "out").native();
    const int kept = ::dup(1);
    const int to = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ::dup2(to, 1);
    ::close(to);
    const int code = cli::cli_main(words, {provider()});
    ::dup2(kept, 1);
    ::close(kept);
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    said = text.str();
    answer = json::parse(said).value;
    return code;
  }
  // "id done" of all that is told.
  std::string found(const char* what = "sandboxes", const char* id = "sandboxId") const {
    std::string out;
    for (const auto& one : answer.find(what)->as_array()) {
      out += one.find(id)->as_string();
      if (const auto* done = one.find("done")) out += "=" + done->as_string();
      out += " ";
    }
    return out;
  }
  long long spared(const char* why) const { return answer.find("spared")->find(why)->as_integer(); }

 private:
  ProviderDefinition provider() {
    auto definition = custom_provider([](CreateRequest) -> Result<std::shared_ptr<SandboxBackend>> {
      return Error(Status::internal, "nothing is to be started");
    });
    definition.open = [this, open = definition.open](
                          const json::Object& options, const Lane& lane,
                          Handler<std::shared_ptr<ProviderBackend>> done) {
      auto held = std::make_shared<Handler<std::shared_ptr<ProviderBackend>>>(std::move(done));
      open(options, lane, [this, held](Result<std::shared_ptr<ProviderBackend>> inner) {
        std::move (*held)(std::shared_ptr<ProviderBackend>(
            std::make_shared<ShelfProvider>(std::move(inner).value(), shelf)));
      });
    };
    return definition;
  }
  const test::TempDir dir_;
};

const std::vector<std::string> kGc{"gc", "--provider", "custom"};
std::vector<std::string> gc(std::initializer_list<std::string> more) {
  auto out = kGc;
  out.insert(out.end(), more);
  return out;
}

}  // namespace

TEST_CASE("gc finds what no session has, and changes nothing unless it is told to") {
  Program program;
  program.shelf.add("m1", "known", 10 * kHour);
  program.shelf.add("m2", "lost", 10 * kHour);
  program.shelf.add("m3", "", 10 * kHour);
  program.shelf.add("m4", "fresh", kHour / 2);
  program.shelf.add("m5", "theirs", 100 * kHour, false);
  program.shelf.add("m6", "older", 200 * kHour, false);
  CHECK(program.run(kGc) == 0);
  CHECK(program.found() == "m3 m2 ");
  CHECK(program.spared("otherHosts") == 2);
  CHECK(program.spared("young") == 1);
  CHECK(program.run(gc({"--other-hosts"})) == 0);
  CHECK(program.found() == "m3 m2 m6 ");
  CHECK(program.run(gc({"--other-hosts", "--older-than", "1m"})) == 0);
  CHECK(program.found() == "m4 m3 m2 m5 m6 ");
  CHECK(program.shelf.removed.empty());

  CHECK(program.run(gc({"--remove"})) == 0);
  CHECK(program.found() == "m3=removed m2=removed ");
  CHECK((program.shelf.removed == std::vector<std::string>{"m3", "m2", "sweep"}));
}

TEST_CASE("gc makes sessions again, each name once") {
  Program program;
  program.shelf.add("m1", "lost", 10 * kHour);
  program.shelf.add("m2", "lost", 5 * kHour);
  program.shelf.add("m3", "", 4 * kHour);
  program.shelf.add("m4", "no\nname", 3 * kHour);
  CHECK(program.run(gc({"--adopt"})) == 125);
  // The newest one goes on; what cannot be adopted is told, and left alone.
  CHECK(program.found() == "m2=adopted ");
  CHECK(program.found("failed", "id") == "m4 m3 m1 ");
  CHECK(program.shelf.removed.empty());
  const auto record = program.store()->find(SessionId("lost")).value();
  REQUIRE(record);
  CHECK(record->sandbox_id->str() == "m2");
  CHECK(record->provider == "custom");
  CHECK(record->status == SessionStatus::running);
  // What has a session's name has a session now.
  CHECK(program.run(kGc) == 0);
  CHECK(program.found() == "m4 m3 ");
}

TEST_CASE("gc tells what providers left behind, and goes on where something stays") {
  Program program;
  program.shelf.add("m1", "a", 10 * kHour);
  program.shelf.add("m2", "b", 10 * kHour);
  program.shelf.leftovers.resize(2);
  program.shelf.leftovers[0].kind = "image";
  program.shelf.leftovers[0].id = "i1";
  program.shelf.leftovers[0].reason = "old";
  program.shelf.leftovers[1].id = "i2";
  CHECK(program.run(kGc) == 0);
  CHECK(program.found("leftovers", "id") == "i1 i2 ");
  CHECK(program.shelf.removed.empty());

  program.shelf.fails = "m2";
  program.shelf.leftovers[1].error = "in use";
  CHECK(program.run(gc({"--remove"})) == 125);
  CHECK(program.found() == "m1=removed ");
  CHECK(program.found("leftovers", "id") == "i1=removed ");
  CHECK(program.found("failed", "id") == "m2 i2 ");
  CHECK((program.shelf.removed == std::vector<std::string>{"m1", "sweep"}));
  // Nobody asked for those.
  program.shelf.removed.clear();
  CHECK(program.run(gc({"--adopt"})) == 0);
  CHECK(program.found("leftovers", "id").empty());
}

TEST_CASE("gc of a provider that lists nothing") {
  Program program;
  CHECK(program.run({"gc", "--provider", "none"}) == 125);
  CHECK(program.answer.find("failed")->as_array().size() == 1);
  CHECK(program.run(gc({"--adopt", "--remove"})) == 2);
}
