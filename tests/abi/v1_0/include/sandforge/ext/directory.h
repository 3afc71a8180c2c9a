/* Extension of a provider: find sandboxes without a session. */
#ifndef SANDFORGE_EXT_DIRECTORY_H
#define SANDFORGE_EXT_DIRECTORY_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_DIRECTORY "sandforge.directory/1"

typedef struct sf_directory_entry { /* APPENDABLE */
  size_t struct_size;
  sf_str sandbox_id;
  sf_str session_id; /* null ptr: it carries none */
  uint32_t state;    /* SF_STATE_* */
  uint32_t reserved;
  int64_t created_at;
  sf_str labels; /* JSON object of strings */
} sf_directory_entry;

typedef struct sf_directory_completion { /* FROZEN */
  void* ctx;
  /* next is the token of the next page, or empty. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_directory_entry* first, size_t count,
               size_t stride, sf_str next) SF_NOEXCEPT;
} sf_directory_completion;

typedef struct sf_directory_ext { /* APPENDABLE */
  size_t struct_size;
  /* Sandboxes that carry all the labels (JSON object of strings; empty: every one of this owner), a
   * page at a time. [lane] */
  sf_status (*find)(sf_provider* self, sf_str labels, sf_str page, uint32_t limit,
                    sf_directory_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Removes a sandbox by the provider's id. What is gone succeeds. [lane] */
  sf_status (*remove)(sf_provider* self, sf_str sandbox_id, sf_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
} sf_directory_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_DIRECTORY_H */
