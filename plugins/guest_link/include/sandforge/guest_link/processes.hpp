// The processes extension: what runs in a session, also when another host started it.
#pragma once

#include "sandforge/ext/processes.h"
#include "sandforge/guest_link/guest_owner.hpp"

namespace sandforge::guest_link {

void list_processes(GuestOwner& sandbox, sf_process_list_completion done);
sf_status attach_process(GuestOwner& sandbox, sf_str id, sf_cursor from, std::uint64_t window,
                         const sf_stream_events& io, const sf_process_events& events,
                         sf_process** process, const sf_error_sink* err);
void signal_process(GuestOwner& sandbox, sf_str id, std::int32_t number, bool tree,
                    sf_completion done);
void forget_process(GuestOwner& sandbox, sf_str id, sf_completion done);

template <OwnerOf of>
const sf_processes_ext* processes_extension() noexcept {
  static const sf_processes_ext ext = {
      sizeof(sf_processes_ext),
      [](sf_sandbox* self, sf_process_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return start_op(op, err, [&] { list_processes(of(self), done); });
      },
      [](sf_sandbox* self, sf_str id, sf_cursor from, uint64_t window, const sf_stream_events* io,
         const sf_process_events* events, sf_process** process, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          return attach_process(of(self), id, from, window, *io, *events, process, err);
        });
      },
      [](sf_sandbox* self, sf_str id, int32_t number, uint32_t scope, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return start_op(
            op, err, [&] { signal_process(of(self), id, number, scope == SF_SIGNAL_TREE, done); });
      },
      [](sf_sandbox* self, sf_str id, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return start_op(op, err, [&] { forget_process(of(self), id, done); });
      },
  };
  return &ext;
}

}  // namespace sandforge::guest_link
