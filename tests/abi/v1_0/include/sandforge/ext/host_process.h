/* Host service: commands on the machine of the host. */
#ifndef SANDFORGE_EXT_HOST_PROCESS_H
#define SANDFORGE_EXT_HOST_PROCESS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_PROCESS "sandforge.host.process/1"

typedef struct sf_process_service { /* APPENDABLE */
  size_t struct_size;
  /*
   * Runs a command of the host. The environment is exactly command.env: nothing is inherited.
   * Events on the lane. The whole tree ends with the stream's cancel, at the timeout, or when the
   * host ends; with SF_COMMAND_DETACH it outlives the host, its output then goes nowhere. A host
   * that cannot do that refuses it as SF_UNSUPPORTED. cwd must be absolute; null ptr: "/". That
   * the command cannot run at all shows in done: a typed error, and no on_started. [any]
   */
  sf_status (*spawn)(sf_host* host, sf_lane* lane, const sf_command* command,
                     const sf_stream_events* io, const sf_process_events* events,
                     sf_process** process, const sf_error_sink* err) SF_NOEXCEPT;
} sf_process_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_PROCESS_H */
