/* Extension of a sandbox: its file system. */
#ifndef SANDFORGE_EXT_FILES_H
#define SANDFORGE_EXT_FILES_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_FILES "sandforge.files/1"

#define SF_FILE_OTHER 0u
#define SF_FILE_REGULAR 1u
#define SF_FILE_DIRECTORY 2u
#define SF_FILE_SYMLINK 3u

typedef struct sf_file_info { /* APPENDABLE */
  size_t struct_size;
  sf_bytes path;
  uint32_t kind; /* SF_FILE_* */
  uint32_t mode; /* permission bits */
  uint64_t size;
  int64_t modified_at;
  sf_bytes link_target; /* null ptr: no symlink */
} sf_file_info;

typedef struct sf_file_list_completion { /* FROZEN */
  void* ctx;
  /* More pieces follow while more is 1; the call with more 0 is the last. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_file_info* first, size_t count,
               size_t stride, uint32_t more) SF_NOEXCEPT;
} sf_file_list_completion;

#define SF_WATCH_RECURSIVE 1u
#define SF_FILE_CREATE_PARENTS 2u
#define SF_FILE_REMOVE_TREE 4u
#define SF_FILE_REPLACE 8u

typedef struct sf_files_ext { /* APPENDABLE */
  size_t struct_size;
  /* [lane] */
  sf_status (*stat)(sf_sandbox* self, sf_bytes path, sf_file_list_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* Entries of a directory, to a depth (1: its own). [lane] */
  sf_status (*list)(sf_sandbox* self, sf_bytes path, uint32_t depth, sf_file_list_completion done,
                    sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* length SF_NONE: to the end. [lane] */
  sf_status (*read)(sf_sandbox* self, sf_bytes path, uint64_t offset, uint64_t length,
                    uint64_t window, const sf_stream_events* events, sf_stream** stream,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* Replaces the file in one step once shutdown_write was called; a cancel leaves the old one. mode
   * 0: 0644, or the old file's. Flags: SF_FILE_CREATE_PARENTS. [lane] */
  sf_status (*write)(sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags,
                     const sf_stream_events* events, sf_stream** stream,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /* [lane] */
  sf_status (*make_directory)(sf_sandbox* self, sf_bytes path, uint32_t mode, uint32_t flags,
                              sf_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* [lane] */
  sf_status (*move)(sf_sandbox* self, sf_bytes from, sf_bytes to, uint32_t flags,
                    sf_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* [lane] */
  sf_status (*remove)(sf_sandbox* self, sf_bytes path, uint32_t flags, sf_completion done,
                      sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* A stream of text messages, each a JSON object {"event","path"}, until cancelled; the first has
   * the event "start": what changes from then on is told. May be null. [lane] */
  sf_status (*watch)(sf_sandbox* self, sf_bytes path, uint32_t flags, uint64_t window,
                     const sf_stream_events* events, sf_stream** stream,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /* A tar archive of a tree, out or in. May be null. [lane] */
  sf_status (*archive_read)(sf_sandbox* self, sf_bytes path, uint64_t window,
                            const sf_stream_events* events, sf_stream** stream,
                            const sf_error_sink* err) SF_NOEXCEPT;
  /* May be null. [lane] */
  sf_status (*archive_write)(sf_sandbox* self, sf_bytes path, const sf_stream_events* events,
                             sf_stream** stream, const sf_error_sink* err) SF_NOEXCEPT;
} sf_files_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_FILES_H */
