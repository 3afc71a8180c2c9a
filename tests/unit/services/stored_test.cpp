// Services behind which the host keeps something: state, secrets.
#include "sandforge/secrets.hpp"

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <catch2/catch.hpp>

#include "plugin/abi_context.hpp"
#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_secrets.h"
#include "sandforge/ext/host_state.h"
#include "support/temp_dir.hpp"
#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

struct Answer {
  std::promise<std::string> promise;
  std::string get() { return promise.get_future().get(); }

  static void plain(void* ctx, const sf_error* error) noexcept {
    static_cast<Answer*>(ctx)->promise.set_value(error == nullptr ? "ok" : copy(error->message));
  }
  static void value(void* ctx, const sf_error* error, sf_bytes bytes) noexcept {
    auto& promise = static_cast<Answer*>(ctx)->promise;
    if (error != nullptr) return promise.set_value("error: " + copy(error->message));
    promise.set_value(bytes.ptr == nullptr
                          ? "(none)"
                          : std::string(reinterpret_cast<const char*>(bytes.ptr), bytes.len));
  }
  static void text(void* ctx, const sf_error* error, sf_str text) noexcept {
    static_cast<Answer*>(ctx)->promise.set_value(error != nullptr ? "error: " + copy(error->message)
                                                                  : copy(text));
  }
};

struct Stored {
  Stored() : lane(*bench.plugin, bench.sandbox_lane) {}
  template <class T>
  const T& table(const char* id) {
    sf_host* host = &bench.plugin->host;
    return *static_cast<const T*>(host->vtbl->service(host, str(id)));
  }
  sf_context* session(const char* id) {
    auto context = std::make_shared<SessionContext>();
    context->session_id = SessionId(id);
    return new plugin::HostContext(*bench.plugin, context);
  }
  Bench bench;
  plugin::LaneRef lane;
};

sf_bytes bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

using Value = std::optional<std::string>;

template <class T, class Start>
Result<T> answer_of(Start start) {
  std::promise<Result<T>> promise;
  auto future = promise.get_future();
  start(Handler<T>([promise = std::move(promise)](Result<T> result) mutable {
    promise.set_value(std::move(result));
  }));
  REQUIRE(future.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
  return future.get();
}

}  // namespace

TEST_CASE("state service: values by session and for the provider") {
  Stored stored;
  auto services = std::make_shared<HostServices>(*stored.bench.services);
  services->state = memory_state_store(8000);
  stored.bench.plugin->host.attach(services);
  const auto& state = stored.table<sf_state_service>(SF_SERVICE_STATE);
  sf_host* host = &stored.bench.plugin->host;
  sf_context* s1 = stored.session("s1");
  const auto set = [&](sf_context* scope, const char* key, sf_bytes value) {
    Answer answer;
    const sf_status status = state.set(host, stored.lane.get(), scope, str(key), value,
                                       {&answer, &Answer::plain}, nullptr, nullptr);
    return status == SF_OK ? answer.get() : "refused " + std::to_string(status);
  };
  const auto get = [&](sf_context* scope, const char* key) {
    Answer answer;
    const sf_status status = state.get(host, stored.lane.get(), scope, str(key),
                                       {&answer, &Answer::value}, nullptr, nullptr);
    return status == SF_OK ? answer.get() : "refused " + std::to_string(status);
  };
  CHECK(get(nullptr, "k") == "(none)");
  const std::string one("one\0two", 7);
  CHECK(set(nullptr, "k", bytes(one)) == "ok");
  CHECK(set(s1, "k", bytes("of s1")) == "ok");
  CHECK(get(nullptr, "k") == one);
  CHECK(get(s1, "k") == "of s1");
  CHECK(set(nullptr, "k", {nullptr, 0}) == "ok");
  CHECK(get(nullptr, "k") == "(none)");
  CHECK(set(s1, "k", bytes("")) == "ok");
  CHECK(get(s1, "k").empty());
  CHECK(set(s1, "big", bytes(std::string(1990, 'x'))) ==
        "the state of the plugin fake exceeds its limit");
  CHECK(set(s1, "big", bytes(std::string(SF_STATE_VALUE_MAX + 1, 'x'))) == "refused 1");
  CHECK(get(s1, "") == "refused 1");
  CHECK(get(s1, std::string(201, 'k').c_str()) == "refused 1");
  plugin::HostContext::release(s1);
}

TEST_CASE("state in memory: what an entry costs counts, and nobody takes all of it") {
  const auto store = memory_state_store(40'000);
  const auto set = [&](const std::string& plugin, const std::string& key,
                       std::optional<std::string> value) {
    std::string out = "no answer";
    store->set(plugin, SessionId("s"), key, std::move(value),
               [&](Result<void> result) { out = result ? "ok" : result.error().message; });
    return out;
  };
  const auto fill = [&](const std::string& plugin) {
    int count = 0;
    while (count < 1000 && set(plugin, std::to_string(count), "") == "ok")
      ++count;
    return count;
  };
  // A quarter of it: 10,000 bytes, at 256 and some for each.
  const int taken = fill("one");
  CHECK(taken > 30);
  CHECK(taken < 40);
  CHECK(set("one", "more", "") == "the state of the plugin one exceeds its limit");
  CHECK(fill("two") == taken);
  CHECK(fill("three") > 0);
  CHECK(set("one", "0", std::nullopt) == "ok");
  CHECK(set("one", "more", "") == "ok");
  fill("four");
  CHECK(set("five", "k", std::string(8000, 'x')) == "the state of all plugins exceeds its limit");
}

TEST_CASE("secrets service: what the host grants, masked from then on") {
  struct Source final : SecretSource {
    void get(const std::string& plugin, std::shared_ptr<const SessionContext> scope,
             std::string name, Handler<std::optional<std::string>> done) override {
      if (name == "fails")
        return std::move(done)(Error(Status::unavailable, "the vault is closed"));
      if (name != "token") return std::move(done)(std::optional<std::string>());
      std::move(done)(std::optional<std::string>(plugin + "-secret-" +
                                                 (scope ? scope->session_id->str() : "none")));
    }
  };
  Stored stored;
  auto services = std::make_shared<HostServices>(*stored.bench.services);
  services->secrets = std::make_shared<Source>();
  stored.bench.plugin->host.attach(services);
  const auto& secrets = stored.table<sf_secrets_service>(SF_SERVICE_SECRETS);
  sf_host* host = &stored.bench.plugin->host;
  const auto get = [&](sf_context* scope, const char* name) {
    Answer answer;
    REQUIRE(secrets.get(host, stored.lane.get(), scope, str(name), {&answer, &Answer::text},
                        nullptr, nullptr) == SF_OK);
    return answer.get();
  };
  sf_context* s1 = stored.session("s1");
  CHECK(get(s1, "token") == "fake-secret-s1");
  CHECK(get(nullptr, "token") == "fake-secret-none");
  CHECK(get(nullptr, "other") == "error: there is no such secret");
  CHECK(get(nullptr, "fails") == "error: the vault is closed");
  plugin::HostContext::release(s1);
  services->logger->write(LogLevel::info, "it is fake-secret-s1");
  CHECK(stored.bench.log().find("fake-secret-s1") == std::string::npos);
}

TEST_CASE("state in a folder: another store reads it, and keys of others are others") {
  const TempDir folder;
  const auto set = [&](const std::string& plugin, const std::string& session,
                       std::optional<std::string> value) {
    const auto store = folder_state_store(folder.path() / "state");
    const auto result = answer_of<void>([&](Handler<void> done) {
      store->set(plugin, SessionId(session), "key", std::move(value), std::move(done));
    });
    return result ? "ok" : result.error().message;
  };
  const auto get = [&](const std::string& plugin, const std::string& session) {
    const auto store = folder_state_store(folder.path() / "state");
    const auto result = answer_of<Value>([&](Handler<Value> done) {
      store->get(plugin, SessionId(session), "key", std::move(done));
    });
    return !result ? result.error().message : result->value_or("(none)");
  };
  CHECK(get("p", "s") == "(none)");
  const std::string bytes("a\0b\n", 4);
  CHECK(set("p", "s", bytes) == "ok");
  CHECK(get("p", "s") == bytes);
  CHECK(get("p", "") == "(none)");
  CHECK(get("q", "s") == "(none)");
  CHECK(set("p", "s", "") == "ok");
  CHECK(get("p", "s").empty());
  CHECK(set("p", "s", std::nullopt) == "ok");
  CHECK(set("p", "s", std::nullopt) == "ok");
  CHECK(get("p", "s") == "(none)");
  for (const auto& plugin : std::filesystem::directory_iterator(folder.path() / "state"))
    CHECK(std::filesystem::is_empty(plugin));
}

TEST_CASE(
    "state in a folder has its limit for each plugin, and an unreadable value is no absent one") {
  const TempDir folder;
  const auto store = folder_state_store(folder.path() / "state", 1024);
  const auto set = [&](const std::string& plugin, const std::string& key,
                       std::optional<std::string> value) {
    const auto result = answer_of<void>([&](Handler<void> done) {
      store->set(plugin, SessionId("s"), key, std::move(value), std::move(done));
    });
    return result ? Status::ok : result.error().code;
  };
  CHECK(set("p", "a", std::string(400, 'x')) == Status::ok);
  CHECK(set("p", "b", std::string(113, 'x')) == Status::no_space);
  CHECK(set("p", "b", std::string(112, 'x')) == Status::ok);
  CHECK(set("q", "a", std::string(400, 'x')) == Status::ok);
  // A value counts once: in place of itself there is room, and what goes makes room.
  CHECK(set("p", "a", std::string(400, 'y')) == Status::ok);
  CHECK(set("p", "b", std::nullopt) == Status::ok);
  CHECK(set("p", "a", std::string(768, 'z')) == Status::ok);

  std::filesystem::path file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "state"))
    if (entry.is_regular_file() && entry.file_size() == 768) file = entry.path();
  REQUIRE_FALSE(file.empty());
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  const auto read = answer_of<Value>(
      [&](Handler<Value> done) { store->get("p", SessionId("s"), "a", std::move(done)); });
  REQUIRE_FALSE(read);
  CHECK(read.error().message.find("Is a directory") != std::string::npos);
}

TEST_CASE("state in a folder: whoever asks waits for no disk, and the last value stays") {
  const TempDir folder;
  std::promise<std::thread::id> answered;
  const auto wait = [](auto future) {
    REQUIRE(future.wait_for(std::chrono::seconds(60)) == std::future_status::ready);
    return future.get();
  };
  {
    const auto store = folder_state_store(folder.path() / "state");
    for (int i = 0; i < 20; ++i)
      store->set("p", SessionId("s"), "key", std::to_string(i), [](const Result<void>&) {});
    store->get("p", SessionId("s"), "key",
               [&](const Result<Value>&) { answered.set_value(std::this_thread::get_id()); });
    CHECK(wait(answered.get_future()) != std::this_thread::get_id());
    store->set("p", SessionId("s"), "key", "last", [](const Result<void>&) {});
  }
  const auto next = folder_state_store(folder.path() / "state");
  const auto result = answer_of<Value>(
      [&](Handler<Value> done) { next->get("p", SessionId("s"), "key", std::move(done)); });
  CHECK(result.value() == "last");
}

TEST_CASE("state in a folder: what a killed process has left of a write goes after a while") {
  const TempDir folder;
  const auto store = folder_state_store(folder.path() / "state", 1024);
  const auto set = [&](const std::string& key, const std::string& value) {
    const auto result = answer_of<void>(
        [&](Handler<void> done) { store->set("p", SessionId("s"), key, value, std::move(done)); });
    return result ? Status::ok : result.error().code;
  };
  REQUIRE(set("a", "x") == Status::ok);
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path() / "state"))
    if (entry.is_regular_file()) file = entry.path();
  const auto left = file.string() + ".0123456789abcdef";
  std::ofstream(left) << std::string(600, 'x');
  // It may be that of a process that is about to finish it.
  CHECK(set("b", std::string(100, 'x')) == Status::no_space);
  CHECK(std::filesystem::exists(left));
  std::filesystem::last_write_time(
      left, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  CHECK(set("b", std::string(100, 'x')) == Status::ok);
  CHECK_FALSE(std::filesystem::exists(left));
  CHECK(std::filesystem::exists(file));
}
