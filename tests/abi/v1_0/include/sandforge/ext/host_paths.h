/* Host service: folders that the host gives to this plugin. */
#ifndef SANDFORGE_EXT_HOST_PATHS_H
#define SANDFORGE_EXT_HOST_PATHS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_PATHS "sandforge.host.paths/1"

/*
 * A plugin cannot find these by itself: it may be mapped from a sealed copy of its file, so the
 * dynamic loader does not know where it was installed, and it must not read HOME or TMPDIR.
 */
#define SF_PATH_PLUGIN 1u /* the folder of the plugin's file: helper programs lie beside it */
#define SF_PATH_DATA 2u   /* private to the plugin, kept */
#define SF_PATH_CACHE 3u  /* private to the plugin, may be emptied between runs */
#define SF_PATH_RUNTIME                                                    \
  4u /* for sockets: mode 0700, at most 60 bytes long, gone after a reboot \
      */

typedef struct sf_paths_service { /* APPENDABLE */
  size_t struct_size;
  /*
   * The absolute path of a folder that exists, or a null ptr when the host gives none of that kind.
   * Lives as long as the process. [any]
   */
  sf_bytes (*get)(sf_host* host, uint32_t kind) SF_NOEXCEPT;
} sf_paths_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_PATHS_H */
