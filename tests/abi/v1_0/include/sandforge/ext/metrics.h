/* Extension of a sandbox: what it uses now. */
#ifndef SANDFORGE_EXT_METRICS_H
#define SANDFORGE_EXT_METRICS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_METRICS "sandforge.metrics/1"

typedef struct sf_metrics { /* APPENDABLE; unknown numbers are SF_NONE */
  size_t struct_size;
  int64_t at;
  uint64_t cpu_time_ms;
  uint64_t cpu_millis;
  uint64_t memory_bytes;
  uint64_t memory_limit_bytes;
  uint64_t disk_bytes;
  uint64_t disk_limit_bytes;
  uint64_t network_in_bytes;
  uint64_t network_out_bytes;
  uint64_t process_count;
} sf_metrics;

typedef struct sf_metrics_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error,
               const sf_metrics* metrics) SF_NOEXCEPT; /* [callback] */
} sf_metrics_completion;

typedef struct sf_metrics_ext { /* APPENDABLE */
  size_t struct_size;
  /* [lane] */
  sf_status (*read)(sf_sandbox* self, sf_metrics_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
} sf_metrics_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_METRICS_H */
