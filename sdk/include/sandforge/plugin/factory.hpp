// FactorySandbox: the class that an author derives a provider from.
#pragma once

#include "provider_parts.hpp"
#include "sandbox.hpp"

namespace sandforge::plugin {

// What a provider is opened with.
class Opening {
 public:
  Opening(Options given, Lane on) : options(std::move(given)), lane(std::move(on)) {}
  Options options;  // valid by the manifest's options schema, references resolved
  Lane lane;        // the provider's
  Host host() const noexcept { return {}; }
};

// What a provider tells about itself.
class Description {
 public:
  Description() {}
  SettingsSchema settings;
  std::vector<std::string> features;  // "spawn.stdin", "spawn.signal", …
  json::Object more;                  // the provider's own keys
};

// A provider as the host holds it, whatever the style of its author.
class FactoryBase : public detail::Object {
 public:
  Host host() const noexcept { return {}; }
  const Lane& lane() const noexcept { return lane_; }

  /*
   * An unstarted sandbox for one session, on the lane: no I/O, nothing that blocks. Settings may be
   * empty, and the context may hold ids only: such a sandbox is destroyed without a start.
   */
  virtual std::unique_ptr<SandboxBase> create(Context context, Settings settings) = 0;

  // For the layer.
  struct Face : sf_provider {
    FactoryBase* factory;
  };
  static FactoryBase& of(sf_provider* p) noexcept { return *static_cast<Face*>(p)->factory; }
  sf_provider* attach(Lane lane) {
    lane_ = std::move(lane);
    face_.vtbl = &table();
    face_.factory = this;
    return &face_;
  }
  virtual const sf_provider_vtbl& table() const noexcept = 0;

 private:
  Face face_{};
};

namespace detail {

template <class Interface>
class ProviderPart : public PartRef<Interface> {
 public:
  ProviderPart(sf_provider* self, Part which)
      : PartRef<Interface>(FactoryBase::of(self), which, "this provider lacks the capability") {}
};

}  // namespace detail
}  // namespace sandforge::plugin

#include "impl/provider_tables.hpp"

namespace sandforge::plugin {

/*
 * The one object that says where sessions run. A subclass has a public constant with its name in
 * the manifest, and a constructor that takes the options or nothing:
 *
 *   class MyFactory : public FactorySandbox {
 *    public:
 *     static constexpr const char* provider = "my-cloud";
 *     explicit MyFactory(const Opening& opening);
 *     SettingsSchema settings() const override;
 *     std::unique_ptr<SandboxBase> create(Context context, Settings settings) override;
 *   };
 *   SANDFORGE_PLUGIN(MyFactory)
 */
template <class Style>
class BasicFactorySandbox : public FactoryBase {
 public:
  template <class T>
  using Result = typename Style::template Result<T>;

  // The settings that a user can tune per project; nothing by default. Its defaults are the
  // effective ones: fold the options in.
  virtual SettingsSchema settings() const { return SettingsSchema(); }
  // The finer capabilities of commands and files; abi.h, sf_describe_result, lists the names. What
  // is not named is refused by the host, never ignored.
  virtual std::vector<std::string> features() const { return {}; }
  // Override this one when the answer needs a look around.
  virtual Result<Description> describe(StopToken) {
    Description description;
    description.settings = settings();
    description.features = features();
    return Style::ready(std::move(description));
  }

  virtual BasicTemplates<Style>* templates() { return nullptr; }
  virtual BasicBuilds<Style>* builds() { return nullptr; }
  virtual BasicDirectory<Style>* directory() { return nullptr; }
  virtual BasicHealth<Style>* health() { return nullptr; }

  void* part(Part which) final {
    switch (which) {
      case Part::templates:
        return templates();
      case Part::builds:
        return builds();
      case Part::directory:
        return directory();
      case Part::health:
        return health();
      default:
        return nullptr;
    }
  }

  const sf_provider_vtbl& table() const noexcept final {
    static constexpr sf_provider_vtbl functions = {sizeof(sf_provider_vtbl), do_describe, do_create,
                                                   do_extension, do_release};
    return functions;
  }

 private:
  using Me = detail::Ref<BasicFactorySandbox>;
  static Me me(sf_provider* self) { return Me(static_cast<BasicFactorySandbox&>(of(self))); }

  static sf_status do_describe(sf_provider* self, sf_describe_completion done, sf_op** op,
                               const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      detail::operate<Style, Description>(
          of(self).lane(), op,
          [factory = me(self)](StopToken stop) { return factory->describe(stop); },
          [done](const sf_error* e, Description* d) {
            if (e != nullptr) return done.done(done.ctx, e, nullptr);
            const std::string schema = d->settings.text();
            json::Object keys = d->more;
            json::Array features;
            for (const std::string& feature : d->features)
              features.emplace_back(feature);
            keys.set("features", std::move(features));
            const std::string text = json::write(json::Value(std::move(keys)));
            const sf_describe_result raw{sizeof raw, to_str(schema), to_str(text)};
            done.done(done.ctx, nullptr, &raw);
          });
    });
  }
  static sf_status do_create(sf_provider* self, const sf_create_request* request,
                             sf_sandbox** sandbox, const sf_error_sink* err) noexcept {
    return detail::fence(err, [&] {
      FactoryBase& factory = of(self);
      const auto r = detail::read_appendable(request);
      const Lane lane(r.lane);
      std::unique_ptr<SandboxBase> made =
          factory.create(Context::of_create(*request, lane), Settings::parse(view(r.settings)));
      if (!made) throw Error(Code::internal, "create made no sandbox");
      *sandbox = made->attach(lane, detail::Ref<detail::Object>(factory));
      static_cast<void>(made.release());  // the host owns it now, by its reference
    });
  }
  static const void* do_extension(sf_provider* self, sf_str id) noexcept {
    const void* found = nullptr;
    detail::fence(nullptr, [&] { found = me(self)->find_extension(view(id)); });
    return found;
  }
  const void* find_extension(std::string_view id) {
    if (id == SF_EXT_TEMPLATE && templates() != nullptr) return &detail::template_table<Style>();
    if (id == SF_EXT_BUILDS && builds() != nullptr) return detail::builds_table<Style>(*builds());
    if (id == SF_EXT_DIRECTORY && directory() != nullptr)
      return &detail::directory_table<Style>(*directory());
    if (id == SF_EXT_HEALTH && health() != nullptr) return &detail::health_table<Style>();
    return nullptr;
  }
  static void do_release(sf_provider* self) noexcept { of(self).drop(); }
};

// Straight-line code that may block.
using FactorySandbox = BasicFactorySandbox<Blocking>;

}  // namespace sandforge::plugin
