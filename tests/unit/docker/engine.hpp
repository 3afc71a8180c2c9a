// An engine that a test writes down: what it answers to which request.
#pragma once

#include <sandforge/testing/testing.hpp>

#include <catch2/catch.hpp>

#include <functional>
#include <map>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/json.hpp"
#include "test_paths.hpp"

namespace sandforge::docker_test {

using testing::Exchange;
using testing::Failure;

// One answer. Everything that an engine does wrong is a variant of it.
class Answer {
 public:
  Answer() {}
  Answer(std::uint32_t code, std::string content = {}) : status(code), body(std::move(content)) {}
  static Answer lost(std::uint32_t when, sf_status code, std::string details = {}) {
    Answer out;
    out.phase = when;
    out.failure = Failure(code, "the connection is gone", std::move(details));
    return out;
  }
  std::uint32_t status = 200;
  std::string body;
  bool upgraded = false;
  bool stays_open = false;
  std::uint32_t phase = SF_HTTP_BODY;
  Failure failure;
};

inline std::string frame(char stream, const std::string& payload) {
  std::string out(8, '\0');
  out[0] = stream;
  out[6] = static_cast<char>(payload.size() >> 8);
  out[7] = static_cast<char>(payload.size());
  return out + payload;
}

/*
 * The host with this engine, and a session of the provider. Answers are taken in their order; the
 * last one of a route stays. A request without a route is listed in `unexpected`.
 *
 *   FakeEngine engine;
 *   engine.on("GET /containers/json", {Answer(200, "[]")});
 */
class FakeEngine {
 public:
  testing::Host host;
  std::optional<testing::Session> box;
  std::vector<std::string> calls;  // "POST /containers/create?name=x", without the version
  std::vector<std::string> bodies;
  std::vector<std::string> unexpected;
  std::shared_ptr<Exchange> open_stream;  // the last one that stays open

  explicit FakeEngine(const std::string& options = "{}") {
    host.loop.set_time(testing::Time::skipping);
    host.http.handler = [this](const std::shared_ptr<Exchange>& exchange) { answer(exchange); };
    box.emplace(host, testing::load_plugin(DOCKER_PLUGIN), "docker", options);
    ping("1.41");
    on("GET /containers/json", {Answer(200, "[]")});
    on("GET /images/node:22-slim/json", {Answer(200, "{}")});
    on("POST /containers/create", {Answer(201, R"({"Id":"c1","Warnings":[]})")});
    on("POST /containers/c1/start", {Answer(204)});
    on("GET /containers/c1/json", {Answer(200, container("running"))});
    on("DELETE /containers/c1", {Answer(204)});
  }
  ~FakeEngine() {
    open_stream.reset();
    box.reset();
    host.http.handler = nullptr;
    CHECK(unexpected.empty());
    CHECK(testing::left_over() == "");
  }

  void ping(const std::string& version) { version_ = version; }
  void on(const std::string& route, std::vector<Answer> answers) {
    routes_[route] = {answers.begin(), answers.end()};
  }
  // Of an exec: the nonce of its script makes the first line of its stderr.
  void on_exec(std::function<Answer(const std::string& nonce)> stream, std::string exit) {
    on("POST /containers/c1/exec", {Answer(201, R"({"Id":"e1"})")});
    on("GET /exec/e1/json", {Answer(200, std::move(exit))});
    exec_ = std::move(stream);
  }

  static std::string container(const std::string& status, const std::string& more = {}) {
    const bool runs = status == "running" || status == "paused";
    return R"({"Id":"c1","Name":"/sandforge-session-1-84097828","Created":"2026-01-02T03:04:05.5Z",)"
           R"("State":{"Status":")" +
           status + R"(","Running":)" + (runs ? "true" : "false") + R"(,"Paused":)" +
           (status == "paused" ? "true" : "false") + more +
           R"(},"Config":{"Image":"node:22-slim","WorkingDir":"/workspace","Env":["A=1","PATH=/bin"],)"
           R"("Labels":{"mastra.sandbox":"true","mastra.sandbox.id":"session-1"}}})";
  }

  bool called(const std::string& beginning) const { return count(beginning) > 0; }
  int count(const std::string& beginning) const {
    int n = 0;
    for (const std::string& call : calls)
      if (call.rfind(beginning, 0) == 0) ++n;
    return n;
  }
  // The script that an exec was made with, and its arguments.
  std::vector<std::string> command(std::size_t exec) const {
    std::vector<std::string> out;
    for (std::size_t i = 0, seen = 0; i < calls.size(); ++i) {
      if (calls[i] != "POST /containers/c1/exec" || seen++ != exec) continue;
      const auto body = json::parse(bodies[i]);
      for (const auto& word : body.value.find("Cmd")->as_array())
        out.push_back(word.as_string());
    }
    return out;
  }
  json::Value body_of(const std::string& beginning) const {
    for (std::size_t i = 0; i < calls.size(); ++i)
      if (calls[i].rfind(beginning, 0) == 0) return json::parse(bodies[i]).value;
    return {};
  }

  testing::Driver::Started try_start() {
    if (box->driver().sandbox == nullptr) box->create();
    return box->driver().start();
  }
  testing::Ran exec(const std::string& shell) { return box->exec(shell); }

 private:
  void answer(const std::shared_ptr<Exchange>& exchange) {
    std::string target = exchange->target;
    if (target == "/_ping") {
      exchange->respond(200, false, {}, {{"Api-Version", version_}, {"Server", "Docker/test"}});
      exchange->end();
      return;
    }
    const std::string prefix = "/v" + version_;
    if (target.rfind(prefix, 0) == 0) target.erase(0, prefix.size());
    calls.push_back(exchange->method + " " + target);
    bodies.push_back(exchange->body);
    const std::string route =
        exchange->method + " " + *percent_decode(target.substr(0, target.find('?')));
    if (route == "POST /containers/c1/exec") {
      const auto body = json::parse(exchange->body);
      const auto& words = body.value.find("Cmd")->as_array();
      nonce_ = words.size() > 4 ? words[4].as_string() : "";
    }
    if (route == "POST /exec/e1/start" && exec_) return play(*exchange, exec_(nonce_), exchange);
    const auto found = routes_.find(route);
    if (found == routes_.end() || found->second.empty()) {
      unexpected.push_back(route);
      return exchange->end(SF_HTTP_NOT_SENT, Failure(SF_INTERNAL, "no route " + route));
    }
    const Answer next = found->second.front();
    if (found->second.size() > 1) found->second.pop_front();
    play(*exchange, next, exchange);
  }
  void play(const Exchange& exchange, const Answer& what, const std::shared_ptr<Exchange>& keep) {
    if (what.phase >= SF_HTTP_HEAD) exchange.respond(what.status, what.upgraded);
    if (what.phase >= SF_HTTP_BODY && !what.body.empty()) exchange.send(what.body);
    if (what.stays_open) {
      open_stream = keep;
    } else {
      exchange.end(what.phase, what.failure);
    }
  }

  std::string version_;
  std::string nonce_;
  std::map<std::string, std::deque<Answer>> routes_;
  std::function<Answer(const std::string&)> exec_;
};

inline Answer stream(std::string body) {
  Answer out(101, std::move(body));
  out.upgraded = true;
  return out;
}

}  // namespace sandforge::docker_test
