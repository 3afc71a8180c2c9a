// What the host knows about the session that a call is about.
#pragma once

#include <vector>

#include "async.hpp"

namespace sandforge::plugin {

// A repository and a short-lived credential for it. The token is secret.
class RepositoryAccess {
 public:
  RepositoryAccess() {}
  std::string clone_url;
  std::string scheme;  // "bearer", or empty: no authorization
  std::string token;
  std::string username;
};

/*
 * The session, and what a sandbox is made for. Cheap to copy; thread-safe. Empty when the host gave
 * no context: then every text is absent.
 */
class Context {
 public:
  Context() = default;
  // Borrowed by nobody: takes a reference of its own.
  Context(sf_context* raw, Lane lane) : raw_(raw), lane_(std::move(lane)) {
    if (raw_ == nullptr) return;
    raw_->vtbl->retain(raw_);
    fields_ = detail::read_appendable(raw_->vtbl->fields(raw_));
  }
  Context(const Context& other) : Context(other.raw_, other.lane_) { extras_ = other.extras_; }
  Context(Context&& other) noexcept
      : raw_(std::exchange(other.raw_, nullptr)),
        lane_(std::move(other.lane_)),
        fields_(other.fields_),
        extras_(std::move(other.extras_)) {}
  Context& operator=(Context other) noexcept {
    std::swap(raw_, other.raw_);
    std::swap(lane_, other.lane_);
    std::swap(fields_, other.fields_);
    std::swap(extras_, other.extras_);
    return *this;
  }
  ~Context() {
    if (raw_ != nullptr) raw_->vtbl->release(raw_);
  }

  sf_context* get() const noexcept { return raw_; }
  // The lane of the object that the call is about.
  const Lane& lane() const noexcept { return lane_; }

  using Text = std::optional<std::string>;
  Text session_id() const { return copy_optional(fields_.session_id); }
  // The provider's own id, kept from an earlier start.
  Text sandbox_id() const { return copy_optional(fields_.sandbox_id); }
  Text factory_id() const { return copy_optional(fields_.factory_id); }
  Text factory_name() const { return copy_optional(fields_.factory_name); }
  Text repo_full_name() const { return copy_optional(fields_.repo_full_name); }
  // JSON: a string or an array of strings.
  Text setup_command() const { return copy_optional(fields_.setup_command); }
  Text workspace_setup_command() const { return copy_optional(fields_.workspace_setup_command); }
  // JSON: [{"setupCommand": string or array}].
  Text repos() const { return copy_optional(fields_.repos); }
  std::uint32_t repo_count() const noexcept { return fields_.repo_count; }
  bool has_repository() const noexcept { return flag(SF_CONTEXT_HAS_REPOSITORY); }
  bool is_list_form() const noexcept { return flag(SF_CONTEXT_LIST_FORM); }
  bool continues_on_failure() const noexcept { return flag(SF_CONTEXT_CONTINUE_ON_FAILURE); }
  bool has_resolve_head() const noexcept { return flag(SF_CONTEXT_HAS_RESOLVE_HEAD); }
  bool caller_chose_id() const noexcept { return flag(SF_CONTEXT_CALLER_CHOSE_ID); }
  bool is_session() const noexcept { return flag(SF_CONTEXT_SESSION); }

  // Of the create request where it has one, else of the session.
  Text working_directory() const {
    return extras_.working_directory ? extras_.working_directory
                                     : copy_optional(fields_.working_directory);
  }
  // Only in create. Absent checkpoint name: the session id, where the caller chose it.
  const Text& checkpoint_name() const noexcept { return extras_.checkpoint_name; }
  const Text& seed_checkpoint_name() const noexcept { return extras_.seed_checkpoint_name; }
  std::optional<std::chrono::milliseconds> idle_timeout() const noexcept {
    return extras_.idle_timeout;
  }

  // Mints access to a repository, now: ask late. Code::not_found when there is none.
  Async<RepositoryAccess> repository_access(std::uint32_t index = 0) const {
    return {lane_, [me = *this, index](auto* pending, sf_op** op, const sf_error_sink* err) {
              if (me.raw_ == nullptr) return no_context(err);
              const sf_access_completion done{
                  pending,
                  [](void* ctx, const sf_error* error, const sf_repository_access* raw) noexcept {
                    auto& p = *static_cast<detail::Pending<RepositoryAccess>*>(ctx);
                    if (error != nullptr) return p.fail(*error);
                    p.succeed_with([&] { return access_of(*raw); });
                  }};
              return me.raw_->vtbl->repository_access(me.raw_, me.lane_.get(), index, done, op,
                                                      err);
            }};
  }

  // The commit that a template pins; absent: the provider resolves it by itself.
  Async<std::optional<std::string>> resolve_head(std::string clone_url, std::string token) const {
    return {lane_, [me = *this, clone_url = std::move(clone_url), token = std::move(token)](
                       auto* pending, sf_op** op, const sf_error_sink* err) {
              if (me.raw_ == nullptr) return no_context(err);
              const sf_text_completion done{
                  pending, [](void* ctx, const sf_error* error, sf_str text) noexcept {
                    auto& p = *static_cast<detail::Pending<std::optional<std::string>>*>(ctx);
                    if (error != nullptr) return p.fail(*error);
                    p.succeed_with([&] { return copy_optional(text); });
                  }};
              return me.raw_->vtbl->resolve_head(me.raw_, me.lane_.get(), to_str(clone_url),
                                                 to_str(token), done, op, err);
            }};
  }

  // What the create request adds to the session.
  static Context of_create(const sf_create_request& raw, const Lane& lane) {
    sf_create_request defaults{};
    defaults.idle_timeout_ms = SF_NONE;
    const auto request = detail::read_appendable(&raw, defaults);
    Context context(request.context, lane);
    context.extras_.working_directory = copy_optional(request.working_directory);
    context.extras_.checkpoint_name = copy_optional(request.checkpoint_name);
    context.extras_.seed_checkpoint_name = copy_optional(request.seed_checkpoint_name);
    if (request.idle_timeout_ms != SF_NONE) {
      context.extras_.idle_timeout =
          std::chrono::milliseconds(static_cast<std::int64_t>(request.idle_timeout_ms));
    }
    return context;
  }

 private:
  class Extras {
   public:
    Text working_directory;
    Text checkpoint_name;
    Text seed_checkpoint_name;
    std::optional<std::chrono::milliseconds> idle_timeout;
  };

  bool flag(std::uint32_t bit) const noexcept { return (fields_.flags & bit) != 0; }
  static sf_status no_context(const sf_error_sink* err) {
    const sf_error e = detail::plain_error(SF_NOT_FOUND, "the call has no session");
    err->report(err->ctx, &e);
    return SF_NOT_FOUND;
  }
  static RepositoryAccess access_of(const sf_repository_access& raw) {
    const auto r = detail::read_appendable(&raw);
    RepositoryAccess access;
    access.clone_url = copy(r.clone_url);
    access.scheme = copy(r.scheme);
    access.token = copy(r.token);
    access.username = copy(r.username);
    return access;
  }

  sf_context* raw_ = nullptr;
  Lane lane_;
  sf_context_fields fields_{};
  Extras extras_;
};

}  // namespace sandforge::plugin
