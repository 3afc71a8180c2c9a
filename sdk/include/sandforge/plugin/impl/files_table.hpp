// The table of functions behind the files of a sandbox.
#pragma once

namespace sandforge::plugin::detail {

inline void tell_files(const sf_file_list_completion& done, const sf_error* e,
                       const FileInfo* first, std::size_t count) {
  std::vector<sf_file_info> raw;
  for (std::size_t i = 0; e == nullptr && i < count; ++i) {
    const FileInfo& f = first[i];
    raw.push_back({sizeof(sf_file_info), to_bytes(f.path), static_cast<std::uint32_t>(f.kind),
                   f.mode, f.size, f.modified_at, maybe_bytes(f.link_target)});
  }
  done.done(done.ctx, e, raw.data(), raw.size(), sizeof(sf_file_info), 0);
}

template <class Style>
struct FilesTable {
  using Its = SandboxPart<BasicFiles<Style>>;

  static sf_status stat(sf_sandbox* self, sf_bytes path, sf_file_list_completion done, sf_op** op,
                        const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      operate<Style, FileInfo>(
          part.lane(), op,
          [part, path = copy(path)](StopToken stop) { return part->stat(path, stop); },
          [done](const sf_error* e, FileInfo* info) { tell_files(done, e, info, 1); });
    });
  }
  static sf_status list(sf_sandbox* self, sf_bytes path, std::uint32_t depth,
                        sf_file_list_completion done, sf_op** op,
                        const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      operate<Style, std::vector<FileInfo>>(
          part.lane(), op,
          [part, path = copy(path), depth](StopToken stop) {
            return part->list(path, depth, stop);
          },
          [done](const sf_error* e, std::vector<FileInfo>* all) {
            tell_files(done, e, e == nullptr ? all->data() : nullptr,
                       e == nullptr ? all->size() : 0);
          });
    });
  }
  static sf_status read(sf_sandbox* self, sf_bytes path, std::uint64_t offset, std::uint64_t length,
                        std::uint64_t window, const sf_stream_events* events, sf_stream** stream,
                        const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      std::optional<std::uint64_t> limit;
      if (length != SF_NONE) limit = length;
      open_stream<Style>(part.lane(), window, events, stream,
                         [part, path = copy(path), offset, limit](Io& io) {
                           return part->read(path, offset, limit, io);
                         });
    });
  }
  static sf_status write(sf_sandbox* self, sf_bytes path, std::uint32_t mode, std::uint32_t flags,
                         const sf_stream_events* events, sf_stream** stream,
                         const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      const bool parents = (flags & SF_FILE_CREATE_PARENTS) != 0;
      open_stream<Style>(part.lane(), 0, events, stream,
                         [part, path = copy(path), mode, parents](Io& io) {
                           return part->write(path, mode, parents, io);
                         });
    });
  }
  static sf_status make_directory(sf_sandbox* self, sf_bytes path, std::uint32_t mode,
                                  std::uint32_t flags, sf_completion done, sf_op** op,
                                  const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      const bool parents = (flags & SF_FILE_CREATE_PARENTS) != 0;
      operate_void<Style>(part.lane(), done, op,
                          [part, path = copy(path), mode, parents](StopToken stop) {
                            return part->make_directory(path, mode, parents, stop);
                          });
    });
  }
  static sf_status move(sf_sandbox* self, sf_bytes from, sf_bytes to, std::uint32_t flags,
                        sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      const bool replace = (flags & SF_FILE_REPLACE) != 0;
      operate_void<Style>(part.lane(), done, op,
                          [part, from = copy(from), to = copy(to), replace](StopToken stop) {
                            return part->move(from, to, replace, stop);
                          });
    });
  }
  static sf_status remove(sf_sandbox* self, sf_bytes path, std::uint32_t flags, sf_completion done,
                          sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      const bool tree = (flags & SF_FILE_REMOVE_TREE) != 0;
      operate_void<Style>(part.lane(), done, op, [part, path = copy(path), tree](StopToken stop) {
        return part->remove(path, tree, stop);
      });
    });
  }
  static sf_status watch(sf_sandbox* self, sf_bytes path, std::uint32_t flags, std::uint64_t window,
                         const sf_stream_events* events, sf_stream** stream,
                         const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      const bool recursive = (flags & SF_WATCH_RECURSIVE) != 0;
      open_stream<Style>(part.lane(), window, events, stream,
                         [part, path = copy(path), recursive](Io& io) {
                           return part->watch(path, recursive, io);
                         });
    });
  }
  static sf_status archive_read(sf_sandbox* self, sf_bytes path, std::uint64_t window,
                                const sf_stream_events* events, sf_stream** stream,
                                const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      open_stream<Style>(part.lane(), window, events, stream, [part, path = copy(path)](Io& io) {
        return part->archive_read(path, io);
      });
    });
  }
  static sf_status archive_write(sf_sandbox* self, sf_bytes path, const sf_stream_events* events,
                                 sf_stream** stream, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::files);
      open_stream<Style>(part.lane(), 0, events, stream, [part, path = copy(path)](Io& io) {
        return part->archive_write(path, io);
      });
    });
  }

  static sf_files_ext make(bool watches, bool archives) {
    return {sizeof(sf_files_ext),
            stat,
            list,
            read,
            write,
            make_directory,
            move,
            remove,
            watches ? watch : nullptr,
            archives ? archive_read : nullptr,
            archives ? archive_write : nullptr};
  }
};

template <class Style>
const sf_files_ext* files_table(const BasicFiles<Style>& part) {
  static const sf_files_ext tables[2][2] = {
      {FilesTable<Style>::make(false, false), FilesTable<Style>::make(false, true)},
      {FilesTable<Style>::make(true, false), FilesTable<Style>::make(true, true)}};
  return &tables[part.can_watch() ? 1 : 0][part.can_archive() ? 1 : 0];
}

}  // namespace sandforge::plugin::detail
