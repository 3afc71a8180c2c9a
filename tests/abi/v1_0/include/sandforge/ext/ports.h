/* Extension of a sandbox: what listens inside it. */
#ifndef SANDFORGE_EXT_PORTS_H
#define SANDFORGE_EXT_PORTS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_PORTS "sandforge.ports/1"

typedef struct sf_ports_ext { /* APPENDABLE */
  size_t struct_size;
  /* A URL under which others reach the port; an absent text: there is none. [lane] */
  sf_status (*url)(sf_sandbox* self, uint32_t port, sf_text_completion done, sf_op** op,
                   const sf_error_sink* err) SF_NOEXCEPT;
  /* A connection to the port. May be null. [lane] */
  sf_status (*dial)(sf_sandbox* self, uint32_t port, uint64_t window,
                    const sf_stream_events* events, sf_stream** stream,
                    const sf_error_sink* err) SF_NOEXCEPT;
} sf_ports_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_PORTS_H */
