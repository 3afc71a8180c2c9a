// The session that a test gives to a plugin.
#pragma once

#include "loop.hpp"

namespace sandforge::testing {

// Values that the test puts in; an empty one is absent. A repository has clone_url and token. It
// must outlive the sandbox that has it: refs is 1 again when nobody else holds it.
class Context : public sf_context {
 public:
  std::string session_id = "session-1";
  std::string sandbox_id;
  std::string working_directory;
  std::string repo_full_name;
  std::string clone_url;
  std::string token;
  std::string head;
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
          if (of(c).clone_url.empty() || index > 0)
            return refuse(err, SF_NOT_FOUND, "no repository");
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c] {
            const sf_repository_access access{sizeof access, str(of(c).clone_url), str("bearer"),
                                              str(of(c).token), str("git")};
            done.done(done.ctx, nullptr, &access);
          });
          return sf_status{SF_OK};
        },
        [](sf_context* c, sf_lane* lane, sf_str, sf_str, sf_text_completion done, sf_op** op,
           const sf_error_sink*) noexcept {
          Op::give(op, nullptr);
          Lane::of(lane).post([done, c] {
            const bool none = of(c).head.empty();
            done.done(done.ctx, nullptr, none ? sf_str{nullptr, 0} : str(of(c).head));
          });
          return sf_status{SF_OK};
        }};
    vtbl = &functions;
  }

 private:
  static Context& of(sf_context* c) { return *static_cast<Context*>(c); }
  static sf_str maybe(const std::string& v) { return v.empty() ? sf_str{nullptr, 0} : str(v); }
  const sf_context_fields* fill() {
    fields_ = {};
    fields_.struct_size = sizeof fields_;
    fields_.session_id = maybe(session_id);
    fields_.sandbox_id = maybe(sandbox_id);
    fields_.working_directory = maybe(working_directory);
    fields_.repo_full_name = maybe(repo_full_name);
    fields_.repo_count = clone_url.empty() ? 0 : 1;
    fields_.flags = SF_CONTEXT_SESSION | (clone_url.empty() ? 0 : SF_CONTEXT_HAS_REPOSITORY) |
                    (head.empty() ? 0 : SF_CONTEXT_HAS_RESOLVE_HEAD) |
                    (caller_chose_id ? SF_CONTEXT_CALLER_CHOSE_ID : 0);
    return &fields_;
  }
  sf_context_fields fields_{};
};

}  // namespace sandforge::testing
