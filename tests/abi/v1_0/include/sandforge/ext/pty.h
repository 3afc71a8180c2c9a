/* Extension of a sandbox: commands on a pseudo-terminal (sf_command.tty). */
#ifndef SANDFORGE_EXT_PTY_H
#define SANDFORGE_EXT_PTY_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_PTY "sandforge.pty/1"

typedef struct sf_pty_ext { /* APPENDABLE */
  size_t struct_size;
  /* New size of the terminal of a process that was spawned with a tty. [lane] */
  sf_status (*resize)(sf_process* process, uint32_t cols, uint32_t rows, sf_completion done,
                      sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
} sf_pty_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_PTY_H */
