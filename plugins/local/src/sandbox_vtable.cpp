#include "sandbox_object.hpp"
#include "sandforge/guest_link/files.hpp"
#include "sandforge/guest_link/processes.hpp"
#include "sandforge/support/utf8.hpp"
#include "snapshots.hpp"

namespace sandforge::local {
namespace {

GuestOwner& owner_of(sf_sandbox* self) {
  return SandboxObject::of(self);
}

}  // namespace

void NamesListener::on_environment(const guest::EnvReply& reply) {
  std::vector<std::string> names;
  for (const auto& entry : reply.entries)
    if (is_valid_utf8(entry.name)) names.push_back(entry.name);
  done_(names);
}

void NamesListener::on_error(const guest::ErrorInfo& error) {
  failed_(from_guest(error));
}

void NamesListener::on_lost(bool may_have_started) {
  failed_(guest_lost(may_have_started));
}

const sf_sandbox_vtbl SandboxObject::kSandbox = {
    sizeof(sf_sandbox_vtbl),
    [](sf_sandbox* self, const sf_start_request* request, const sf_start_events* events, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        auto cancelled = of(self).start(*request, *events);
        if (op != nullptr) *op = flag_op(std::move(cancelled));
        return sf_status{SF_OK};
      });
    },
    [](sf_sandbox* self, sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
      return start_op(op, err, [&] { of(self).stop(done); });
    },
    [](sf_sandbox* self, sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
      return start_op(op, err, [&] { of(self).destroy(done); });
    },
    [](sf_sandbox* self, sf_info_completion done, sf_op** op, const sf_error_sink* err) noexcept {
      return start_op(op, err, [&] { of(self).info(done); });
    },
    [](sf_sandbox* self, sf_text_completion done, sf_op** op, const sf_error_sink* err) noexcept {
      return start_op(op, err, [&] { of(self).instructions(done); });
    },
    [](sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
       const sf_process_events* events, sf_process** process, const sf_error_sink* err) noexcept {
      return fenced(err, [&] { return spawn(of(self), *command, *io, *events, process, err); });
    },
    [](sf_sandbox*, sf_str id) noexcept -> const void* {
      if (view(id) == SF_EXT_PROCESSES) return processes_extension<owner_of>();
      if (view(id) == SF_EXT_PTY) return pty_extension();
      if (view(id) == SF_EXT_FILES) return files_extension<owner_of>();
      if (view(id) == SF_EXT_SNAPSHOT) return snapshot_extension();
      return nullptr;
    },
    [](sf_sandbox* self) noexcept { of(self).release(); },
};

}  // namespace sandforge::local
