/* Extension of a sandbox: how long it lives without activity. */
#ifndef SANDFORGE_EXT_LIFETIME_H
#define SANDFORGE_EXT_LIFETIME_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_LIFETIME "sandforge.lifetime/1"

typedef struct sf_lifetime_completion { /* FROZEN */
  void* ctx;
  /* ttl_ms: time left; SF_NONE: no limit. [callback] */
  void (*done)(void* ctx, const sf_error* error, uint64_t ttl_ms) SF_NOEXCEPT;
} sf_lifetime_completion;

typedef struct sf_lifetime_ext { /* APPENDABLE */
  size_t struct_size;
  /* [lane] */
  sf_status (*get)(sf_sandbox* self, sf_lifetime_completion done, sf_op** op,
                   const sf_error_sink* err) SF_NOEXCEPT;
  /* Time to live from now; SF_NONE: no limit. [lane] */
  sf_status (*set)(sf_sandbox* self, uint64_t ttl_ms, sf_completion done, sf_op** op,
                   const sf_error_sink* err) SF_NOEXCEPT;
  /* Activity: the idle time starts again. [lane] */
  sf_status (*keep_alive)(sf_sandbox* self, sf_completion done, sf_op** op,
                          const sf_error_sink* err) SF_NOEXCEPT;
  /* Freezes memory and processes. May be null. [lane] */
  sf_status (*pause)(sf_sandbox* self, sf_completion done, sf_op** op,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /* Goes on where pause left off. Null exactly when pause is. [lane] */
  sf_status (*resume)(sf_sandbox* self, sf_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
} sf_lifetime_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_LIFETIME_H */
