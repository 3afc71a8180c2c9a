/* Extension of a provider: templates built ahead of a session. */
#ifndef SANDFORGE_EXT_BUILDS_H
#define SANDFORGE_EXT_BUILDS_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_BUILDS "sandforge.builds/1"

#define SF_BUILD_UNKNOWN 0u /* the provider cannot read it, such as after a restart of the host */
#define SF_BUILD_PENDING 1u
#define SF_BUILD_BUILDING 2u
#define SF_BUILD_READY 3u
#define SF_BUILD_FAILED 4u

typedef struct sf_build { /* APPENDABLE */
  size_t struct_size;
  uint32_t status; /* SF_BUILD_* */
  uint32_t reserved;
  sf_str build_id;
  sf_str template_id;      /* may be empty */
  int64_t started_at;      /* 0: not known */
  int64_t finished_at;     /* 0: not known, or not finished */
  sf_str error;            /* without credentials; may be empty */
  uint64_t retry_after_ms; /* SF_NONE: no hint */
} sf_build;

typedef struct sf_build_request { /* APPENDABLE */
  size_t struct_size;
  sf_context* context;
  sf_str settings; /* JSON object, effective */
  sf_str build_id; /* empty for start and list */
  const sf_env_entry*
      ephemeral_env; /* build-only values: secret, never stored, not part of identity */
  size_t ephemeral_env_count;
  /* Of start: canonical JSON of the template to build. Null ptr: that of the session of context.
   * Asked only of providers whose features name "builds.document". */
  sf_str template_document;
} sf_build_request;

typedef struct sf_build_completion { /* FROZEN */
  void* ctx;
  /* Builds, newest first: one for start and get. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_build* first, size_t count,
               size_t stride) SF_NOEXCEPT;
} sf_build_completion;

typedef struct sf_builds_ext { /* APPENDABLE */
  size_t struct_size;
  /* Begins the build of the session's template, or finds it. [lane] */
  sf_status (*start)(sf_provider* self, const sf_build_request* request, sf_build_completion done,
                     sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Reads one build. [lane] */
  sf_status (*get)(sf_provider* self, const sf_build_request* request, sf_build_completion done,
                   sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* The history. May be null. [lane] */
  sf_status (*list)(sf_provider* self, const sf_build_request* request, sf_build_completion done,
                    sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* The log from a cursor (0: its start), credentials removed, as a stream that ends with the
   * build. May be null. [lane] */
  sf_status (*logs)(sf_provider* self, const sf_build_request* request, uint64_t cursor,
                    uint64_t window, const sf_stream_events* events, sf_stream** stream,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* Ends a running build; what has ended already succeeds. May be null. [lane] */
  sf_status (*cancel)(sf_provider* self, const sf_build_request* request, sf_completion done,
                      sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
} sf_builds_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_BUILDS_H */
