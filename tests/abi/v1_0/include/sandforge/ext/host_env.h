/* Host service: the environment variables that the manifest names. */
#ifndef SANDFORGE_EXT_HOST_ENV_H
#define SANDFORGE_EXT_HOST_ENV_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_ENV "sandforge.host.env/1"

typedef struct sf_env_service { /* APPENDABLE */
  size_t struct_size;
  /* Appends the value. SF_NOT_FOUND: not set. SF_FORBIDDEN: the manifest does not name it. [any] */
  sf_status (*get)(sf_host* host, sf_str name, const sf_text_sink* value) SF_NOEXCEPT;
} sf_env_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_ENV_H */
