/* Extension of a sandbox: checkpoints, the kept states of a file system. */
#ifndef SANDFORGE_EXT_SNAPSHOT_H
#define SANDFORGE_EXT_SNAPSHOT_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_EXT_SNAPSHOT "sandforge.snapshot/1"

typedef struct sf_checkpoint { /* APPENDABLE */
  size_t struct_size;
  sf_str name;
  int64_t created_at;
  uint64_t bytes;  /* SF_NONE: not known */
  sf_str warnings; /* JSON array of texts: what was not captured. Of create only */
} sf_checkpoint;

typedef struct sf_checkpoint_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error, const sf_checkpoint* first, size_t count,
               size_t stride) SF_NOEXCEPT; /* [callback] */
} sf_checkpoint_completion;

typedef struct sf_snapshot_ext { /* APPENDABLE */
  size_t struct_size;
  /* Captures under the name given at create, or under another one. A sandbox that does not run, or
   * has no name, captures nothing and answers an empty list. [lane] */
  sf_status (*create)(sf_sandbox* self, sf_str name, sf_checkpoint_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
  /* Newest first. [lane] */
  sf_status (*list)(sf_sandbox* self, sf_checkpoint_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* Deletes a checkpoint by name. What is gone succeeds. [lane] */
  sf_status (*remove)(sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
                      const sf_error_sink* err) SF_NOEXCEPT;
  /* The next fresh start boots from this checkpoint. [lane] */
  sf_status (*start_from)(sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
                          const sf_error_sink* err) SF_NOEXCEPT;
} sf_snapshot_ext;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_SNAPSHOT_H */
