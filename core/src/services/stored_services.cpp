// The services behind which the host keeps something: state, secrets.
#include <utility>

#include "plugin/abi_call.hpp"
#include "plugin/abi_context.hpp"
#include "plugin/abi_lane.hpp"
#include "sandforge/ext/host_secrets.h"
#include "sandforge/ext/host_state.h"
#include "services/host_call.hpp"
#include "services/plugin_host.hpp"

namespace sandforge::services {
namespace {

using plugin::HostLane;
using plugin::Plugin;
using plugin::refuse;
using Text = std::optional<std::string>;

constexpr std::size_t kMaxKey = 200;

SessionId session_of(sf_context* scope) {
  const auto context = plugin::HostContext::session_of(scope);
  return context && context->session_id ? *context->session_id : SessionId();
}

Result<void> check_key(std::string_view key) {
  if (key.empty() || key.size() > kMaxKey)
    return Error(Status::invalid, "a key of state has 1 to 200 bytes");
  return {};
}

// What every function here begins with. body(plugin, service) starts the call.
template <class Service, class Completion, class Body>
sf_status serve(sf_host* self, Service HostServices::*member, const char* what, sf_lane* lane,
                const Completion& done, const sf_error_sink* err, Body body) noexcept {
  try {
    const auto services = PluginHost::of(self).services();
    if (!services || !((*services).*member) || !PluginHost::of(self).runtime())
      return refuse(err, Error(Status::unavailable, "the host has closed this service"));
    if (lane == nullptr || done.done == nullptr)
      return refuse(err,
                    Error(Status::invalid, std::string(what) + " needs a lane and a completion"));
    if (auto begun = body(PluginHost::of(self).plugin(), (*services).*member); !begun)
      return refuse(err, begun.error());
    return SF_OK;
  } catch (...) {
    return refuse(err, Error(Status::internal, plugin::describe_exception()));
  }
}

template <class Completion, class... Value>
void deliver(Plugin& plugin, const Completion& done, const Error* error, Value... value) {
  plugin::call_done(plugin, "done", done.done, done.ctx, error, value...);
}

sf_status state_get(sf_host* self, sf_lane* lane, sf_context* scope, sf_str key,
                    sf_state_value_completion done, sf_op** op, const sf_error_sink* err) noexcept {
  const auto begin = [&](Plugin& plugin, const auto& state) -> Result<void> {
    if (auto good = check_key(plugin::view(key)); !good) return good;
    start_host_call<Text>(
        HostLane::lane_of(lane), op,
        [&plugin, done](const Result<Text>& result) {
          if (result.ok()) {
            deliver(plugin, done, nullptr, plugin::to_bytes(*result));
          } else {
            deliver(plugin, done, &result.error(), sf_bytes{nullptr, 0});
          }
        },
        [&plugin, state, session = session_of(scope),
         name = std::string(plugin::view(key))](Handler<Text> handler) {
          state->get(plugin.name(), session, name, std::move(handler));
        });
    return {};
  };
  return serve(self, &HostServices::state, "state.get", lane, done, err, begin);
}

sf_status state_set(sf_host* self, sf_lane* lane, sf_context* scope, sf_str key, sf_bytes value,
                    sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
  const auto begin = [&](Plugin& plugin, const auto& state) -> Result<void> {
    if (auto good = check_key(plugin::view(key)); !good) return good;
    if (value.ptr != nullptr && value.len > SF_STATE_VALUE_MAX)
      return Error(Status::invalid, "a value of state has at most 65536 bytes");
    Text text;
    if (value.ptr != nullptr) text = std::string(plugin::view(value));
    start_host_call<void>(
        HostLane::lane_of(lane), op,
        [&plugin, done](const Result<void>& result) {
          deliver(plugin, done, result.ok() ? nullptr : &result.error());
        },
        [&plugin, state, session = session_of(scope), name = std::string(plugin::view(key)),
         text = std::move(text)](Handler<void> handler) {
          state->set(plugin.name(), session, name, text, std::move(handler));
        });
    return {};
  };
  return serve(self, &HostServices::state, "state.set", lane, done, err, begin);
}

void deliver_secret(Plugin& plugin, sf_text_completion done, const Result<Text>& result) {
  if (result.ok() && *result) {
    const auto services = plugin.host.services();
    if (services && services->logger) services->logger->redactor().add_passing(**result);
    deliver(plugin, done, nullptr, plugin::to_str(**result));
    return;
  }
  const Error error =
      result.ok() ? Error(Status::not_found, "there is no such secret") : result.error();
  deliver(plugin, done, &error, sf_str{nullptr, 0});
}

sf_status secrets_get(sf_host* self, sf_lane* lane, sf_context* scope, sf_str name,
                      sf_text_completion done, sf_op** op, const sf_error_sink* err) noexcept {
  const auto begin = [&](Plugin& plugin, const auto& secrets) -> Result<void> {
    start_host_call<Text>(
        HostLane::lane_of(lane), op,
        [&plugin, done](const Result<Text>& result) { deliver_secret(plugin, done, result); },
        [&plugin, secrets, context = plugin::HostContext::session_of(scope),
         text = plugin::copy_text(name, 1024)](Handler<Text> handler) {
          secrets->get(plugin.name(), context, text, std::move(handler));
        });
    return {};
  };
  return serve(self, &HostServices::secrets, "secrets.get", lane, done, err, begin);
}

}  // namespace

const void* state_service() noexcept {
  static const sf_state_service table = {sizeof(sf_state_service), &state_get, &state_set};
  return &table;
}

const void* secrets_service() noexcept {
  static const sf_secrets_service table = {sizeof(sf_secrets_service), &secrets_get};
  return &table;
}

}  // namespace sandforge::services
