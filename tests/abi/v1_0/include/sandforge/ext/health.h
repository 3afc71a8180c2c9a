/* Extension of a provider: does its other end answer, and with these credentials? */
#ifndef SANDFORGE_EXT_HEALTH_H
#define SANDFORGE_EXT_HEALTH_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_HEALTH "sandforge.health/1"

typedef struct sf_health_ext { /* APPENDABLE */
  size_t struct_size;
  /* Done without an error: sandboxes could be started now. [lane] */
  sf_status (*check)(sf_provider* self, sf_completion done, sf_op** op,
                     const sf_error_sink* err) SF_NOEXCEPT;
} sf_health_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HEALTH_H */
