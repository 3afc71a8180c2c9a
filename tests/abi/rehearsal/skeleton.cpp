// The provider and the sandbox of every skeleton.
#include "skeleton.hpp"

namespace sandforge::rehearsal {
namespace {

MakeMachine make_machine = nullptr;

struct Sandbox : sf_sandbox {
  sf_lane* lane;
  Machine* machine;
  std::string id;
};
struct Provider : sf_provider {
  sf_lane* lane;
};

Sandbox& of(sf_sandbox* s) {
  return *static_cast<Sandbox*>(s);
}

constexpr sf_sandbox_vtbl sandbox_functions = {
    sizeof(sf_sandbox_vtbl),
    [](sf_sandbox* s, const sf_start_request*, const sf_start_events* events, sf_op** op,
       const sf_error_sink*) noexcept {
      give_op(op);
      post(of(s).lane, [told = *events, id = of(s).id] {
        told.on_identity(told.ctx, str(id));
        sf_start_result result{};
        result.struct_size = sizeof result;
        result.outcome = SF_OUTCOME_CREATED;
        result.provenance = SF_PROVENANCE_BASE;
        result.sandbox_id = str(id);
        result.working_directory = str("/work");
        result.template_retry_after_ms = SF_NONE;
        told.done(told.ctx, nullptr, &result);
      });
      return sf_status{SF_OK};
    },
    [](sf_sandbox* s, sf_completion done, sf_op** op, const sf_error_sink*) noexcept {
      give_op(op);
      post(of(s).lane, [done] { done.done(done.ctx, nullptr); });
      return sf_status{SF_OK};
    },
    [](sf_sandbox* s, sf_completion done, sf_op** op, const sf_error_sink*) noexcept {
      give_op(op);
      post(of(s).lane, [done] { done.done(done.ctx, nullptr); });
      return sf_status{SF_OK};
    },
    [](sf_sandbox* s, sf_info_completion done, sf_op** op, const sf_error_sink*) noexcept {
      give_op(op);
      post(of(s).lane, [done, id = of(s).id] {
        sf_sandbox_info info{};
        info.struct_size = sizeof info;
        info.state = SF_STATE_RUNNING;
        info.sandbox_id = str(id);
        info.memory_mb = info.memory_used_mb = info.disk_mb = info.disk_used_mb = SF_NONE;
        info.cpu_millis = SF_NONE;
        done.done(done.ctx, nullptr, &info);
      });
      return sf_status{SF_OK};
    },
    [](sf_sandbox* s, sf_text_completion done, sf_op** op, const sf_error_sink*) noexcept {
      give_op(op);
      post(of(s).lane, [done] { done.done(done.ctx, nullptr, str("A skeleton.")); });
      return sf_status{SF_OK};
    },
    [](sf_sandbox* s, const sf_command* command, const sf_stream_events* io,
       const sf_process_events* events, sf_process** process, const sf_error_sink* err) noexcept {
      return of(s).machine->spawn(*command, *io, *events, process, err);
    },
    [](sf_sandbox*, sf_str) noexcept -> const void* { return nullptr; },
    [](sf_sandbox* s) noexcept {
      sf_lane* lane = of(s).lane;
      delete of(s).machine;
      delete &of(s);
      lane->vtbl->release(lane);
    }};

constexpr sf_provider_vtbl provider_functions = {
    sizeof(sf_provider_vtbl),
    [](sf_provider* p, sf_describe_completion done, sf_op** op, const sf_error_sink*) noexcept {
      give_op(op);
      post(static_cast<Provider*>(p)->lane, [done] {
        const sf_describe_result result{
            sizeof result, str(R"({"type":"object","properties":{},"additionalProperties":false})"),
            str(R"({"features":["spawn.stdin"]})")};
        done.done(done.ctx, nullptr, &result);
      });
      return sf_status{SF_OK};
    },
    [](sf_provider*, const sf_create_request* request, sf_sandbox** sandbox,
       const sf_error_sink*) noexcept {
      request->lane->vtbl->retain(request->lane);
      auto* made = new Sandbox;
      made->vtbl = &sandbox_functions;
      made->lane = request->lane;
      made->machine = make_machine(request->lane);
      made->id = "box-1";
      *sandbox = made;
      return sf_status{SF_OK};
    },
    [](sf_provider*, sf_str) noexcept -> const void* { return nullptr; },
    [](sf_provider* p) noexcept {
      auto* provider = static_cast<Provider*>(p);
      provider->lane->vtbl->release(provider->lane);
      delete provider;
    }};

constexpr sf_plugin plugin = {
    sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR,
    [](sf_host* given, const sf_error_sink*) noexcept {
      host = given;
      return sf_status{SF_OK};
    },
    [](const sf_open_request* request, sf_provider** provider, const sf_error_sink*) noexcept {
      request->lane->vtbl->retain(request->lane);
      auto* opened = new Provider;
      opened->vtbl = &provider_functions;
      opened->lane = request->lane;
      *provider = opened;
      return sf_status{SF_OK};
    }};

}  // namespace

const sf_plugin* make_plugin(MakeMachine make) {
  make_machine = make;
  return &plugin;
}

}  // namespace sandforge::rehearsal
