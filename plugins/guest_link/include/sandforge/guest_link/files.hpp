// The files extension: what lies in a session's folder, asked of its guest.
#pragma once

#include <utility>

#include "sandforge/ext/files.h"
#include "sandforge/guest_link/guest_owner.hpp"

namespace sandforge::guest_link {

// A request about a path, with what SF_FILE_* flags say.
guest::FileRequest about_file(sf_bytes path, std::uint32_t flags = 0);
// stat and list.
sf_status operate_file(GuestOwner& sandbox, guest::FrameType operation,
                       const guest::FileRequest& request, sf_file_list_completion done, sf_op** op,
                       const sf_error_sink* err);
// make directory, move and remove.
sf_status operate_file(GuestOwner& sandbox, guest::FrameType operation,
                       const guest::FileRequest& request, sf_completion done, sf_op** op,
                       const sf_error_sink* err);
// read, write and watch.
sf_status stream_file(GuestOwner& sandbox, guest::FrameType operation, guest::FileRequest request,
                      std::uint64_t window, const sf_stream_events* events, sf_stream** out,
                      const sf_error_sink* err);

template <OwnerOf of>
const sf_files_ext* files_extension() noexcept {
  static const sf_files_ext ext = {
      sizeof(sf_files_ext),
      [](sf_sandbox* self, sf_bytes path, sf_file_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          return operate_file(of(self), guest::FrameType::file_stat, about_file(path), done, op,
                              err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t depth, sf_file_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(path);
          request.depth = depth;
          return operate_file(of(self), guest::FrameType::file_list, request, done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint64_t offset, uint64_t length, uint64_t window,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(path);
          request.offset = offset;
          request.length = length;
          return stream_file(of(self), guest::FrameType::file_read, std::move(request), window,
                             events, out, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(path, flags);
          request.mode = mode;
          return stream_file(of(self), guest::FrameType::file_write, std::move(request), 0, events,
                             out, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(path, flags);
          request.mode = mode;
          return operate_file(of(self), guest::FrameType::file_make_directory, request, done, op,
                              err);
        });
      },
      [](sf_sandbox* self, sf_bytes from, sf_bytes to, uint32_t flags, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(from, flags);
          request.target = std::string(view(to));
          return operate_file(of(self), guest::FrameType::file_move, request, done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t flags, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          return operate_file(of(self), guest::FrameType::file_remove, about_file(path, flags),
                              done, op, err);
        });
      },
      [](sf_sandbox* self, sf_bytes path, uint32_t flags, uint64_t window,
         const sf_stream_events* events, sf_stream** out, const sf_error_sink* err) noexcept {
        return fenced(err, [&] {
          guest::FileRequest request = about_file(path);
          request.recursive = (flags & SF_WATCH_RECURSIVE) != 0;
          return stream_file(of(self), guest::FrameType::file_watch, std::move(request), window,
                             events, out, err);
        });
      },
      nullptr,
      nullptr,
  };
  return &ext;
}

}  // namespace sandforge::guest_link
