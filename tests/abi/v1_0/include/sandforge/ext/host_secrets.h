/* Host service: secrets of the configuration, resolved late. */
#ifndef SANDFORGE_EXT_HOST_SECRETS_H
#define SANDFORGE_EXT_HOST_SECRETS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_SECRETS "sandforge.host.secrets/1"

typedef struct sf_secrets_service { /* APPENDABLE */
  size_t struct_size;
  /*
   * The value of a named secret, as the configuration grants it to this plugin. SF_NOT_FOUND: none.
   * done on the lane. [any]
   */
  sf_status (*get)(sf_host* host, sf_lane* lane, sf_context* scope, sf_str name,
                   sf_text_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
} sf_secrets_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_SECRETS_H */
