/* Extension of a provider: the template that a session boots from. */
#ifndef SANDFORGE_EXT_TEMPLATE_H
#define SANDFORGE_EXT_TEMPLATE_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_TEMPLATE "sandforge.template/1"

typedef struct sf_template_request { /* APPENDABLE */
  size_t struct_size;
  sf_context* context; /* repository access and heads are asked of it, late */
  sf_str settings;     /* JSON object, effective */
} sf_template_request;

typedef struct sf_template_result { /* APPENDABLE */
  size_t struct_size;
  sf_str document; /* canonical JSON; null ptr: the session has no template */
  sf_str identity; /* SHA-256 in hex over operations and effective resources */
  sf_str family;   /* may be empty */
  sf_str warnings; /* JSON array of strings; may be empty */
} sf_template_result;

typedef struct sf_template_completion { /* FROZEN */
  void* ctx;
  /* result is null when error is not. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_template_result* result) SF_NOEXCEPT;
} sf_template_completion;

typedef struct sf_template_ext { /* APPENDABLE */
  size_t struct_size;
  /* Computes the template of a session. Never called on a reattach or a recreate. [lane] */
  sf_status (*resolve)(sf_provider* self, const sf_template_request* request,
                       sf_template_completion done, sf_op** op,
                       const sf_error_sink* err) SF_NOEXCEPT;
} sf_template_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_TEMPLATE_H */
