#include "steps.hpp"

#include <algorithm>
#include <set>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

using Keys = std::set<std::string_view>;

const Keys kCommandKeys = {"args",  "env", "cwd",          "timeout_ms", "grace_ms", "keep_bytes",
                           "stdin", "as",  "output_limit", "combined",   "user",     "tty"};
const Keys kResultKeys = {"outcome", "code",      "signal",  "success",   "out",
                          "err",     "out_has",   "err_has", "out_lacks", "timed_out",
                          "killed",  "truncated", "dropped", "started",   "within_ms"};
const Keys kErrorKeys = {"code", "reason", "message_has", "started"};

[[noreturn]] void malformed(const std::string& what) {
  throw_error(Error(Status::invalid, "a step is not well formed: " + what, "conformance.bad_step"));
}

// The key that says what a step does.
const std::set<std::string_view> kVerbs = {"run",     "exec",   "spawn",   "write", "close",
                                           "kill",    "wait",   "stop",    "start", "call",
                                           "destroy", "status", "sandbox", "signal"};

std::string verb_of(const json::Value& step) {
  if (!step.is_object()) malformed("not an object");
  std::string verb;
  for (const auto& [key, ignored] : step.as_object())
    if (kVerbs.count(key) != 0) {
      if (!verb.empty()) malformed("both " + verb + " and " + key);
      verb = key;
    }
  if (verb.empty()) malformed(json::write(step));
  return verb;
}

void check_keys(const json::Value& value, const Keys& allowed, const std::string& where) {
  if (!value.is_object()) malformed(where + " is no object");
  for (const auto& [key, ignored] : value.as_object())
    if (allowed.count(key) == 0) malformed("unknown key " + key + " in " + where);
}

// What can be expected of a step, so that nothing that is expected goes unseen.
Keys expectations_of(std::string_view verb) {
  Keys keys = {"error"};
  if (verb == "run" || verb == "exec" || verb == "wait")
    keys.insert(kResultKeys.begin(), kResultKeys.end());
  if (verb == "kill") keys.insert("answer");
  if (verb == "start") keys.insert("outcome");
  if (verb == "start" || verb == "stop" || verb == "destroy") keys.insert("status");
  return keys;
}

void check_expectation(const json::Value& expect, std::string_view verb) {
  check_keys(expect, expectations_of(verb), "expect");
  if (expect.as_object().empty()) malformed("an empty expect");
  if (const auto* error = expect.find("error")) check_keys(*error, kErrorKeys, "error");
}

void check_step(const json::Value& step) {
  const auto verb = verb_of(step);
  Keys keys = {"expect"};
  keys.insert(*kVerbs.find(verb));
  const bool command = verb == "run" || verb == "exec" || verb == "spawn";
  if (command) keys.insert(kCommandKeys.begin(), kCommandKeys.end());
  if (verb == "write") keys.insert("data");
  if (verb == "signal") keys.insert("number");
  check_keys(step, keys, verb);
  if (const auto* expect = step.find("expect")) check_expectation(*expect, verb);
  if (const auto* name = step.find("call"); name != nullptr)
    if (!name->is_string() || procedures().count(name->as_string()) == 0)
      malformed("no procedure " + json::write(*name));
  if (verb == "sandbox")
    check_keys(*step.find("sandbox"), {"env", "overlay", "timeout_ms", "cwd", "name"}, verb);
}

class Steps {
 public:
  explicit Steps(Host& host) : host_(host) {}

  void run(const json::Value& step) {
    const auto verb = verb_of(step);
    const Note note("step " + json::write(step));
    const auto* expect = step.find("expect");
    Error error;
    try {
      act(verb, step, expect);
      if (expect != nullptr && expect->find("error") != nullptr)
        findings().add("there was no error, and the step expects one");
      return;
    } catch (const Exception& thrown) {
      if (expect == nullptr || expect->find("error") == nullptr) {
        findings().add("an error: " + thrown.error().message);
        throw Abandoned{};
      }
      error = thrown.error();
    }
    check_error(error, *expect->find("error"));
  }

 private:
  void act(const std::string& verb, const json::Value& step, const json::Value* expect) {
    const auto& subject = *step.find(verb);
    if (verb == "run") {
      const auto begin = std::chrono::steady_clock::now();
      check(main().execute_command(text(subject), texts(step.find("args")), options(step)), expect,
            begin);
    } else if (verb == "exec") {
      const auto begin = std::chrono::steady_clock::now();
      check(main().exec(texts(&subject), options(step)), expect, begin);
    } else if (verb == "spawn") {
      spawn(subject, step);
    } else if (verb == "wait") {
      const auto begin = std::chrono::steady_clock::now();
      check(process(subject).wait(), expect, begin);
    } else if (verb == "write") {
      process(subject).write(text(*step.find("data")));
    } else if (verb == "close") {
      process(subject).close_stdin();
    } else if (verb == "signal") {
      process(subject).signal(static_cast<int>(step.find("number")->as_integer()));
    } else if (verb == "kill") {
      answer(process(subject).kill(), expect);
    } else if (verb == "call") {
      procedures().at(subject.as_string())(host_);
    } else {
      life(verb, subject, expect);
    }
  }

  void life(const std::string& verb, const json::Value& subject, const json::Value* expect) {
    if (verb == "sandbox") {
      make(subject);
    } else if (verb == "start") {
      const auto started = main().start();
      if (const auto* outcome = member(expect, "outcome"))
        CHECK(to_string(started.outcome) == outcome->as_string());
    } else if (verb == "stop") {
      main().stop();
    } else if (verb == "destroy") {
      main().destroy();
    } else if (verb == "status") {
      CHECK(to_string(main().status()) == subject.as_string());
    }
    if (const auto* status = member(expect, "status"))
      CHECK(to_string(main().status()) == status->as_string());
  }

  void make(const json::Value& given) {
    if (main_) malformed("the sandbox is there already");
    const auto* name = given.find("name");
    auto config = host_.config(name != nullptr ? name->as_string() : "s");
    if (const auto* env = given.find("env")) config.env = env_map(*env);
    if (const auto* overlay = given.find("overlay")) config.overlay = env_map(*overlay);
    if (const auto* timeout = given.find("timeout_ms"))
      config.timeout = milliseconds(timeout->as_integer());
    if (const auto* cwd = given.find("cwd")) config.working_directory = text(*cwd);
    main_ = host_.make(std::move(config));
  }

  Sandbox& main() {
    if (!main_) main_ = host_.make();
    return *main_;
  }

  Process& process(const json::Value& name) {
    const auto it = processes_.find(name.as_string());
    if (it == processes_.end()) malformed("no process " + name.as_string());
    return *it->second;
  }

  void spawn(const json::Value& subject, const json::Value& step) {
    SpawnOptions given;
    static_cast<ExecOptions&>(given) = options(step);
    if (const auto* input = step.find("stdin")) given.stdin_pipe = input->as_bool();
    if (step.find("tty") != nullptr) given.tty = Tty();
    const auto command = subject.is_string() ? shell(text(subject)) : argv(texts(&subject));
    const auto* name = step.find("as");
    processes_[name != nullptr ? name->as_string() : "p"] = main().spawn(command, given);
  }

  ExecOptions options(const json::Value& step) {
    ExecOptions out;
    if (const auto* env = step.find("env")) out.env = env_map(*env);
    if (const auto* cwd = step.find("cwd")) out.cwd.emplace(text(*cwd));
    if (const auto* user = step.find("user")) out.user = user->as_string();
    if (const auto* ms = step.find("timeout_ms")) out.timeout = milliseconds(ms->as_integer());
    if (const auto* ms = step.find("grace_ms")) out.grace = milliseconds(ms->as_integer());
    if (const auto* bytes = step.find("keep_bytes"))
      out.max_retained_bytes = static_cast<std::uint64_t>(bytes->as_integer());
    if (const auto* bytes = step.find("output_limit"))
      out.output_limit = static_cast<std::uint64_t>(bytes->as_integer());
    if (const auto* combined = step.find("combined")) out.combined = combined->as_bool();
    return out;
  }

  EnvMap env_map(const json::Value& value) {
    EnvMap out;
    for (const auto& [name, text_value] : value.as_object())
      out[name] = text_value.is_null() ? std::nullopt : std::optional(text(text_value));
    return out;
  }

  std::vector<std::string> texts(const json::Value* list) {
    std::vector<std::string> out;
    if (list == nullptr) return out;
    for (const auto& item : list->as_array())
      out.push_back(text(item));
    return out;
  }

  // A text, or {"repeat": text, "times": n}; {TOKEN} in it is the case's own word.
  std::string text(const json::Value& value) {
    std::string out;
    if (value.is_object()) {
      const auto& piece = value.find("repeat")->as_string();
      for (std::int64_t i = 0; i < value.find("times")->as_integer(); ++i)
        out += piece;
      return out;
    }
    out = value.as_string();
    constexpr std::string_view kToken = "{TOKEN}";
    for (auto at = out.find(kToken); at != std::string::npos; at = out.find(kToken, at))
      out.replace(at, kToken.size(), host_.word());
    return out;
  }

  static const json::Value* member(const json::Value* object, std::string_view key) {
    return object == nullptr ? nullptr : object->find(key);
  }

  static void answer(bool given, const json::Value* expect) {
    if (const auto* wanted = member(expect, "answer")) CHECK(given == wanted->as_bool());
  }

  void check(const CommandResult& result, const json::Value* expect,
             std::chrono::steady_clock::time_point begin) {
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    if (expect == nullptr) {
      CHECK(result.success);
      return;
    }
    for (const auto& [key, wanted] : expect->as_object())
      check_one(result, key, wanted, took);
  }

  void check_one(const CommandResult& result, const std::string& key, const json::Value& wanted,
                 milliseconds took) {
    if (key == "outcome") CHECK(to_string(result.outcome) == wanted.as_string());
    if (key == "code" && wanted.is_null()) CHECK_FALSE(result.exit_code);
    if (key == "code" && !wanted.is_null()) CHECK(result.exit_code == wanted.as_integer());
    if (key == "signal") CHECK(result.signal == wanted.as_integer());
    if (key == "success") CHECK(result.success == wanted.as_bool());
    if (key == "out") CHECK(result.out == text(wanted));
    if (key == "err") CHECK(result.err == text(wanted));
    if (key == "out_has") CHECK(has(result.out, wanted));
    if (key == "err_has") CHECK(has(result.err, wanted));
    if (key == "out_lacks") CHECK_FALSE(has(result.out, wanted));
    if (key == "timed_out") CHECK(result.timed_out == wanted.as_bool());
    if (key == "killed") CHECK(result.killed == wanted.as_bool());
    if (key == "truncated") CHECK(result.stdout_truncated == wanted.as_bool());
    if (key == "dropped") CHECK(result.stdout_dropped_bytes == wanted.as_integer());
    if (key == "started") CHECK(result.command_may_have_started == wanted.as_bool());
    if (key == "within_ms") CHECK(took <= milliseconds(wanted.as_integer()));
  }

  bool has(const std::string& haystack, const json::Value& needle) {
    const Note note("in " + show_text(haystack));
    return haystack.find(text(needle)) != std::string::npos;
  }

  void check_error(const Error& error, const json::Value& wanted) {
    const Note note("the error: " + error.message);
    if (const auto* code = wanted.find("code")) CHECK(to_string(error.code) == code->as_string());
    if (const auto* reason = wanted.find("reason")) CHECK(error.reason == reason->as_string());
    if (const auto* part = wanted.find("message_has")) CHECK(has(error.message, *part));
    if (const auto* started = wanted.find("started"))
      CHECK(error.may_have_started == started->as_bool());
  }

  Host& host_;
  std::shared_ptr<Sandbox> main_;
  std::map<std::string, std::shared_ptr<Process>> processes_;
};

}  // namespace

void check_steps(const Case& one) {
  for (const auto& step : one.steps)
    check_step(step);
}

void run_steps(Host& host, const Case& one) {
  check_steps(one);
  Steps steps(host);
  for (const auto& step : one.steps)
    steps.run(step);
}

}  // namespace sandforge::conformance
