/* Host service: lanes, timers, blocking work, and descriptors as streams. */
#ifndef SANDFORGE_EXT_HOST_EXECUTOR_H
#define SANDFORGE_EXT_HOST_EXECUTOR_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_EXECUTOR "sandforge.host.executor/1"

typedef struct sf_executor_service { /* APPENDABLE */
  size_t struct_size;
  /* A lane of its own, for a client object. Released by the caller. [any] */
  sf_status (*lane_create)(sf_host* host, sf_lane** lane, const sf_error_sink* err) SF_NOEXCEPT;
  /* done on the lane after delay_ms; with SF_CANCELLED when cancelled before. [any] */
  sf_status (*timer)(sf_host* host, sf_lane* lane, uint64_t delay_ms, sf_completion done,
                     sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Runs work(work_ctx) on a pool thread, then done on the lane. Work that has not begun when it is
   * cancelled does not run: done reports SF_CANCELLED. Work that has begun is not interrupted.
   * [any] */
  sf_status (*post_blocking)(sf_host* host, sf_lane* lane, void (*work)(void* ctx) SF_NOEXCEPT,
                             void* work_ctx, sf_completion done, sf_op** op,
                             const sf_error_sink* err) SF_NOEXCEPT;
  /* Takes over a connected socket, a pipe end or a pty and makes it a stream: on_data with channel
   * data, on_writable and done on the lane. The descriptor is closed by the host before done; on an
   * error it stays the caller's. May be null where descriptors do not exist. [any] */
  sf_status (*adopt_descriptor)(sf_host* host, sf_lane* lane, int32_t descriptor, uint64_t window,
                                const sf_stream_events* events, sf_stream** stream,
                                const sf_error_sink* err) SF_NOEXCEPT;
} sf_executor_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_EXECUTOR_H */
