/* Extension of a provider: find sandboxes without a session, and what else was left behind. */
#ifndef SANDFORGE_EXT_DIRECTORY_H
#define SANDFORGE_EXT_DIRECTORY_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_DIRECTORY "sandforge.directory/1"

/* This host made it, by what its state service keeps. Without it: another host did, or nobody can
 * tell. Hosts that share an account or an engine see each other's sandboxes. */
#define SF_DIRECTORY_OWN 1u

typedef struct sf_directory_entry { /* APPENDABLE */
  size_t struct_size;
  sf_str sandbox_id;
  sf_str session_id;  /* null ptr: it carries none */
  uint32_t state;     /* SF_STATE_* */
  uint32_t flags;     /* SF_DIRECTORY_* */
  int64_t created_at; /* 0: not known */
  sf_str labels;      /* JSON object of strings */
} sf_directory_entry;

typedef struct sf_directory_completion { /* FROZEN */
  void* ctx;
  /* next is the token of the next page, or empty. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_directory_entry* first, size_t count,
               size_t stride, sf_str next) SF_NOEXCEPT;
} sf_directory_completion;

#define SF_SWEEP_REMOVE 1u /* remove what is found; else it is only told */

/* Something that this provider made, and that nothing needs any more. */
typedef struct sf_leftover { /* APPENDABLE */
  size_t struct_size;
  sf_str kind;        /* "template image": the provider's word, for a person and a script */
  sf_str id;          /* the provider's */
  sf_str reason;      /* why nothing needs it, for a person */
  int64_t created_at; /* 0: not known */
  uint64_t bytes;     /* that its removal gives back, at most. SF_NONE: not known */
  sf_str error;       /* with SF_SWEEP_REMOVE: what kept it from being removed; empty: it is gone */
} sf_leftover;

typedef struct sf_sweep_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error, const sf_leftover* first, size_t count,
               size_t stride) SF_NOEXCEPT; /* [callback] */
} sf_sweep_completion;

typedef struct sf_directory_ext { /* APPENDABLE */
  size_t struct_size;
  /* Sandboxes of this provider that carry all the labels (JSON object of strings; empty: all of
   * them, whichever host made them), a page at a time. [lane] */
  sf_status (*find)(sf_provider* self, sf_str labels, sf_str page, uint32_t limit,
                    sf_directory_completion done, sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Removes a sandbox by the provider's id. What is gone succeeds. [lane] */
  sf_status (*remove)(sf_provider* self, sf_str sandbox_id, sf_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
  /* What no sandbox is, and what no host and no sandbox needs any more: remains of builds, images
   * that are old by the provider's options. Never anything that a living host may be working on.
   * flags: SF_SWEEP_*. One that cannot be removed does not keep the others. May be null. [lane] */
  sf_status (*sweep)(sf_provider* self, uint32_t flags, sf_sweep_completion done, sf_op** op,
                     const sf_error_sink* err) SF_NOEXCEPT;
} sf_directory_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_DIRECTORY_H */
