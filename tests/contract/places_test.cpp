// Where sessions lie: their folders, and what stays of them.
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "contract/local_fixture.hpp"

using namespace sandforge;
using namespace sandforge::contract;

namespace {

mode_t mode_of(const fs::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

std::size_t folders_in(const fs::path& root) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.path().filename() != ".sandforge") ++count;
  return count;
}

}  // namespace

TEST_CASE_METHOD(LocalFixture, "D10 other ids get folders of their own, right below the root",
                 "[cases.D10]") {
  const std::string composed = "caf\xc3\xa9";
  const std::string decomposed = "cafe\xcc\x81";
  const std::vector<std::string> ids = {"CON",        composed, decomposed, "-rf",
                                        ".sandforge", "a b",    "%41",      std::string(200, 'y')};
  std::vector<std::shared_ptr<Sandbox>> all;
  for (const auto& id : ids) {
    all.push_back(started(id));
    CHECK(folders_in(root()) == all.size());
    sh(*all.back(), "echo mine > file");
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(ids[i]);
    const fs::path place(*all[i]->working_directory());
    CHECK(place.parent_path() == root());
    CHECK(read_file(place / "file") == "mine\n");
    CHECK(mode_of(place) == 0700);
    all[i]->destroy();
    CHECK(fs::exists(place / "file"));
  }
}

TEST_CASE_METHOD(LocalFixture, "D10 a symlink in the place of a session's folder is not followed",
                 "[cases.D10]") {
  fs::create_directories(root());
  fs::create_directory(home() / "precious");
  std::ofstream(home() / "precious" / "file") << "x";
  fs::create_symlink(home() / "precious", root() / "s");
  const auto sandbox = make();
  CHECK_THROWS_AS(sandbox->start(), Exception);
  CHECK(sandbox->status() == SandboxStatus::error);
  CHECK_NOTHROW(sandbox->destroy());
  CHECK(read_file(home() / "precious" / "file") == "x");
  fs::remove(root() / "s");
  CHECK(make()->start().outcome == StartOutcome::created);
}

TEST_CASE_METHOD(LocalFixture, "D11 bad options are a typed error, the next good sandbox works",
                 "[cases.D11]") {
  json::Object relative;
  relative.set("root", "relative/root");
  const Error error = error_of([&] { open(relative); });
  CHECK(error.code == Status::invalid);
  CHECK(error.message.find("absolute") != std::string::npos);

  std::ofstream(home() / "file") << "x";
  json::Object in_file;
  in_file.set("root", (home() / "file" / "below").string());
  SandboxConfig config;
  config.id = "s";
  const auto broken = make(open(in_file), config);
  const Error start = error_of([&] { broken->start(); });
  CHECK(start.message.find((home() / "file").string()) != std::string::npos);
  CHECK(broken->status() == SandboxStatus::error);
  CHECK_THROWS_AS(broken->exec({"true"}), Exception);

  CHECK(make("good")->exec({"echo", "works"}).out == "works\n");
}

TEST_CASE_METHOD(LocalFixture, "D06 the provider's id alone is enough to destroy what runs",
                 "[cases.D06]") {
  for (const bool with_session : {false, true}) {
    CAPTURE(with_session);
    const auto first = started();
    const auto process = first->spawn(shell("setsid sleep 1000 & echo up; sleep 1000"));
    REQUIRE(eventually([&] { return process->out() == "up\n"; }));
    auto context = std::make_shared<SessionContext>();
    if (with_session) context->session_id = SessionId("s");
    context->sandbox_id = first->sandbox_id();
    REQUIRE(context->sandbox_id.has_value());
    SandboxConfig config;
    config.context = context;
    const auto second = Sandbox::create(runtime(), open(), config).value();
    second->destroy();
    CHECK(second->status() == SandboxStatus::destroyed);
    CHECK(nothing_runs());
    CHECK_FALSE(process->wait().success);
    first->destroy();
  }
}

TEST_CASE_METHOD(LocalFixture, "D16 info has all fields of the contract", "[cases.D16]") {
  const auto sandbox = make();
  const auto before = sandbox->info();
  CHECK(before.status == SandboxStatus::pending);
  CHECK(before.machine.state == MachineState::absent);
  CHECK_FALSE(before.last_used_at_ns);
  CHECK_FALSE(fs::exists(root()));

  sandbox->start();
  sandbox->exec({"true"});
  const auto info = sandbox->info();
  CHECK(info.id == "s");
  CHECK(info.name == "local");
  CHECK(info.provider == "local");
  CHECK(info.status == SandboxStatus::running);
  CHECK(info.created_at_ns > 0);
  REQUIRE(info.last_used_at_ns);
  CHECK(*info.last_used_at_ns >= info.created_at_ns);
  CHECK(info.machine.state == MachineState::running);
  const auto* place = info.metadata.find("workingDirectory");
  REQUIRE(place != nullptr);
  CHECK(*place == json::Value(folder().string()));
  // No boundary against the host's user, and it says so.
  REQUIRE(info.metadata.find("isolation") != nullptr);
  CHECK(*info.metadata.find("isolation") == json::Value("none"));
  REQUIRE(info.metadata.find("platform") != nullptr);
  CHECK(*info.metadata.find("platform") == json::Value("linux"));
  // Of the machine as its commands see it.
  const auto memory = std::stoull(sh(*sandbox, "awk '/^MemTotal/ { print $2 }' /proc/meminfo").out);
  CHECK(info.machine.memory_mb == memory / 1024);
  const auto cores = std::stoull(sh(*sandbox, "grep -c ^processor /proc/cpuinfo").out);
  CHECK(info.machine.cpu_millis == cores * 1000);

  const auto text = json::write(to_json(info));
  CAPTURE(text);
  for (const char* key :
       {"\"id\"", "\"name\"", "\"provider\"", "\"status\":\"running\"", "\"createdAt\"",
        "\"lastUsedAt\"", "\"metadata\"", "\"memoryMB\"", "\"cpuCores\""})
    CHECK(text.find(key) != std::string::npos);

  sandbox->stop();
  CHECK(sandbox->info().machine.state == MachineState::stopped);
  CHECK(nothing_runs());
}

TEST_CASE_METHOD(LocalFixture, "D16 instructions: the default, a string, a function",
                 "[cases.D16]") {
  const std::string standard =
      "Local command execution. Working directory: \"" + folder().string() + "\".";
  CHECK(make()->instructions() == standard);
  SandboxConfig config;
  config.id = "s";
  config.instructions = std::string("Be careful.");
  CHECK(make(config)->instructions() == "Be careful.");
  config.instructions = std::string();
  CHECK(make(config)->instructions().empty());
  config.instructions = [](std::string given) { return given + " More."; };
  CHECK(make(config)->instructions() == standard + " More.");
  CHECK_FALSE(fs::exists(root()));
}

TEST_CASE_METHOD(LocalFixture, "D16 the provider describes itself", "[cases.D16]") {
  const auto& backend = provider();
  const auto description = await_result<Description>([&](Handler<Description> done) {
    auto held = std::make_shared<Handler<Description>>(std::move(done));
    backend->lane().post([backend, held] { backend->describe(std::move(*held)); });
  });
  const auto text = json::write(description.settings_schema);
  CHECK(text.find("\"additionalProperties\":false") != std::string::npos);
  CHECK(text.find("\"properties\":{}") != std::string::npos);
  CHECK_FALSE(description.has_template);
  CHECK_FALSE(description.has_builds);
  for (const char* feature : {"spawn.stdin", "spawn.kill", "env.per_command", "stderr.separate",
                              "destroy.keeps_directory"})
    CHECK(std::count(description.features.begin(), description.features.end(), feature) == 1);
}
TEST_CASE_METHOD(LocalFixture, "D02 start after destroy provisions anew, in the folder that stays",
                 "[cases.D02]") {
  const auto sandbox = started();
  sh(*sandbox, "echo kept > file");
  const auto before = sandbox->started()->generation;
  sandbox->destroy();
  CHECK(sandbox->status() == SandboxStatus::destroyed);
  CHECK(nothing_runs());
  const auto again = sandbox->start();
  // The folder is what outlives a local machine: with it, "created" would invite set-up by force.
  CHECK(again.outcome == StartOutcome::connected);
  CHECK(again.generation > before);
  CHECK(sh(*sandbox, "cat file").out == "kept\n");

  sandbox->destroy();
  fs::remove_all(folder());
  CHECK(sandbox->start().outcome == StartOutcome::created);
}

TEST_CASE_METHOD(LocalFixture, "D06 destroy works from the session id alone", "[cases.D06]") {
  const auto first = started();
  sh(*first, "echo kept > file");
  const auto process = first->spawn(argv({"sleep", "60"}));
  const auto leader = static_cast<pid_t>(process->pid());

  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s");
  SandboxConfig config;
  config.context = context;
  const auto second = make(config);
  second->destroy();
  CHECK(second->status() == SandboxStatus::destroyed);
  CHECK_FALSE(alive(leader));
  CHECK(nothing_runs());
  CHECK_FALSE(fs::exists(root() / ".sandforge"));
  CHECK(read_file(folder() / "file") == "kept\n");
}
