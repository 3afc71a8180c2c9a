#include <algorithm>
#include <filesystem>
#include <set>

#include "commands/commands.hpp"
#include "commands/known_sessions.hpp"
#include "exit_codes.hpp"
#include "sandforge/clock.hpp"
#include "sandforge/directory.hpp"

namespace sandforge::cli {
namespace {

constexpr std::uint32_t kPage = 1000;

// What a provider has of its own, in blocking form.
class Directory {
 public:
  explicit Directory(std::shared_ptr<ProviderBackend> provider) : provider_(std::move(provider)) {
    if (directory_of(*provider_) == nullptr)
      throw_error(
          Error(Status::unsupported, "this provider cannot list what it has", "feature.directory"));
  }
  std::vector<FoundSandbox> all() const {
    std::vector<FoundSandbox> out;
    std::string page;
    do {
      auto found = ask<FoundPage>([page](DirectoryBackend& backend, Handler<FoundPage> done) {
        backend.find({}, page, kPage, std::move(done));
      });
      out.insert(out.end(), std::make_move_iterator(found.sandboxes.begin()),
                 std::make_move_iterator(found.sandboxes.end()));
      if (found.next == page) break;
      page = std::move(found.next);
    } while (!page.empty());
    return out;
  }
  void remove(const ProviderSandboxId& id) const {
    ask<void>([id](DirectoryBackend& backend, Handler<void> done) {
      backend.remove(id, std::move(done));
    });
  }
  std::vector<Leftover> sweep(Sweep what) const {
    return ask<std::vector<Leftover>>(
        [what](DirectoryBackend& backend, Handler<std::vector<Leftover>> done) {
          backend.sweep(what, std::move(done));
        });
  }

 private:
  template <class T, class Call>
  T ask(Call call) const {
    return await_result<T>([&](Handler<T> done) {
      auto held = std::make_shared<Handler<T>>(std::move(done));
      provider_->lane().post(
          [keep = provider_, call, held] { call(*directory_of(*keep), std::move(*held)); });
    });
  }
  const std::shared_ptr<ProviderBackend> provider_;
};

// What was found, and what became of it. Rows are for people, the rest for scripts.
class Findings {
 public:
  explicit Findings(App& app) : app_(app), now_(system_clock()->now_ns()) {}

  std::int64_t now() const noexcept { return now_; }
  std::size_t count() const noexcept { return rows_.size(); }
  std::size_t others = 0, young = 0;  // that were left out

  void add(const std::string& provider, const FoundSandbox& one, const char* done) {
    json::Object out;
    out.set("provider", provider);
    out.set("sandboxId", one.sandbox_id.str());
    if (one.session_id) out.set("session", one.session_id->str());
    out.set("running", one.state == MachineState::running);
    out.set("own", one.own);
    if (one.created_at_ns) out.set("createdAt", *one.created_at_ns / 1'000'000);
    if (done != nullptr) out.set("done", done);
    sandboxes_.emplace_back(std::move(out));
    rows_.push_back({provider, "sandbox", one.sandbox_id.str(),
                     one.session_id ? one.session_id->str() : "-", since(one.created_at_ns),
                     one.own ? "no session here" : "no session here; of another host"});
  }
  void add(const std::string& provider, const Leftover& one, const char* done) {
    json::Object out;
    out.set("provider", provider);
    out.set("kind", one.kind);
    out.set("id", one.id);
    out.set("reason", one.reason);
    if (one.created_at_ns) out.set("createdAt", *one.created_at_ns / 1'000'000);
    if (one.bytes) out.set("bytes", static_cast<long long>(*one.bytes));
    if (done != nullptr) out.set("done", done);
    leftovers_.emplace_back(std::move(out));
    rows_.push_back({provider, one.kind, one.id, "-", since(one.created_at_ns), one.reason});
  }
  void fail(const std::string& provider, const std::string& id, const Error& error) {
    failed_ = true;
    json::Object out;
    out.set("provider", provider);
    if (!id.empty()) out.set("id", id);
    out.set("error", to_json(error));
    failures_.emplace_back(std::move(out));
    if (!app_.terminal().json()) app_.terminal().error(error);
  }

  int tell(const GcArguments& arguments) {
    const auto& terminal = app_.terminal();
    int told = kOk;
    if (terminal.json()) {
      json::Object spared, out;
      spared.set("otherHosts", static_cast<long long>(others));
      spared.set("young", static_cast<long long>(young));
      out.set("sandboxes", std::move(sandboxes_));
      out.set("leftovers", std::move(leftovers_));
      out.set("spared", std::move(spared));
      out.set("failed", std::move(failures_));
      told = terminal.exit_code_after(terminal.print_json(out));
    } else {
      if (!rows_.empty())
        told = terminal.exit_code_after(
            terminal.print_table({"PROVIDER", "KIND", "ID", "SESSION", "CREATED", "WHY"}, rows_));
      if (others > 0)
        terminal.note(std::to_string(others) +
                      " without a session here may be in use by other hosts and were left out: "
                      "--other-hosts");
      if (young > 0)
        terminal.note(std::to_string(young) +
                      " without a session here are too young and were left out: --older-than");
      if (!rows_.empty() && !arguments.remove && !arguments.adopt)
        terminal.note("nothing was changed: --remove removes these");
    }
    if (app_.interrupts().caught() != 0) return kSignalBase + app_.interrupts().caught();
    return failed_ ? kFailure : told;
  }

 private:
  std::string since(const std::optional<std::int64_t>& then) const {
    return then ? age(*then, now_) : "-";
  }

  App& app_;
  const std::int64_t now_;
  bool failed_ = false;
  json::Array sandboxes_, leftovers_, failures_;
  std::vector<std::vector<std::string>> rows_;
};

// Which sandboxes the sessions of this store have.
class Known {
 public:
  Known(SessionStore& store, const std::string& provider) {
    for (const auto& record : all_sessions(store)) {
      if (record.provider != provider) continue;
      sessions_.insert(record.id);
      if (record.sandbox_id) sandboxes_.insert(*record.sandbox_id);
    }
  }
  bool has(const FoundSandbox& one) const {
    return sandboxes_.count(one.sandbox_id) != 0 ||
           (one.session_id && sessions_.count(*one.session_id) != 0);
  }

 private:
  std::set<SessionId> sessions_;
  std::set<ProviderSandboxId> sandboxes_;
};

bool is_young(const FoundSandbox& one, const GcArguments& arguments, std::int64_t now) {
  const std::chrono::milliseconds otherwise = one.own ? GcArguments::kOwn : GcArguments::kOthers;
  const std::chrono::nanoseconds least = arguments.older_than.value_or(otherwise);
  // Of unknown age: nobody can say that it is old.
  return !one.created_at_ns ? least.count() > 0 : now - *one.created_at_ns < least.count();
}

void adopt(App& app, const std::string& provider, const FoundSandbox& one, std::int64_t now) {
  if (!one.session_id)
    throw_error(Error(Status::invalid,
                      "the sandbox " + one.sandbox_id.str() + " carries no name of a session",
                      "gc.no_session"));
  check_session_id(*one.session_id).value();
  SessionRecord record;
  record.id = *one.session_id;
  record.provider = provider;
  record.sandbox_id = one.sandbox_id;
  record.generation = 1;
  record.status =
      one.state == MachineState::running ? SessionStatus::running : SessionStatus::stopped;
  record.created_at_ns = one.created_at_ns.value_or(now);
  record.last_used_at_ns = now;
  if (const auto config = app.config()) {
    record.config_file = std::filesystem::absolute(config->file).native();
    const auto* configured = config->find_provider(provider);
    if (configured != nullptr && configured->settings.is_object())
      record.settings = configured->settings.as_object();
  }
  app.store().insert(record).value();
}

// Of those that carry one name, the one to go on with comes first.
void sort_by_use(std::vector<FoundSandbox>& all) {
  std::stable_sort(all.begin(), all.end(), [](const FoundSandbox& a, const FoundSandbox& b) {
    const bool runs = a.state == MachineState::running;
    if (runs != (b.state == MachineState::running)) return runs;
    return a.created_at_ns.value_or(0) > b.created_at_ns.value_or(0);
  });
}

void collect_sandboxes(App& app, const std::string& provider, const Directory& directory,
                       const GcArguments& arguments, Findings& findings) {
  auto all = directory.all();
  sort_by_use(all);
  // Read after the list: a session is recorded before its sandbox is made.
  const Known known(app.store(), provider);
  for (const auto& one : all) {
    if (known.has(one)) continue;
    if (!one.own && !arguments.other_hosts) {
      ++findings.others;
      continue;
    }
    if (is_young(one, arguments, findings.now())) {
      ++findings.young;
      continue;
    }
    if (app.interrupts().caught() != 0) return;
    try {
      const char* done = nullptr;
      if (arguments.adopt) {
        adopt(app, provider, one, findings.now());
        done = "adopted";
      } else if (arguments.remove) {
        // It may have been adopted meanwhile.
        if (Known(app.store(), provider).has(one)) continue;
        directory.remove(one.sandbox_id);
        done = "removed";
      }
      findings.add(provider, one, done);
    } catch (const Exception& failure) {
      findings.fail(provider, one.sandbox_id.str(), failure.error());
    }
  }
}

void collect_leftovers(const std::string& provider, const Directory& directory, bool remove,
                       Findings& findings) {
  std::vector<Leftover> all;
  try {
    all = directory.sweep(remove ? Sweep::remove : Sweep::look);
  } catch (const Exception& failure) {
    if (failure.error().reason != "feature.sweep") throw;
  }
  for (const auto& one : all) {
    if (one.error.empty()) {
      findings.add(provider, one, remove ? "removed" : nullptr);
    } else {
      findings.fail(
          provider, one.id,
          Error(Status::unavailable, one.kind + " " + one.id + ": " + one.error, "gc.not_removed"));
    }
  }
}

std::vector<std::string> providers_of(App& app, const GcArguments& arguments) {
  if (!arguments.provider.empty()) return {arguments.provider};
  std::vector<std::string> out;
  if (const auto config = app.config()) {
    if (config->sandbox) out.push_back(config->sandbox->name);
    for (const auto& [name, configured] : config->providers)
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  if (out.empty()) out.push_back(app.choose_provider({}));
  return out;
}

}  // namespace

int gc_command(App& app, const GcArguments& arguments) {
  Findings findings(app);
  for (const auto& provider : providers_of(app, arguments)) {
    if (app.interrupts().caught() != 0) break;
    try {
      app.check_configured(provider);
      const Directory directory(app.open_provider(provider, app.config()).backend);
      collect_sandboxes(app, provider, directory, arguments, findings);
      if (!arguments.adopt && app.interrupts().caught() == 0)
        collect_leftovers(provider, directory, arguments.remove, findings);
    } catch (const Exception& failure) {
      const bool lists_nothing = failure.error().reason == "feature.directory";
      // One that nobody named has nothing to tell.
      if (lists_nothing && arguments.provider.empty()) continue;
      findings.fail(provider, {}, failure.error());
    }
  }
  return findings.tell(arguments);
}

}  // namespace sandforge::cli
