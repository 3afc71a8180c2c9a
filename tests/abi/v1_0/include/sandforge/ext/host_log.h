/* Host service: structured log. */
#ifndef SANDFORGE_EXT_HOST_LOG_H
#define SANDFORGE_EXT_HOST_LOG_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_LOG "sandforge.host.log/1"

#define SF_LOG_DEBUG 1u
#define SF_LOG_INFO 2u
#define SF_LOG_WARN 3u
#define SF_LOG_ERROR 4u

/* The value is masked, also elsewhere in the record: of values of 16 KiB in all. */
#define SF_FIELD_SECRET 1u

typedef struct sf_log_field { /* APPENDABLE */
  size_t struct_size;
  sf_str name;
  sf_str value;
  uint32_t flags; /* SF_FIELD_* */
  uint32_t reserved;
} sf_log_field;

typedef struct sf_log_service { /* APPENDABLE */
  size_t struct_size;
  /* One record; the host adds time and the plugin's name. [any] */
  void (*write)(sf_host* host, uint32_t level, sf_str message, const sf_log_field* first,
                size_t count, size_t stride) SF_NOEXCEPT;
  /* The lowest level that is kept. [any] */
  uint32_t (*level)(sf_host* host) SF_NOEXCEPT;
} sf_log_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_LOG_H */
