// Drives a plugin over the bare boundary, as a host would. Errors are values: for tests of how a
// plugin fails. session.hpp is the shorter way for all others.
#pragma once

#include <dlfcn.h>

#include "consumer.hpp"
#include "context.hpp"
#include "host.hpp"

// Of a plugin that is linked into the test.
extern "C" SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY() noexcept;

namespace sandforge::testing {

inline const sf_plugin* linked_plugin() {
  return SF_PLUGIN_ENTRY();
}

// Of a plugin's file; it is never unloaded. Throws Failed.
inline const sf_plugin* load_plugin(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw Failed(std::string("the plugin does not load: ") + ::dlerror());
  const auto entry = reinterpret_cast<sf_plugin_entry_fn>(::dlsym(library, SF_PLUGIN_ENTRY_NAME));
  if (entry == nullptr) throw Failed(path + " has no symbol " SF_PLUGIN_ENTRY_NAME);
  const sf_plugin* plugin = entry();
  if (plugin == nullptr || plugin->struct_size < sizeof(sf_plugin) ||
      plugin->abi_major != SF_ABI_MAJOR) {
    throw Failed(path + " is no plugin of this version");
  }
  return plugin;
}

// A plugin with one provider and, once created, one sandbox, on one lane. Every [lane] call goes
// through call().
class Driver {
 public:
  Host& host;
  Lane* lane;
  const sf_plugin* plugin;
  sf_provider* provider = nullptr;
  sf_sandbox* sandbox = nullptr;

  Driver(Host& on, const sf_plugin* of) : host(on), lane(Lane::create(on.loop)), plugin(of) {}
  ~Driver() {
    try {
      release();
    } catch (const Failed&) {
      // The lane stands still, as a call before has said; a destructor cannot say it again.
    }
    lane->release();
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Runs fn on the lane and turns the loop until it has run. Throws Failed when it does not run.
  template <class Fn>
  void call(Fn fn) {
    enum class At { waiting, ran, given_up };
    const auto at = std::make_shared<std::atomic<At>>(At::waiting);
    lane->post([at, &fn] {
      if (*at == At::given_up) return;
      fn();
      *at = At::ran;
    });
    if (host.loop.run_until([&] { return *at == At::ran; })) return;
    *at = At::given_up;
    throw Failed("the lane does not run what was posted");
  }
  template <class Done>
  bool wait(Done done) {
    return host.loop.run_until(done);
  }

  // Also initialises the plugin, with this host.
  sf_status open(const std::string& name, const std::string& options, Failure& failure) {
    const sf_error_sink err = sink(failure);
    sf_status status = plugin->init(&host, &err);
    if (status != SF_OK) return status;
    call([&] {
      const sf_open_request request{sizeof request, str(name), str(options), lane};
      status = plugin->open(&request, &provider, &err);
    });
    return status;
  }

  struct Description {
    int done = 0;
    Failure failure;
    std::string schema;    // of the settings
    std::string describe;  // JSON object with the features
  };
  Description describe() {
    const auto d = keep<Description>();
    call([&] {
      const sf_describe_completion done{
          d.get(), [](void* ctx, const sf_error* error, const sf_describe_result* result) noexcept {
            auto& into = *static_cast<Description*>(ctx);
            ++into.done;
            into.failure = Failure::copy(error);
            if (result == nullptr) return;
            into.schema = text(result->settings_schema);
            into.describe = text(result->describe);
          }};
      begun(*d, [&](const sf_error_sink* err) {
        return provider->vtbl->describe(provider, done, nullptr, err);
      });
    });
    wait([&] { return d->done > 0; });
    return *d;
  }

  sf_status create(Context* context, const std::string& settings, Failure& failure) {
    sf_status status = SF_OK;
    call([&] {
      sf_create_request request{};
      request.struct_size = sizeof request;
      request.context = context;
      request.lane = lane;
      request.settings = str(settings);
      request.idle_timeout_ms = SF_NONE;
      const sf_error_sink err = sink(failure);
      status = provider->vtbl->create(provider, &request, &sandbox, &err);
    });
    return status;
  }

  struct Started {
    int done = 0;
    int identities = 0;
    Failure failure;
    std::uint32_t outcome = 0;     // SF_OUTCOME_*
    std::uint32_t provenance = 0;  // SF_PROVENANCE_*
    std::string sandbox_id;
    std::string working_directory;
    std::string template_pending_id;
    std::string identity;  // what on_identity said
    bool late_identity = false;
  };
  Started start(const Pairs& env = {}) {
    const auto s = begin_start(env);
    wait([&] { return s->done > 0; });
    return *s;
  }
  // Without waiting for its end, for starts that need the time to be moved.
  std::shared_ptr<Started> begin_start(const Pairs& env = {}, const std::string& document = {}) {
    const auto s = keep<Started>();
    call([&] {
      std::vector<sf_env_entry> entries;
      for (const auto& [name, value] : env)
        entries.push_back({bytes(name), bytes(value)});
      sf_start_request request{};
      request.struct_size = sizeof request;
      request.env = entries.data();
      request.env_count = entries.size();
      request.flags = env.empty() ? 0 : SF_START_ENV_GIVEN;
      if (!document.empty()) request.template_document = str(document);
      const sf_start_events events{
          sizeof events, s.get(),
          [](void* ctx, sf_str id) noexcept {
            auto& into = *static_cast<Started*>(ctx);
            ++into.identities;
            into.identity = text(id);
            into.late_identity = into.late_identity || into.done > 0;
          },
          [](void* ctx, const sf_error* error, const sf_start_result* result) noexcept {
            auto& into = *static_cast<Started*>(ctx);
            ++into.done;
            into.failure = Failure::copy(error);
            if (result == nullptr) return;
            into.outcome = result->outcome;
            into.provenance = result->provenance;
            into.sandbox_id = text(result->sandbox_id);
            into.working_directory = text(result->working_directory);
            into.template_pending_id = text(result->template_pending_id);
          }};
      begun(*s, [&](const sf_error_sink* err) {
        return sandbox->vtbl->start(sandbox, &request, &events, nullptr, err);
      });
    });
    return s;
  }

  sf_status spawn(CommandLine& line, Running& running, Failure& failure) {
    sf_status status = SF_OK;
    call([&] {
      const sf_command command = line.view();
      const sf_stream_events io = running.events();
      const sf_process_events events = running.process_events();
      const sf_error_sink err = sink(failure);
      sf_process* process = nullptr;
      status = sandbox->vtbl->spawn(sandbox, &command, &io, &events, &process, &err);
      if (status == SF_OK) running.took(process);
    });
    return status;
  }

  // stop, destroy: any function of the sandbox's table that ends in a plain completion.
  template <class Member>
  Result run(Member member) {
    const auto result = begin(member);
    wait([&] { return result->done > 0; });
    return *result;
  }
  template <class Member>
  std::shared_ptr<Result> begin(Member member) {
    const auto result = keep<Result>();
    call([&] {
      begun(*result, [&](const sf_error_sink* err) {
        return (sandbox->vtbl->*member)(sandbox, completion(*result), nullptr, err);
      });
    });
    return result;
  }

  void release() {
    call([&] {
      if (sandbox != nullptr) sandbox->vtbl->release(sandbox);
      if (provider != nullptr) provider->vtbl->release(provider);
      sandbox = nullptr;
      provider = nullptr;
    });
    host.loop.drain();
  }

 private:
  // Where a plugin tells how something ended, which it may do late: kept as long as the driver.
  template <class T>
  std::shared_ptr<T> keep() {
    const auto kept = std::make_shared<T>();
    kept_.push_back(kept);
    return kept;
  }
  // A call that did not begin an operation has ended it.
  template <class T, class Call>
  static void begun(T& into, Call call) {
    Failure failure;
    const sf_error_sink err = sink(failure);
    const sf_status status = call(&err);
    if (status == SF_OK) return;
    into.failure = failure ? failure : Failure(status, "refused without a reason");
    ++into.done;
  }

  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace sandforge::testing
