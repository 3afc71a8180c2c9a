// Providers and sandboxes of plugins, good and bad, behind core's interfaces.
#include "plugin/abi_backend.hpp"

#include <thread>

#include <catch2/catch.hpp>

#include "unit/loader/fake_plugin.hpp"

using namespace sandforge;
using namespace sandforge::test;
using plugin::Fault;
using Events = std::vector<std::string>;

namespace {

Result<StartResult> start(Bench& bench, SandboxBackend& sandbox, StartRequest request = {},
                          std::vector<std::string>* identities = nullptr) {
  return bench.wait<StartResult>([&](auto handler) {
    bench.on(bench.sandbox_lane, [&] {
      sandbox.start(
          std::move(request),
          [identities](const ProviderSandboxId& id) {
            if (identities != nullptr) identities->push_back(id.str());
          },
          std::move(handler));
    });
  });
}

Result<void> stop(Bench& bench, SandboxBackend& sandbox) {
  return bench.wait<void>([&](auto handler) {
    bench.on(bench.sandbox_lane, [&] { sandbox.stop(std::move(handler)); });
  });
}

Result<MachineInfo> info(Bench& bench, SandboxBackend& sandbox) {
  return bench.wait<MachineInfo>([&](auto handler) {
    bench.on(bench.sandbox_lane, [&] { sandbox.info(std::move(handler)); });
  });
}

}  // namespace

TEST_CASE("provider: open hands over name, options and lane") {
  Bench bench;
  json::Object options;
  options.set("root", "/srv");
  bench.on_open = [&](const sf_open_request& request, sf_provider** out, const sf_error_sink*) {
    CHECK(copy(request.provider) == "fake");
    CHECK(copy(request.options) == "{\"root\":\"/srv\"}");
    CHECK(request.lane->vtbl->is_current(request.lane) == 1);
    *out = new FakeProvider;
    return SF_OK;
  };
  auto opened = bench.open(options);
  REQUIRE(opened.ok());
  CHECK((*opened)->name() == "fake");
  CHECK(FakeProvider::alive == 1);
  *opened = nullptr;
  bench.settle(bench.provider_lane);
  CHECK(FakeProvider::alive == 0);
}

TEST_CASE("provider: ways to fail at open") {
  Bench bench;
  bench.on_open = [](const sf_open_request&, sf_provider**, const sf_error_sink* err) {
    sf_error error{sizeof(error),         SF_RATE_LIMITED,          SF_ERROR_MAY_HAVE_STARTED,
                   str("slow \xff down"), str("{\"requestId\":7}"), 1500};
    err->report(err->ctx, &error);
    return SF_RATE_LIMITED;
  };
  auto refused = bench.open();
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == Status::rate_limited);
  CHECK(refused.error().message == "slow \xEF\xBF\xBD down");
  CHECK(refused.error().details.find("requestId")->as_integer() == 7);
  CHECK(refused.error().may_have_started);
  CHECK(refused.error().retry_after == std::chrono::milliseconds(1500));

  bench.on_open = [](const sf_open_request&, sf_provider**, const sf_error_sink*) {
    return SF_CONFLICT;
  };
  CHECK(bench.open().error().message == "plugin fake: plugin.open failed: CONFLICT");

  bench.on_open = [](const sf_open_request&, sf_provider**, const sf_error_sink*) {
    return sf_status{4711};
  };
  const Error unknown = bench.open().error();
  CHECK(unknown.code == Status::internal);
  CHECK(unknown.details.find("status")->as_integer() == 4711);

  bench.on_open = [](const sf_open_request&, sf_provider**, const sf_error_sink*) { return SF_OK; };
  const Error nothing = bench.open().error();
  CHECK(nothing.code == Status::crashed);
  CHECK(nothing.reason == "plugin.missing_member");

  static const sf_provider_vtbl half = {sizeof(std::size_t), nullptr, nullptr, nullptr, nullptr};
  static sf_provider incomplete = {&half};
  bench.on_open = [](const sf_open_request&, sf_provider** out, const sf_error_sink*) {
    *out = &incomplete;
    return SF_OK;
  };
  CHECK(bench.open().error().message == "plugin fake: provider fake lacks describe");
  CHECK(bench.faults(Fault::missing_value) == 2);
}

TEST_CASE("provider: an error sink that is used after its call") {
  Bench bench;
  sf_error_sink kept{};
  bench.on_open = [&](const sf_open_request&, sf_provider**, const sf_error_sink* err) {
    kept = *err;
    return SF_CONFLICT;
  };
  CHECK_FALSE(bench.open().ok());
  sf_error error{sizeof(error), SF_INVALID, 0, str("late"), {nullptr, 0}, SF_NONE};
  kept.report(kept.ctx, &error);
  CHECK(bench.faults(Fault::late_callback) == 1);
}

TEST_CASE("provider: answers of describe") {
  Bench bench;
  auto provider = bench.open().value();
  const auto describe = [&](const char* schema, const char* extra) {
    bench.provider->on_describe = [=, &bench](sf_describe_completion done, sf_op** op,
                                              const sf_error_sink*) {
      FakeOp::give(op);
      bench.provider_lane.post([=] {
        const sf_describe_result result{sizeof(result), str(schema), str(extra)};
        done.done(done.ctx, nullptr, &result);
      });
      return SF_OK;
    };
    return bench.wait<Description>([&](auto handler) {
      bench.on(bench.provider_lane, [&] { provider->describe(std::move(handler)); });
    });
  };
  const auto good = describe("{\"type\":\"object\"}", "{\"features\":[\"a\",\"b\"]}");
  REQUIRE(good.ok());
  CHECK(good->features == Events{"a", "b"});
  CHECK(describe("{", "{}").error().code == Status::crashed);
  CHECK(describe("[]", "{}").error().code == Status::crashed);
  CHECK(describe("{}", "[]").error().code == Status::crashed);
  CHECK(describe("{}", "{\"features\":[1]}").error().code == Status::crashed);
  CHECK(describe("{}", "").ok());
  bench.settle(bench.provider_lane);
  CHECK(FakeOp::alive == 0);
}

TEST_CASE("sandbox: created on the provider's lane, released before the provider") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  CHECK(FakeSandbox::alive == 1);
  CHECK(sandbox->processes() == nullptr);
  const auto off_lane = bench.backend->create(CreateRequest());
  REQUIRE_FALSE(off_lane.ok());
  CHECK(off_lane.error().reason == "core.lane");
  bench.backend = nullptr;
  bench.settle(bench.provider_lane);
  CHECK(FakeProvider::alive == 1);  // its sandbox lives
  sandbox = nullptr;
  bench.settle(bench.sandbox_lane);
  bench.settle(bench.provider_lane);
  CHECK(FakeSandbox::alive == 0);
  CHECK(FakeProvider::alive == 0);
}

TEST_CASE("sandbox: start with everything") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  bench.sandbox->on_start = [&](const sf_start_request& request, const sf_start_events& events,
                                sf_op** op, const sf_error_sink*) {
    CHECK(request.flags == SF_START_ENV_GIVEN);
    CHECK(request.timeout_ms == 1500);
    CHECK(copy(request.template_document) == "{}");
    CHECK(copy(request.idempotency_key) == "key");
    CHECK(request.env_count == 2);
    CHECK(request.env[0].value.ptr != nullptr);
    CHECK(request.env[0].value.len == 0);
    CHECK(request.env[1].value.ptr == nullptr);
    FakeOp::give(op);
    std::thread([events] {
      events.on_identity(events.ctx, str("machine-1"));
      sf_start_result result{};
      result.struct_size = sizeof(result);
      result.outcome = SF_OUTCOME_CREATED;
      result.provenance = 99;
      result.sandbox_id = str("machine-1");
      result.template_pending_id = str("t1");
      result.template_retry_after_ms = 30;
      result.warnings = str("[\"careful\"]");
      result.env_names = str("[\"A\",\"HOME\"]");
      events.done(events.ctx, nullptr, &result);
    }).detach();
    return SF_OK;
  };
  StartRequest request;
  request.env = {{"A", ""}, {"B", std::nullopt}};
  request.env_given = true;
  request.timeout = std::chrono::milliseconds(1500);
  request.template_document = "{}";
  request.idempotency_key = "key";
  Events identities;
  const auto result = start(bench, *sandbox, std::move(request), &identities);
  REQUIRE(result.ok());
  CHECK(identities == Events{"machine-1"});
  CHECK(result->outcome == StartOutcome::created);
  CHECK(result->provenance == Provenance::none);
  CHECK(result->sandbox_id->str() == "machine-1");
  CHECK_FALSE(result->working_directory.has_value());
  CHECK(result->template_pending->str() == "t1");
  CHECK(result->template_retry_after == std::chrono::milliseconds(30));
  CHECK(result->warnings == Events{"careful"});
  CHECK(result->env_names == Events{"A", "HOME"});
  bench.settle(bench.sandbox_lane);
  CHECK(FakeOp::alive == 0);
  CHECK(bench.plugin->faults.total() == 0);
  CHECK(bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("sandbox: an environment that no process can have is refused before the plugin") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  for (const auto& name : {std::string("A=B"), std::string(), std::string("A\0B", 3)}) {
    StartRequest request;
    request.env = {{name, "x"}};
    const auto started = start(bench, *sandbox, std::move(request));
    CHECK(started.error().reason == "command.invalid");
  }
  StartRequest request;
  request.env = {{"A", std::string("x\0y", 3)}};
  const auto started = start(bench, *sandbox, std::move(request));
  CHECK(started.error().code == Status::invalid);
}

TEST_CASE("sandbox: done twice, from inside the start, and after a refusal") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  bench.sandbox->on_stop = [](sf_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    done.done(done.ctx, nullptr);
    done.done(done.ctx, nullptr);
    return SF_OK;
  };
  CHECK(stop(bench, *sandbox).ok());
  CHECK(bench.faults(Fault::inside_start) == 1);
  CHECK(bench.faults(Fault::late_callback) == 1);

  bench.sandbox->on_stop = [](sf_completion done, sf_op**, const sf_error_sink* err) {
    done.done(done.ctx, nullptr);
    return fail(err, SF_CONFLICT, "busy");
  };
  const auto refused = stop(bench, *sandbox);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message == "busy");
  CHECK(bench.faults(Fault::contradiction) == 1);

  sf_completion late{};
  bench.sandbox->on_stop = [&](sf_completion done, sf_op**, const sf_error_sink* err) {
    late = done;
    return fail(err, SF_CONFLICT, "busy");
  };
  CHECK_FALSE(stop(bench, *sandbox).ok());
  late.done(late.ctx, nullptr);
  CHECK(bench.faults(Fault::late_callback) == 2);
  CHECK(bench.log().find("fault=late_callback") != std::string::npos);
  CHECK(bench.log().find("plugin=fake") != std::string::npos);
  CHECK(bench.plugin->tokens.in_use() == 0);
}

TEST_CASE("sandbox: a callback with a ctx of another kind, or of nobody") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  sf_completion stop_done{};
  bench.sandbox->on_stop = [&](sf_completion done, sf_op** op, const sf_error_sink*) {
    stop_done = done;
    FakeOp::give(op);
    return SF_OK;
  };
  bench.sandbox->on_info = [&](sf_info_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    bench.sandbox_lane.post([&stop_done, done] {
      stop_done.done(done.ctx, nullptr);
      done.done(stop_done.ctx, nullptr, nullptr);
      int local = 0;
      stop_done.done(&local, nullptr);
      stop_done.done(nullptr, nullptr);
      sf_sandbox_info value{};
      value.struct_size = sizeof(value);
      done.done(done.ctx, nullptr, &value);
    });
    return SF_OK;
  };
  std::promise<void> stopped;
  bench.on(bench.sandbox_lane, [&] {
    sandbox->stop(Handler<void>([&](const Result<void>&) { stopped.set_value(); }));
  });
  CHECK(info(bench, *sandbox).ok());
  CHECK(bench.faults(Fault::wrong_ctx) == 2);
  stop_done.done(stop_done.ctx, nullptr);
  stopped.get_future().get();
}

TEST_CASE("sandbox: info, as much as the provider knows") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  sf_sandbox_info value{sizeof(value),
                        SF_STATE_STOPPED,
                        0,
                        str("m1"),
                        5,
                        0,
                        2048,
                        SF_NONE,
                        SF_NONE,
                        SF_NONE,
                        500,
                        str("{\"platformStatus\":\"paused\"}")};
  bench.sandbox->on_info = [&](sf_info_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    bench.sandbox_lane.post([done, &value] { done.done(done.ctx, nullptr, &value); });
    return SF_OK;
  };
  const auto good = info(bench, *sandbox);
  REQUIRE(good.ok());
  CHECK(good->state == MachineState::stopped);
  CHECK(good->sandbox_id->str() == "m1");
  CHECK(good->created_at_ns == 5);
  CHECK_FALSE(good->timeout_at_ns.has_value());
  CHECK(good->memory_mb == 2048U);
  CHECK_FALSE(good->memory_used_mb.has_value());
  CHECK(good->cpu_millis == 500U);
  CHECK(good->metadata.find("platformStatus")->as_string() == "paused");

  value.state = 77;
  CHECK(info(bench, *sandbox)->state == MachineState::unknown);
  value.metadata = str("[]");
  CHECK(info(bench, *sandbox).error().code == Status::crashed);
  value.metadata = str("nonsense");
  CHECK(info(bench, *sandbox).error().code == Status::crashed);
  value.struct_size = sizeof(std::size_t);
  CHECK(info(bench, *sandbox).error().code == Status::crashed);
  bench.sandbox->on_info = [&](sf_info_completion done, sf_op** op, const sf_error_sink*) {
    FakeOp::give(op);
    bench.sandbox_lane.post([done] { done.done(done.ctx, nullptr, nullptr); });
    return SF_OK;
  };
  CHECK(info(bench, *sandbox).error().code == Status::crashed);
}

TEST_CASE("sandbox: calls outside the lane are refused, not made") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  bool called = false;
  bench.sandbox->on_stop = [&](sf_completion, sf_op**, const sf_error_sink* err) {
    called = true;
    return fail(err, SF_INTERNAL, "?");
  };
  const auto result = bench.wait<void>([&](auto handler) { sandbox->stop(std::move(handler)); });
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().reason == "core.lane");
  CHECK_FALSE(called);
}

TEST_CASE("sandbox: cancel reaches the operation, before and after it has a handle") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  std::atomic<int> cancels{0};
  bench.sandbox->on_start = [&](const sf_start_request&, const sf_start_events& events, sf_op** op,
                                const sf_error_sink*) {
    FakeOp::give(op, [&cancels, events] {
      ++cancels;
      sf_error error{sizeof(error), SF_CANCELLED, 0, str("gave up"), {nullptr, 0}, SF_NONE};
      events.done(events.ctx, &error, nullptr);
    });
    return SF_OK;
  };
  std::shared_ptr<Pending> pending;
  const auto result = bench.wait<StartResult>([&](auto handler) {
    bench.on(bench.sandbox_lane,
             [&] { pending = sandbox->start({}, nullptr, std::move(handler)); });
    pending->cancel();
    pending->cancel();
  });
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == Status::cancelled);
  CHECK(cancels == 1);
  pending->cancel();
  CHECK(cancels == 1);
}

TEST_CASE("sandbox: an operation that never ends holds nothing but itself") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  sf_completion kept{};
  bench.sandbox->on_stop = [&](sf_completion done, sf_op** op, const sf_error_sink*) {
    kept = done;
    FakeOp::give(op);
    return SF_OK;
  };
  bool ended = false;
  bench.on(bench.sandbox_lane,
           [&] { sandbox->stop(Handler<void>([&](const Result<void>&) { ended = true; })); });
  sandbox = nullptr;
  bench.settle(bench.sandbox_lane);
  CHECK_FALSE(ended);
  CHECK(FakeSandbox::alive == 1);
  kept.done(kept.ctx, nullptr);
  bench.settle(bench.sandbox_lane);
  CHECK(ended);
  bench.settle(bench.sandbox_lane);
  CHECK(FakeSandbox::alive == 0);
}

TEST_CASE("sandbox: no sf_op from a start that succeeded") {
  Bench bench;
  auto sandbox = bench.make_sandbox();
  bench.sandbox->on_stop = [&](sf_completion done, sf_op**, const sf_error_sink*) {
    bench.sandbox_lane.post([done] { done.done(done.ctx, nullptr); });
    return SF_OK;
  };
  CHECK(stop(bench, *sandbox).ok());
  CHECK(bench.faults(Fault::missing_value) == 1);
}

TEST_CASE("context: its fields, as the document has them") {
  Bench bench;
  auto context = std::make_shared<SessionContext>();
  context->session_id = SessionId("s1");
  context->sandbox_id = ProviderSandboxId("m1");
  context->setup_command = "make";
  context->repos = std::vector<SessionRepository>(2);
  (*context->repos)[1].setup_commands = {"a", "b"};
  context->workspace_setup_commands = {"c"};
  context->continue_on_setup_failure = true;
  context->caller_chose_id = true;
  auto sandbox = bench.make_sandbox(context);
  const sf_context_fields& fields = *bench.sandbox->context->vtbl->fields(bench.sandbox->context);
  CHECK(copy(fields.session_id) == "s1");
  CHECK(copy(fields.sandbox_id) == "m1");
  CHECK(copy(fields.factory_id) == "(null)");
  CHECK(copy(fields.setup_command) == "\"make\"");
  CHECK(copy(fields.workspace_setup_command) == "[\"c\"]");
  CHECK(copy(fields.repos) == "[{},{\"setupCommand\":[\"a\",\"b\"]}]");
  CHECK(fields.repo_count == 2);
  CHECK(fields.flags == (SF_CONTEXT_LIST_FORM | SF_CONTEXT_CONTINUE_ON_FAILURE |
                         SF_CONTEXT_CALLER_CHOSE_ID | SF_CONTEXT_SESSION));
}

TEST_CASE("context: repository access is asked for late, and its token stays out of the log") {
  Bench bench;
  auto context = std::make_shared<SessionContext>();
  std::vector<Handler<RepositoryAccess>> asked;
  context->repository_access = [&](Handler<RepositoryAccess> handler) {
    asked.push_back(std::move(handler));
  };
  auto sandbox = bench.make_sandbox(context);
  sf_context* raw = bench.sandbox->context;
  CHECK(asked.empty());

  struct Answer {
    std::promise<std::string> text;
    std::promise<bool> on_lane;
    Lane lane;
    static void done(void* ctx, const sf_error* error,
                     const sf_repository_access* access) noexcept {
      auto& answer = *static_cast<Answer*>(ctx);
      answer.on_lane.set_value(answer.lane.is_current());
      answer.text.set_value(error != nullptr
                                ? "error: " + copy(error->message)
                                : copy(access->clone_url) + " " + copy(access->scheme) + " " +
                                      copy(access->token));
    }
  };
  const auto ask = [&](Answer& answer, std::uint32_t index, sf_op** op) {
    answer.lane = bench.sandbox_lane;
    return raw->vtbl->repository_access(raw, bench.sandbox->lane, index, {&answer, &Answer::done},
                                        op, nullptr);
  };
  Answer first;
  sf_op* op = nullptr;
  REQUIRE(ask(first, 0, &op) == SF_OK);
  bench.settle(bench.sandbox_lane);
  REQUIRE(asked.size() == 1);
  RepositoryAccess access;
  access.clone_url = "https://example.org/r.git";
  access.authorization.emplace();
  access.authorization->token = "s3cr3t-token";
  std::move(asked[0])(std::move(access));
  CHECK(first.text.get_future().get() == "https://example.org/r.git bearer s3cr3t-token");
  CHECK(first.on_lane.get_future().get());
  op->vtbl->cancel(op);
  op->vtbl->release(op);
  bench.services->logger->write(LogLevel::info, "cloning with s3cr3t-token");
  CHECK(bench.log().find("s3cr3t-token") == std::string::npos);

  // A host that drops the question, and a cancel.
  asked.clear();
  Answer dropped;
  REQUIRE(ask(dropped, 0, nullptr) == SF_OK);
  bench.settle(bench.sandbox_lane);
  asked.clear();
  CHECK(dropped.text.get_future().get() == "error: the host gave no answer");
  Answer cancelled;
  REQUIRE(ask(cancelled, 0, &op) == SF_OK);
  op->vtbl->cancel(op);
  CHECK(cancelled.text.get_future().get() == "error: cancelled by the plugin");
  op->vtbl->release(op);
  Answer none;
  CHECK(ask(none, 1, nullptr) == SF_NOT_FOUND);
}

TEST_CASE("context: heads") {
  Bench bench;
  auto context = std::make_shared<SessionContext>();
  context->resolve_head = [](const std::string& url, const std::string& token,
                             Handler<std::optional<std::string>> handler) {
    if (url == "throw") throw std::runtime_error("no network");
    if (url == "none") return std::move(handler)(std::optional<std::string>());
    std::move(handler)(std::optional<std::string>(url + "@" + token));
  };
  auto sandbox = bench.make_sandbox(context);
  sf_context* raw = bench.sandbox->context;
  const auto resolve = [&](const char* url) {
    std::promise<std::string> answer;
    const sf_text_completion done{
        &answer, [](void* ctx, const sf_error* error, sf_str text) noexcept {
          static_cast<std::promise<std::string>*>(ctx)->set_value(
              error != nullptr ? "error: " + copy(error->message) : copy(text));
        }};
    if (raw->vtbl->resolve_head(raw, bench.sandbox->lane, str(url), str("t"), done, nullptr,
                                nullptr) != SF_OK)
      return std::string("refused");
    return answer.get_future().get();
  };
  CHECK(resolve("u") == "u@t");
  CHECK(resolve("none") == "(null)");
  CHECK(resolve("throw") == "error: the host's function failed: no network");
}
