#include "fault_proxy.hpp"

#include <semaphore>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "sandforge/yaml.hpp"

namespace sandforge::cli {
namespace {

proxy::ProxyPlan plan_of(const FaultProxyArguments& arguments) {
  if (!arguments.rules_file.empty()) {
    std::string error;
    const auto text = host_references().file(arguments.rules_file, error);
    if (!text)
      throw_error(Error(Status::not_found, arguments.rules_file + " cannot be read: " + error,
                        "proxy.rules"));
    return proxy::parse_proxy_plan(arguments.rules_file, *text).value();
  }
  json::Array rules;
  for (const auto& text : arguments.rules) {
    auto read = parse_yaml(text);
    if (!read)
      throw_error(
          Error(Status::invalid, "--rule '" + text + "': " + read.error.message, "proxy.rules"));
    rules.push_back(std::move(read.value));
  }
  json::Object document;
  document.set("rules", std::move(rules));
  return proxy::read_proxy_plan(document).value();
}

json::Object what_it_did(const proxy::FaultProxy& proxy, std::size_t rules) {
  json::Array struck;
  for (std::size_t i = 0; i < rules; ++i)
    struck.emplace_back(static_cast<long long>(proxy.struck(i)));
  json::Object out;
  out.set("connections", static_cast<long long>(proxy.connections()));
  out.set("struck", std::move(struck));
  return out;
}

}  // namespace

int fault_proxy_command(App& app, const FaultProxyArguments& arguments) {
  proxy::FaultProxy::Options options;
  options.listen = proxy::parse_proxy_address(arguments.listen, arguments.remote).value();
  options.to = proxy::parse_proxy_address(arguments.to, arguments.remote).value();
  options.plan = plan_of(arguments);
  const auto rules = options.plan.rules.size();
  const auto to = proxy::to_string(options.to);
  const auto proxy = proxy::FaultProxy::open(std::move(options)).value();

  std::binary_semaphore asked_to_end(0);
  const std::stop_callback on_signal(app.interrupts().token(), [&] { asked_to_end.release(); });
  json::Object bound;
  bound.set("listen", proxy::to_string(proxy->address()));
  bound.set("to", to);
  if (!app.terminal().print_text(json::write(bound) + "\n"))
    return app.terminal().exit_code_after(false);
  asked_to_end.acquire();
  const bool told = app.terminal().print_text(json::write(what_it_did(*proxy, rules)) + "\n");
  return app.terminal().exit_code_after(told);
}

}  // namespace sandforge::cli
