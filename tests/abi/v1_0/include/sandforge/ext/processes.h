/* Extension of a sandbox: processes that outlive a connection. */
#ifndef SANDFORGE_EXT_PROCESSES_H
#define SANDFORGE_EXT_PROCESSES_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_PROCESSES "sandforge.processes/1"

/* Offsets in each output stream, in bytes from its beginning. Combined output and a tty use out.
 * FROZEN */
typedef struct sf_cursor {
  uint64_t out;
  uint64_t err;
} sf_cursor;

typedef struct sf_process_info { /* APPENDABLE */
  size_t struct_size;
  sf_str id;
  int64_t pid;      /* 0: not known */
  sf_bytes command; /* shell text, or argv joined and quoted for reading */
  sf_str tag;
  uint32_t running;    /* 1 or 0 */
  uint32_t flags;      /* SF_PROCESS_* */
  const sf_exit* exit; /* null while it runs */
  sf_cursor first;     /* oldest output still kept */
  sf_cursor next;      /* where the next output goes */
} sf_process_info;

#define SF_PROCESS_DETACHED 1u
#define SF_PROCESS_STRAY 2u /* a child that its command left behind */

typedef struct sf_process_list_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error, const sf_process_info* first, size_t count,
               size_t stride) SF_NOEXCEPT; /* [callback] */
} sf_process_list_completion;

typedef struct sf_processes_ext { /* APPENDABLE */
  size_t struct_size;
  /* What runs and what ended but was not released. Starts nothing. [lane] */
  sf_status (*list)(sf_sandbox* self, sf_process_list_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* The kept output from a cursor on, then what follows. A cursor that is no longer kept starts at
   * the oldest byte; stream end counts what was skipped as dropped. SF_NOT_FOUND: no such process.
   * [lane] */
  sf_status (*attach)(sf_sandbox* self, sf_str id, sf_cursor from, uint64_t window,
                      const sf_stream_events* io, const sf_process_events* events,
                      sf_process** process, const sf_error_sink* err) SF_NOEXCEPT;
  /* Signal to a process without attaching. [lane] */
  sf_status (*signal)(sf_sandbox* self, sf_str id, int32_t signal, uint32_t scope,
                      sf_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Forgets an ended process and its output. [lane] */
  sf_status (*forget)(sf_sandbox* self, sf_str id, sf_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
} sf_processes_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_PROCESSES_H */
