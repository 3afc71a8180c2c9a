#include "files.hpp"
#include "process.hpp"
#include "processes.hpp"
#include "sandbox_object.hpp"
#include "sandforge/ext/processes.h"
#include "sandforge/ext/pty.h"
#include "sandforge/support/utf8.hpp"
#include "snapshots.hpp"

namespace sandforge::local {
namespace {

// Starts an operation that always ends in its done.
template <class Body>
sf_status start_op(sf_op** op, const sf_error_sink* err, Body&& body) noexcept {
  return fenced(err, [&] {
    body();
    if (op != nullptr) *op = no_op();
    return sf_status{SF_OK};
  });
}

const sf_pty_ext kPty = {
    sizeof(sf_pty_ext),
    [](sf_process* process, uint32_t cols, uint32_t rows, sf_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return start_op(op, err, [&] {
        auto& object = LocalProcess::of(process);
        if (!object.ended()) {
          object.link()->client().resize(object.channel(), to_side(cols), to_side(rows));
          object.link()->flush();
        }
        post(object.link()->lane().get(), [done] { complete(done, nullptr); });
      });
    },
};

}  // namespace

void ReplyListener::on_error(const guest::ErrorInfo& error) {
  const Failure failure = from_guest(error);
  done_(&failure);
}

void ReplyListener::on_lost(bool may_have_started) {
  const Failure failure = guest_lost(may_have_started);
  done_(&failure);
}

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
      return fenced(err, [&] { return of(self).spawn(*command, *io, *events, process, err); });
    },
    [](sf_sandbox*, sf_str id) noexcept -> const void* {
      if (view(id) == SF_EXT_PROCESSES) return processes_extension();
      if (view(id) == SF_EXT_PTY) return &kPty;
      if (view(id) == SF_EXT_FILES) return files_extension();
      if (view(id) == SF_EXT_SNAPSHOT) return snapshot_extension();
      return nullptr;
    },
    [](sf_sandbox* self) noexcept { of(self).release(); },
};

}  // namespace sandforge::local
