/* All headers of the boundary. */
#ifndef SANDFORGE_WIRE_RUNNER_ALL_HEADERS_H
#define SANDFORGE_WIRE_RUNNER_ALL_HEADERS_H

#include <sandforge/abi.h>
#include <sandforge/ext/builds.h>
#include <sandforge/ext/directory.h>
#include <sandforge/ext/files.h>
#include <sandforge/ext/health.h>
#include <sandforge/ext/host_clock.h>
#include <sandforge/ext/host_env.h>
#include <sandforge/ext/host_executor.h>
#include <sandforge/ext/host_http.h>
#include <sandforge/ext/host_log.h>
#include <sandforge/ext/host_paths.h>
#include <sandforge/ext/host_process.h>
#include <sandforge/ext/host_secrets.h>
#include <sandforge/ext/host_state.h>
#include <sandforge/ext/lifetime.h>
#include <sandforge/ext/metrics.h>
#include <sandforge/ext/ports.h>
#include <sandforge/ext/processes.h>
#include <sandforge/ext/pty.h>
#include <sandforge/ext/snapshot.h>
#include <sandforge/ext/template.h>

#endif
