// The session that a test gives to a plugin.
#pragma once

#include "loop.hpp"

namespace sandforge::testing {

// Values that the test puts in; an empty one is absent. A repository has clone_url and token, or
// each of repositories has them. It must outlive the sandbox that has it: refs is 1 again when
// nobody else holds it.
class Context : public sf_context {
 public:
  struct Repository {
    std::string clone_url;
    std::string token;
  };
  std::string session_id = "session-1";
  std::string sandbox_id;
  std::string working_directory;
  std::string repo_full_name;
  std::string clone_url;
  std::string token;
  std::string head;
  std::string setup_command;  // JSON, as the next two
  std::string repos;          // [{"setupCommand": …}]
  std::string workspace_setup_command;
  std::vector<Repository> repositories;  // the list form, with what repos says of each
  bool continues_on_failure = false;
  Failure head_failure;  // of every head that is asked for
  bool caller_chose_id = false;
  std::atomic<int> refs{1};

  Context() {
    static constexpr sf_context_vtbl functions = {
        sizeof(sf_context_vtbl),
        [](sf_context* c) noexcept { ++of(c).refs; },
        [](sf_context* c) noexcept { --of(c).refs; },
        [](sf_context* c) noexcept -> const sf_context_fields* { return of(c).fill(); },
        [](sf_context* c, sf_lane* lane, std::uint32_t index, sf_access_completion done, sf_op** op,
           const sf_error_sink* err) noexcept {
          if (index >= of(c).count()) return refuse(err, SF_NOT_FOUND, "no repository");
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c, index] {
            const Repository one = of(c).repositories.empty()
                                       ? Repository{of(c).clone_url, of(c).token}
                                       : of(c).repositories[index];
            const sf_repository_access access{sizeof access, str(one.clone_url), str("bearer"),
                                              str(one.token), str("git")};
            done.done(done.ctx, nullptr, &access);
          });
          return sf_status{SF_OK};
        },
        [](sf_context* c, sf_lane* lane, sf_str, sf_str, sf_text_completion done, sf_op** op,
           const sf_error_sink*) noexcept {
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c] {
            if (of(c).head_failure) {
              const sf_error why = of(c).head_failure.view();
              return done.done(done.ctx, &why, {nullptr, 0});
            }
            const bool none = of(c).head.empty();
            done.done(done.ctx, nullptr, none ? sf_str{nullptr, 0} : str(of(c).head));
          });
          return sf_status{SF_OK};
        }};
    vtbl = &functions;
  }

 private:
  static Context& of(sf_context* c) { return *static_cast<Context*>(c); }
  std::uint32_t count() const {
    if (!repositories.empty()) return static_cast<std::uint32_t>(repositories.size());
    return clone_url.empty() ? 0 : 1;
  }
  static sf_str maybe(const std::string& v) { return v.empty() ? sf_str{nullptr, 0} : str(v); }
  const sf_context_fields* fill() {
    fields_ = {};
    fields_.struct_size = sizeof fields_;
    fields_.session_id = maybe(session_id);
    fields_.sandbox_id = maybe(sandbox_id);
    fields_.working_directory = maybe(working_directory);
    fields_.repo_full_name = maybe(repo_full_name);
    fields_.setup_command = maybe(setup_command);
    fields_.workspace_setup_command = maybe(workspace_setup_command);
    fields_.repos = maybe(repos);
    fields_.repo_count = count();
    fields_.flags = SF_CONTEXT_SESSION | (count() == 0 ? 0 : SF_CONTEXT_HAS_REPOSITORY) |
                    (repositories.empty() ? 0 : SF_CONTEXT_LIST_FORM) |
                    (continues_on_failure ? SF_CONTEXT_CONTINUE_ON_FAILURE : 0) |
                    (head.empty() && !head_failure ? 0 : SF_CONTEXT_HAS_RESOLVE_HEAD) |
                    (caller_chose_id ? SF_CONTEXT_CALLER_CHOSE_ID : 0);
    return &fields_;
  }
  sf_context_fields fields_{};
};

}  // namespace sandforge::testing
