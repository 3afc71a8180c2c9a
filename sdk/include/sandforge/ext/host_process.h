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
  /*
   * A group is what runs for one sandbox, known by a name that is the plugin's own: whoever has the
   * name can end it. Opens it, until end_group or the end of the host; of an open one nothing
   * changes. [any]
   */
  sf_status (*open_group)(sf_host* host, sf_str group, const sf_error_sink* err) SF_NOEXCEPT;
  /* As spawn, in a group. SF_CONFLICT when it is not open. [any] */
  sf_status (*spawn_in)(sf_host* host, sf_lane* lane, sf_str group, const sf_command* command,
                        const sf_stream_events* io, const sf_process_events* events,
                        sf_process** process, const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * Closes the group and ends what runs in it, also what its commands have left behind, whatever
   * became of its parent or session: SIGTERM, the grace, SIGKILL. done when nothing of it runs; a
   * group that is not open has ended already. [any]
   */
  sf_status (*end_group)(sf_host* host, sf_lane* lane, sf_str group, uint64_t grace_ms,
                         sf_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
} sf_process_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_PROCESS_H */
