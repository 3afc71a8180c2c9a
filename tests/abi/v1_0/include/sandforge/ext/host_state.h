/* Host service: small durable values of a plugin, per session or per provider. */
#ifndef SANDFORGE_EXT_HOST_STATE_H
#define SANDFORGE_EXT_HOST_STATE_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_STATE "sandforge.host.state/1"

#define SF_STATE_VALUE_MAX 65536u /* bytes of a value; keys have at most 200 bytes */

typedef struct sf_state_value_completion { /* FROZEN */
  void* ctx;
  /* A null ptr: no such key. [callback] */
  void (*done)(void* ctx, const sf_error* error, sf_bytes value) SF_NOEXCEPT;
} sf_state_value_completion;

/* scope is the session's context, or null for the provider's own values. */
typedef struct sf_state_service { /* APPENDABLE */
  size_t struct_size;
  /* done on the lane. [any] */
  sf_status (*get)(sf_host* host, sf_lane* lane, sf_context* scope, sf_str key,
                   sf_state_value_completion done, sf_op** op,
                   const sf_error_sink* err) SF_NOEXCEPT;
  /* Durable when done reports success. A null ptr in value removes the key. done on the lane. [any]
   */
  sf_status (*set)(sf_host* host, sf_lane* lane, sf_context* scope, sf_str key, sf_bytes value,
                   sf_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
} sf_state_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_STATE_H */
