/* Host service: time, so that tests can turn it by hand. */
#ifndef SANDFORGE_EXT_HOST_CLOCK_H
#define SANDFORGE_EXT_HOST_CLOCK_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_CLOCK "sandforge.host.clock/1"

typedef struct sf_clock_service { /* APPENDABLE */
  size_t struct_size;
  /* Unix time in nanoseconds. [any] */
  int64_t (*now)(sf_host* host) SF_NOEXCEPT;
  /* Nanoseconds from some fixed point, never backwards. [any] */
  uint64_t (*monotonic)(sf_host* host) SF_NOEXCEPT;
} sf_clock_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_CLOCK_H */
