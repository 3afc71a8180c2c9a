// A session's context in the form that plugins hold.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "plugin/plugin.hpp"
#include "sandforge/abi.h"
#include "sandforge/context.hpp"

namespace sandforge::plugin {

// Counted; made with one reference, which is the host's.
class HostContext : public sf_context {
 public:
  HostContext(Plugin& plugin, std::shared_ptr<const SessionContext> context);

  static void release(sf_context* self) noexcept;
  // What a scope means; null for a null scope.
  static std::shared_ptr<const SessionContext> session_of(sf_context* self) noexcept;

 private:
  static void retain(sf_context* self) noexcept;
  static const sf_context_fields* fields(sf_context* self) noexcept;
  static sf_status repository_access(sf_context* self, sf_lane* lane, uint32_t index,
                                     sf_access_completion done, sf_op** op,
                                     const sf_error_sink* err) noexcept;
  static sf_status resolve_head(sf_context* self, sf_lane* lane, sf_str clone_url, sf_str token,
                                sf_text_completion done, sf_op** op,
                                const sf_error_sink* err) noexcept;

  RepositoryAccessFn access_at(std::uint32_t index) const;

  Plugin& plugin_;
  const std::shared_ptr<const SessionContext> context_;
  std::string session_id_, sandbox_id_, setup_, workspace_setup_, repos_;
  sf_context_fields fields_{};
  std::atomic<std::uint32_t> references_{1};
};

}  // namespace sandforge::plugin
