// A complete provider for a cloud with a REST API, in coroutines over the host's http service:
//   POST   /v1/boxes {"session"}                   the box of a session: made, or found again
//   GET    /v1/boxes/ID                            {"id", "found"?}
//   DELETE /v1/boxes/ID
//   POST   /v1/boxes/ID/runs {"command" or "shell"}  {"id"}
//   GET    /v1/runs/ID                         {"done", "exitCode"?, "output"?}
#include <sandforge/plugin/plugin.hpp>

using namespace sandforge::plugin;
namespace json = sandforge::json;

// The API. Every call throws what is refused, with the status of the answer.
class Cloud {
 public:
  Cloud(const Lane& lane, std::string url, std::string key)
      : client_(lane, HttpOptions(std::move(url))), key_(std::move(key)) {}

  Task<Document> call(std::string method, std::string target, json::Object body,
                      std::string what) const {
    HttpRequest request(method, target, body.empty() ? "" : json::write(json::Value(body)));
    request.headers.emplace_back("Authorization", "Bearer " + key_);
    const HttpAnswer answer = co_await client_.send(request);
    answer.throw_if_refused(what);
    co_return Document::parse(answer.body);
  }

 private:
  const HttpClient client_;
  const std::string key_;
};

class CloudSandbox : public CoSandbox {
 public:
  CloudSandbox(std::string url, std::string key, Context context)
      : url_(std::move(url)), key_(std::move(key)), context_(std::move(context)) {}

  // A POST for a session that has a box answers with that box: one session, one machine, also when
  // the answer of a first try was lost.
  Task<Started> start(Starting& starting) override {
    json::Object body;
    body.set("session", context_.session_id().value_or(""));
    if (!starting.env().empty()) body.set("env", object_of(starting.env()));
    const Document box = co_await cloud().call("POST", "/v1/boxes", body, "make the box");
    id_ = box.string("id").value();
    starting.identify(*id_);
    const bool found = box.boolean("found").value_or(false);
    co_return Started(found ? Outcome::connected : Outcome::created, id_, "/box");
  }
  Task<void> stop(StopToken) override { co_return; }
  // Found by the id that the host has kept. Gone already is as good as removed.
  Task<void> destroy(StopToken) override {
    const std::optional<std::string> id = id_ ? id_ : context_.sandbox_id();
    if (!id) co_return;
    try {
      co_await cloud().call("DELETE", "/v1/boxes/" + *id, json::Object(), "remove the box");
    } catch (const Error& e) {
      if (e.code() != Code::not_found && e.code() != Code::gone) throw;
    }
    id_.reset();
  }

  // The run is started once, and asked for until it is done. A cancel or a time limit ends the
  // wait.
  Task<Exit> run(Command command, ProcessIo io) override {
    if (!id_) throw Error(Code::conflict, "the box was not started");
    json::Object body;
    json::Array words;
    for (const std::string& word : command.argv)
      words.emplace_back(word);
    if (command.shell) {
      body.set("shell", *command.shell);
    } else {
      body.set("command", std::move(words));
    }
    if (command.cwd) body.set("cwd", *command.cwd);
    const Document run =
        co_await cloud().call("POST", "/v1/boxes/" + *id_ + "/runs", body, "run the command");
    const std::string run_id = run.string("id").value();
    io.started(run_id);
    for (;;) {
      const Document now =
          co_await cloud().call("GET", "/v1/runs/" + run_id, json::Object(), "look at the run");
      if (now.boolean("done").value_or(false)) {
        co_await write_all(io, now.string("output").value_or(""), SF_CHANNEL_STDOUT);
        co_return Exit::exited(static_cast<std::int32_t>(now.integer("exitCode").value_or(0)));
      }
      co_await sleep_for(std::chrono::seconds(1));
    }
  }

 private:
  static json::Object object_of(const std::vector<EnvEntry>& env) {
    json::Object object;
    for (const EnvEntry& entry : env)
      object.set(entry.name, entry.value.value_or(""));
    return object;
  }
  // The client is bound to the lane, which a sandbox has from its first call on.
  const Cloud& cloud() {
    if (!cloud_) cloud_.emplace(lane(), url_, key_);
    return *cloud_;
  }

  const std::string url_;
  const std::string key_;
  const Context context_;
  std::optional<Cloud> cloud_;
  std::optional<std::string> id_;
};

class CloudFactory : public CoFactorySandbox {
 public:
  static constexpr const char* provider = "http-cpp";
  explicit CloudFactory(const Opening& opening)
      : url_(opening.options.string("url").value_or("https://api.example.org")),
        key_(opening.host().env("EXAMPLE_KEY").value_or("")) {
    if (key_.empty()) throw Error(Code::unauthenticated, "the variable EXAMPLE_KEY is not set");
  }
  std::unique_ptr<SandboxBase> create(Context context, Settings) override {
    return std::make_unique<CloudSandbox>(url_, key_, std::move(context));
  }

 private:
  const std::string url_;
  const std::string key_;
};
SANDFORGE_PLUGIN(CloudFactory)
