/*
 * sandforge/abi.h - the binary boundary between a Sandforge host and a provider plugin.
 *
 * A plugin is a shared library that exports one symbol, sandforge_plugin_entry_v1. Everything else
 * crosses as the C structs of this header and of sandforge/ext/. A plugin that uses the C++ layer
 * (sandforge/plugin/plugin.hpp) needs to know none of this.
 *
 * This is a draft of version 1.0: it may change until it is declared final.
 *
 * RULES
 *  1. Only <stddef.h> and <stdint.h>; C11 and C++11. No enum, bool, long, bitfield or union in a
 *     struct. Text for people is UTF-8 (sf_str). What reaches a process - argv, environment, paths,
 *     input, output - is bytes (sf_bytes), without NUL where the system takes a C string. Durations
 *     are uint64 milliseconds, points in time int64 nanoseconds since the Unix epoch.
 *  2. A struct is FROZEN (never changes) or APPENDABLE (first member struct_size, set by whoever
 *     fills the struct; new members only at the end; no tail padding). Read an appendable member
 *     only when SF_HAS says that it is there, call a function only when SF_HAS_FN says so. Arrays
 *     of appendable structs travel with a count and a stride. Values of a set that a reader does
 *     not know: an outcome reads as unknown, a status as SF_INTERNAL, a channel is ignored.
 *  3. Neither side frees what the other allocated. Text goes out through an sf_text_sink, errors
 *     through an sf_error_sink or a callback's sf_error. Objects have their own release.
 *  4. Pointers passed in are borrowed for the call; whoever needs them longer copies. That goes for
 *     structs of callbacks too. An object is written to its out-parameter before any callback of it
 *     can run. On an error, out-parameters are untouched. release cannot fail; before done it only
 *     drops the handle, done still comes. Until release a handle stays valid, also after done,
 *     where its calls do nothing or fail. A callback's ctx is an opaque token: it is given back as
 *     it is and never dereferenced.
 *  5. No exception, longjmp or thread exit crosses the boundary, in either direction.
 *  6. Each function has a thread tag, the last line of its comment:
 *       [any]       from any thread, also from inside a callback; never blocks.
 *       [lane]      on the object's lane; one call at a time; returns within a millisecond.
 *       [callback]  from any thread but never from inside the call that started the operation;
 *                   calls about one object never overlap and come in their order.
 *       [blocking]  may block; never on a lane.
 *  7. An asynchronous start that returns SF_OK ends in exactly one done, also after cancel. One
 *     that returns an error calls nothing. cancel is a request: idempotent, [any].
 *  8. A plugin prints nothing, installs no signal handler and calls none of exit, abort, setenv,
 *     setlocale, chdir, or fork without exec.
 *  9. Capabilities are extensions, asked for by id; the finer ones are features that describe
 *     names. Absent means SF_UNSUPPORTED, never a silent no-op.
 * 10. Every vtable must have all members of version 1.0, except those marked "may be null".
 */
#ifndef SANDFORGE_ABI_H
#define SANDFORGE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SF_ABI_MAJOR 1u
#define SF_ABI_MINOR 0u

/* Function types carry noexcept where the language can say so. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define SF_NOEXCEPT noexcept
#else
#define SF_NOEXCEPT
#endif

#if defined(_WIN32)
#define SF_EXPORT __declspec(dllexport)
#else
#define SF_EXPORT __attribute__((visibility("default")))
#endif

/* True when the object behind p was filled by a side that knows the member. Tests presence only. */
#define SF_HAS(p, member) \
  ((p)->struct_size >= (size_t)((const char*)&(p)->member - (const char*)(p)) + sizeof((p)->member))
/* True when the function is there and is not null. */
#define SF_HAS_FN(p, member) (SF_HAS(p, member) && (p)->member != NULL)

/* ---- Text, bytes, status ------------------------------------------------------------------- */

/* UTF-8 text for people, not terminated. ptr may be null when len is 0. FROZEN */
typedef struct sf_str {
  const char* ptr;
  size_t len;
} sf_str;

/*
 * Any bytes. Where a member says so, a null ptr means "not given", which differs from empty. FROZEN
 */
typedef struct sf_bytes {
  const uint8_t* ptr;
  size_t len;
} sf_bytes;

/* How a call or an operation ended. */
typedef int32_t sf_status;
#define SF_OK 0
#define SF_INVALID 1         /* the caller's mistake: an argument, an option, a settings document */
#define SF_NOT_FOUND 2       /* no such thing, and none was ever known */
#define SF_GONE 3            /* the provider says that it existed and no longer does */
#define SF_ALREADY_EXISTS 4  /* the name is taken */
#define SF_CONFLICT 5        /* not possible in the present state */
#define SF_UNAUTHENTICATED 6 /* no valid credentials */
#define SF_FORBIDDEN 7       /* valid credentials without the right */
#define SF_RATE_LIMITED 8    /* try later; retry_after_ms says when, if known */
#define SF_NO_SPACE 9        /* disk, memory or quota */
#define SF_UNAVAILABLE 10    /* the provider answers, but cannot serve now (5xx) */
#define SF_TRANSPORT_LOST 11 /* the connection ended before the answer */
#define SF_UNSUPPORTED 12    /* the capability or the value is declared absent */
#define SF_CANCELLED 13      /* ended by a cancel */
#define SF_TIMEOUT 14        /* ended by a deadline */
#define SF_CRASHED 15        /* the plugin broke a rule or its process died */
#define SF_INTERNAL 16       /* a fault of the side that reports it */

/* No value, for uint64 members that say so. */
#define SF_NONE UINT64_MAX

/*
 * What went wrong. Borrowed for the call that carries it. APPENDABLE
 *
 * message is one sentence without credentials. details is a JSON object, or empty; well-known keys
 * are "path", "errno", "httpStatus", "requestId", "pointer".
 */
typedef struct sf_error {
  size_t struct_size;
  sf_status code;
  uint32_t flags; /* SF_ERROR_* */
  sf_str message;
  sf_str details;
  uint64_t retry_after_ms; /* SF_NONE: not known */
} sf_error;

/* The operation's effect may have taken place: over all tries, nothing proves that it did not. */
#define SF_ERROR_MAY_HAVE_STARTED 1u

/* Takes the error of a call that returns an sf_status. May be null where a call takes it. FROZEN */
typedef struct sf_error_sink {
  void* ctx;
  void (*report)(void* ctx, const sf_error* error) SF_NOEXCEPT;
} sf_error_sink;

/* Takes text, possibly in several pieces, before the call that was given it returns. FROZEN */
typedef struct sf_text_sink {
  void* ctx;
  void (*append)(void* ctx, sf_str piece) SF_NOEXCEPT;
} sf_text_sink;

/* ---- Operations ---------------------------------------------------------------------------- */

/* A running operation, owned by the caller of its start. FROZEN; implementations put it first. */
typedef struct sf_op {
  const struct sf_op_vtbl* vtbl;
} sf_op;

typedef struct sf_op_vtbl { /* APPENDABLE */
  size_t struct_size;
  /* Asks for an early end; done then usually reports SF_CANCELLED. [any] */
  void (*cancel)(sf_op* self) SF_NOEXCEPT;
  /* Drops the handle. The operation goes on. [any] */
  void (*release)(sf_op* self) SF_NOEXCEPT;
} sf_op_vtbl;

/*
 * The end of an operation without a result. error is null on success. FROZEN
 *
 * Every start that takes one also takes an sf_op **: the handle for cancel, or null when the caller
 * does not want one.
 */
typedef struct sf_completion {
  void* ctx;
  void (*done)(void* ctx, const sf_error* error) SF_NOEXCEPT; /* [callback] */
} sf_completion;

/* ---- Streams ------------------------------------------------------------------------------- */

/*
 * A duplex stream of bytes: process input and output, bodies, messages, files, logs, ports.
 *
 * Flow control is credit. The producer delivers at most as many bytes as were granted (the first
 * window is given at the start) and stops reading its source at zero. The consumer grants more as
 * it has dealt with bytes. All channels of a stream share one window. FROZEN; implementations put
 * it first.
 */
typedef struct sf_stream {
  const struct sf_stream_vtbl* vtbl;
} sf_stream;

/* Channels of on_data. */
#define SF_CHANNEL_DATA 0u
#define SF_CHANNEL_STDOUT 1u
#define SF_CHANNEL_STDERR 2u

/* Flags of on_data and write, for streams of messages. */
#define SF_DATA_TEXT 1u   /* a text message; else binary */
#define SF_DATA_BINARY 2u /* a binary message; absent on plain byte streams */
#define SF_DATA_END 4u    /* the last piece of its message */

typedef struct sf_stream_vtbl { /* APPENDABLE */
  size_t struct_size;
  /* Adds to what may be delivered. Sums are capped at 2^62. Also from inside on_data. [any] */
  void (*grant)(sf_stream* self, uint64_t bytes) SF_NOEXCEPT;
  /*
   * Copies what it can take now and says how many bytes that were, in *accepted: 0 to data.len.
   * When it took less than all, on_writable follows once there is room, and SF_DATA_END does not
   * count: it belongs to the call that hands over the rest. An empty write with SF_DATA_END ends a
   * message that has begun. SF_CONFLICT after shutdown_write or once the other end closed. [lane]
   */
  sf_status (*write)(sf_stream* self, sf_bytes data, uint32_t flags, size_t* accepted,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /* No more writes: the other end reads end of file after what was accepted. Idempotent. [lane] */
  sf_status (*shutdown_write)(sf_stream* self, const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * Ends the stream; undelivered bytes are dropped and counted. For a process: ends its tree.
   * [any]
   */
  void (*cancel)(sf_stream* self) SF_NOEXCEPT;
  /*
   * Drops the handle. Nobody can grant any more, so from then on what exceeds the credit is dropped
   * and counted; done comes when the source ends. [any]
   */
  void (*release)(sf_stream* self) SF_NOEXCEPT;
} sf_stream_vtbl;

/* What a stream delivered, all channels together. APPENDABLE */
typedef struct sf_stream_end {
  size_t struct_size;
  uint64_t delivered; /* bytes given to on_data */
  uint64_t dropped;   /* bytes known to the producer that were not delivered */
} sf_stream_end;

/* The consumer's side, copied by the call that takes it. APPENDABLE */
typedef struct sf_stream_events {
  size_t struct_size;
  void* ctx;
  /*
   * Bytes in their order, never more than granted, never none unless flags has SF_DATA_END.
   * [callback]
   */
  void (*on_data)(void* ctx, uint32_t channel, uint32_t flags, sf_bytes data) SF_NOEXCEPT;
  /* There is room again after a short write. [callback] */
  void (*on_writable)(void* ctx) SF_NOEXCEPT;
  /* The last call, after the last delivered byte. error is null at a regular end. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_stream_end* end) SF_NOEXCEPT;
} sf_stream_events;

/* ---- Lanes --------------------------------------------------------------------------------- */

/*
 * A serial queue of the host. Each provider, sandbox and client object is bound to one: every
 * [lane] call of it runs there, and every completion that a host service was given with the lane,
 * one at a time, in order, never inline. FROZEN
 */
typedef struct sf_lane {
  const struct sf_lane_vtbl* vtbl;
} sf_lane;

typedef struct sf_lane_vtbl { /* APPENDABLE */
  size_t struct_size;
  void (*retain)(sf_lane* self) SF_NOEXCEPT;  /* [any] */
  void (*release)(sf_lane* self) SF_NOEXCEPT; /* [any] */
  /*
   * Runs fn(ctx) on the lane, later. Every post runs, unless the host ends before its turn. [any]
   */
  void (*post)(sf_lane* self, void (*fn)(void* ctx) SF_NOEXCEPT, void* ctx) SF_NOEXCEPT;
  /* 1 when the caller is on this lane, else 0. [any] */
  uint32_t (*is_current)(sf_lane* self) SF_NOEXCEPT;
} sf_lane_vtbl;

/* ---- Commands and processes ---------------------------------------------------------------- */

/* NAME and value, bytes without NUL, NAME without '='. A null value ptr means: unset. FROZEN */
typedef struct sf_env_entry {
  sf_bytes name;
  sf_bytes value;
} sf_env_entry;

/* A pseudo-terminal for the command. FROZEN */
typedef struct sf_tty {
  uint32_t cols;
  uint32_t rows;
  sf_str term; /* value of TERM; empty: "xterm-256color" */
} sf_tty;

#define SF_STDIN_EOF 0u  /* end of file at once */
#define SF_STDIN_PIPE 1u /* fed by write, ended by shutdown_write */

#define SF_OUTPUT_SEPARATE 0u
#define SF_OUTPUT_COMBINED 1u /* stderr goes where stdout goes; one order, channel stdout */

#define SF_COMMAND_DETACH 1u /* the process outlives the connection of the host */

/*
 * What to run. Either shell text or argv. APPENDABLE
 *
 * env is laid over the sandbox's environment. cwd is absolute, or relative to the working
 * directory. timeout covers everything that the call does; when it expires the whole tree gets a
 * terminate signal, after grace_ms a kill, and the exit says SF_EXIT_TIMED_OUT. A provider that has
 * seen the request_id before does not run the command again.
 */
typedef struct sf_command {
  size_t struct_size;
  sf_bytes shell; /* null ptr: argv is used */
  const sf_bytes* argv;
  size_t argc;
  const sf_env_entry* env;
  size_t env_count;
  sf_bytes cwd;        /* null ptr: the working directory of the sandbox */
  sf_str user;         /* empty: the user of the sandbox */
  const sf_tty* tty;   /* null: pipes */
  uint32_t stdin_mode; /* SF_STDIN_* */
  uint32_t output;     /* SF_OUTPUT_* */
  uint32_t flags;      /* SF_COMMAND_* */
  uint32_t reserved;   /* 0 */
  uint64_t timeout_ms; /* 0: none */
  uint64_t grace_ms;   /* 0: kill at once */
  uint64_t window;     /* first credit of the output, bytes */
  sf_str tag;          /* the caller's label, shown in lists; may be empty */
  sf_str request_id;   /* unique per command of a sandbox; may be empty */
} sf_command;

/* How a process ended. */
#define SF_EXIT_UNKNOWN 0u       /* the provider cannot tell */
#define SF_EXIT_EXITED 1u        /* code is valid */
#define SF_EXIT_SIGNALED 2u      /* signal is valid */
#define SF_EXIT_TIMED_OUT 3u     /* the deadline ended it */
#define SF_EXIT_CANCELLED 4u     /* a cancel ended it */
#define SF_EXIT_OUT_OF_MEMORY 5u /* the memory limit ended it */

#define SF_EXIT_PIPES_HELD 1u /* a process of the tree still holds the output open */
#define SF_EXIT_KILLED 2u     /* a signal of ours ended the leader */

typedef struct sf_exit { /* APPENDABLE */
  size_t struct_size;
  uint32_t outcome; /* SF_EXIT_* */
  uint32_t flags;
  /* With SF_EXIT_EXITED, and with SF_EXIT_TIMED_OUT when the leader exited by itself. */
  int32_t code;
  int32_t signal;     /* 0: none */
  int64_t started_at; /* 0: not known */
  int64_t ended_at;
} sf_exit;

/* Identity of a process within its sandbox. APPENDABLE */
typedef struct sf_process_started {
  size_t struct_size;
  sf_str id;   /* what the processes extension takes; unique over the life of the sandbox */
  int64_t pid; /* process id inside the sandbox; 0: not known */
} sf_process_started;

/* Events beside those of the stream. Copied by the call that takes it. APPENDABLE */
typedef struct sf_process_events {
  size_t struct_size;
  void* ctx;
  /* The command has started: at most once, before any output. [callback] */
  void (*on_started)(void* ctx, const sf_process_started* started) SF_NOEXCEPT;
  /*
   * The leader has ended: at most once. Output may still follow; the stream's done is the last
   * call. [callback]
   */
  void (*on_exit)(void* ctx, const sf_exit* exit) SF_NOEXCEPT;
} sf_process_events;

/* A running command. Owned by the caller of spawn. FROZEN; implementations put it first. */
typedef struct sf_process {
  const struct sf_process_vtbl* vtbl;
} sf_process;

#define SF_SIGNAL_LEADER 0u
#define SF_SIGNAL_TREE 1u

typedef struct sf_process_vtbl { /* APPENDABLE */
  size_t struct_size;
  /*
   * stdin, stdout and stderr as one stream; borrowed, lives as long as the process handle; its
   * release is a no-op. Its cancel ends the whole tree: terminate, grace, kill. [any]
   */
  sf_stream* (*stream)(sf_process* self)SF_NOEXCEPT;
  /*
   * Sends a signal (Linux numbers) to the leader or to the whole tree. SF_GONE when it has ended.
   * [lane]
   */
  sf_status (*signal)(sf_process* self, int32_t signal, uint32_t scope, sf_completion done,
                      sf_op** op, const sf_error_sink* err) SF_NOEXCEPT;
  /* Drops the handle, and that of its stream (see there). The process goes on. [any] */
  void (*release)(sf_process* self) SF_NOEXCEPT;
} sf_process_vtbl;

/* ---- Context ------------------------------------------------------------------------------- */

/* The session that a call is about. Texts that are absent have a null ptr. APPENDABLE */
typedef struct sf_context_fields {
  size_t struct_size;
  sf_str session_id; /* stable, chosen by the host or its caller; never the provider's id */
  sf_str sandbox_id; /* the provider's own id, kept from an earlier start */
  sf_str factory_id;
  sf_str factory_name; /* for logs only: it can be edited and is not unique */
  sf_str repo_full_name;
  sf_str setup_command;           /* JSON: a string or an array of strings */
  sf_str workspace_setup_command; /* JSON: a string or an array of strings */
  sf_str working_directory;
  sf_str repos; /* JSON: [{"setupCommand": string or array}]; access is asked for by index */
  uint32_t repo_count;
  uint32_t flags; /* SF_CONTEXT_* */
} sf_context_fields;

#define SF_CONTEXT_HAS_REPOSITORY 1u      /* repository_access answers for index 0 */
#define SF_CONTEXT_LIST_FORM 2u           /* repos was given */
#define SF_CONTEXT_CONTINUE_ON_FAILURE 4u /* continueOnSetupFailure */
#define SF_CONTEXT_HAS_RESOLVE_HEAD 8u
#define SF_CONTEXT_CALLER_CHOSE_ID 16u /* only then are there checkpoints */
#define SF_CONTEXT_SESSION 32u         /* a session; else a bare sandbox */

/* A repository and a short-lived credential for it. Borrowed for the callback. APPENDABLE */
typedef struct sf_repository_access {
  size_t struct_size;
  sf_str clone_url;
  sf_str scheme; /* "bearer", or empty: no authorization */
  sf_str token;  /* secret */
  sf_str username;
} sf_repository_access;

typedef struct sf_access_completion { /* FROZEN */
  void* ctx;
  /* access is null when error is not. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_repository_access* access) SF_NOEXCEPT;
} sf_access_completion;

typedef struct sf_text_completion { /* FROZEN */
  void* ctx;
  /* A null ptr in text means: absent. [callback] */
  void (*done)(void* ctx, const sf_error* error, sf_str text) SF_NOEXCEPT;
} sf_text_completion;

/* Everything that the host knows about a session. FROZEN */
typedef struct sf_context {
  const struct sf_context_vtbl* vtbl;
} sf_context;

typedef struct sf_context_vtbl { /* APPENDABLE */
  size_t struct_size;
  void (*retain)(sf_context* self) SF_NOEXCEPT;  /* [any] */
  void (*release)(sf_context* self) SF_NOEXCEPT; /* [any] */
  /* Borrowed, unchanged as long as the context is retained. [any] */
  const sf_context_fields* (*fields)(sf_context* self)SF_NOEXCEPT;
  /*
   * Mints access to the repository at an index, now: ask late, tokens are short-lived. done on the
   * lane. [any]
   */
  sf_status (*repository_access)(sf_context* self, sf_lane* lane, uint32_t index,
                                 sf_access_completion done, sf_op** op,
                                 const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * The commit that a template pins; an absent text means: resolve it yourself. done on the lane.
   * [any]
   */
  sf_status (*resolve_head)(sf_context* self, sf_lane* lane, sf_str clone_url, sf_str token,
                            sf_text_completion done, sf_op** op,
                            const sf_error_sink* err) SF_NOEXCEPT;
} sf_context_vtbl;

/* ---- Sandbox ------------------------------------------------------------------------------- */

/* What a start needs beyond create. APPENDABLE */
typedef struct sf_start_request {
  size_t struct_size;
  /*
   * The sandbox's own environment, evaluated by the host for this start. A machine that runs
   * already and can change its environment lays it over what it has; another says in metadata that
   * it keeps what it was provisioned with.
   */
  const sf_env_entry* env;
  size_t env_count;
  sf_str template_document; /* canonical JSON of the template to boot from; null ptr: none */
  sf_str idempotency_key;   /* one for all tries of a start: adopt what an interrupted try left */
  uint64_t timeout_ms;      /* 0: none */
  uint32_t flags;           /* SF_START_* */
  uint32_t reserved;        /* 0 */
} sf_start_request;

#define SF_START_ENV_GIVEN 1u /* env replaces the provider's own default environment */

#define SF_OUTCOME_UNKNOWN 0u
#define SF_OUTCOME_CREATED 1u   /* a fresh machine, also one restored from a checkpoint */
#define SF_OUTCOME_CONNECTED 2u /* the same machine as before */

#define SF_PROVENANCE_NONE 0u       /* connected, or the provider has no images */
#define SF_PROVENANCE_EXACT 1u      /* the template asked for */
#define SF_PROVENANCE_FAMILY 2u     /* an older build of its family */
#define SF_PROVENANCE_BASE 3u       /* the provider's base */
#define SF_PROVENANCE_CHECKPOINT 4u /* the session's own, or the one of start_from */
#define SF_PROVENANCE_SEED 5u       /* the seed checkpoint */

typedef struct sf_start_result { /* APPENDABLE */
  size_t struct_size;
  uint32_t outcome;    /* SF_OUTCOME_* */
  uint32_t provenance; /* SF_PROVENANCE_* */
  sf_str sandbox_id;   /* the provider's own id; null ptr: it has none */
  sf_str working_directory;
  sf_str template_pending_id;       /* set while the exact template is still being built */
  uint64_t template_retry_after_ms; /* SF_NONE: not known */
  sf_str warnings;                  /* JSON array of strings, without credentials; may be empty */
  sf_str env_names; /* JSON array: variables that a machine which ran before has; may be empty */
} sf_start_result;

typedef struct sf_start_events { /* APPENDABLE */
  size_t struct_size;
  void* ctx;
  /*
   * The provider's id, as soon as the machine exists: the host stores it before anything can be
   * lost. At most once, before done. [callback]
   */
  void (*on_identity)(void* ctx, sf_str sandbox_id) SF_NOEXCEPT;
  /* result is null when error is not. [callback] */
  void (*done)(void* ctx, const sf_error* error, const sf_start_result* result) SF_NOEXCEPT;
} sf_start_events;

#define SF_STATE_UNKNOWN 0u
#define SF_STATE_ABSENT 1u /* never started, or gone */
#define SF_STATE_RUNNING 2u
#define SF_STATE_STOPPED 3u

/*
 * What the provider knows about the sandbox now. Unknown numbers are SF_NONE, unknown times 0.
 * APPENDABLE
 */
typedef struct sf_sandbox_info {
  size_t struct_size;
  uint32_t state; /* SF_STATE_* */
  uint32_t reserved;
  sf_str sandbox_id;
  int64_t created_at;
  int64_t timeout_at;
  uint64_t memory_mb;
  uint64_t memory_used_mb;
  uint64_t disk_mb;
  uint64_t disk_used_mb;
  uint64_t cpu_millis; /* thousandths of a core */
  sf_str metadata; /* JSON object: providerResourceId, platformStatus and the provider's own keys */
} sf_sandbox_info;

typedef struct sf_info_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error,
               const sf_sandbox_info* info) SF_NOEXCEPT; /* [callback] */
} sf_info_completion;

/* One sandbox: unstarted at first. Owned by the host. FROZEN; implementations put it first. */
typedef struct sf_sandbox {
  const struct sf_sandbox_vtbl* vtbl;
} sf_sandbox;

typedef struct sf_sandbox_vtbl { /* APPENDABLE */
  size_t struct_size;
  /*
   * Finds and connects the machine, or creates it. Only SF_NOT_FOUND and SF_GONE of the provider's
   * own look-up mean absent: any other failure is an error, never a second machine. The host never
   * runs two of start, stop and destroy at once. [lane]
   */
  sf_status (*start)(sf_sandbox* self, const sf_start_request* request,
                     const sf_start_events* events, sf_op** op,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /* Stops the machine so that start can go on. What is stopped already succeeds. [lane] */
  sf_status (*stop)(sf_sandbox* self, sf_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * Removes the machine, found by the session id or the provider's id, also when this object never
   * started. What is gone succeeds. Never removes a checkpoint. [lane]
   */
  sf_status (*destroy)(sf_sandbox* self, sf_completion done, sf_op** op,
                       const sf_error_sink* err) SF_NOEXCEPT;
  /* Looks, starts nothing. [lane] */
  sf_status (*info)(sf_sandbox* self, sf_info_completion done, sf_op** op,
                    const sf_error_sink* err) SF_NOEXCEPT;
  /* The default text that tells an agent where it works. [lane] */
  sf_status (*instructions)(sf_sandbox* self, sf_text_completion done, sf_op** op,
                            const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * Runs a command in the started sandbox. A missing cwd, a bad user or a refused request end in
   * the stream's done with a typed error and no on_started. SF_GONE: the machine no longer exists
   * and nothing ran. SF_CONFLICT: it is stopped and nothing ran. [lane]
   */
  sf_status (*spawn)(sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
                     const sf_process_events* events, sf_process** process,
                     const sf_error_sink* err) SF_NOEXCEPT;
  /*
   * The vtable of an extension (sandforge/ext/), or null. Lives as long as the sandbox; the answer
   * never changes. What turns out to be absent after start is SF_UNSUPPORTED there. [any]
   */
  const void* (*extension)(sf_sandbox* self, sf_str id)SF_NOEXCEPT;
  /* Drops the object; the machine is not touched. [lane] */
  void (*release)(sf_sandbox* self) SF_NOEXCEPT;
} sf_sandbox_vtbl;

/* ---- Provider ------------------------------------------------------------------------------ */

/* What a sandbox is made of. APPENDABLE */
typedef struct sf_create_request {
  size_t struct_size;
  sf_context* context; /* retained by the sandbox; may be null */
  sf_lane* lane;       /* the sandbox's lane; retained by the sandbox */
  sf_str settings;     /* JSON object: the stored document with the schema's defaults filled in */
  sf_str working_directory;    /* null ptr: the context's, else the provider's default */
  sf_str checkpoint_name;      /* null ptr: the session id where the caller chose it */
  sf_str seed_checkpoint_name; /* read only, when the first does not exist */
  uint64_t idle_timeout_ms;    /* SF_NONE: by settings and options */
} sf_create_request;

/*
 * What a provider tells about itself. APPENDABLE
 *
 * The host refuses what a command asks for and "features" does not name, before anything starts:
 * "spawn.stdin" (SF_STDIN_PIPE), "spawn.user" (user), "spawn.detach" (SF_COMMAND_DETACH), "pty"
 * (tty, with the extension), "env.per_command" (env), "env.unset" (a null value in it),
 * "stderr.combined" (SF_OUTPUT_COMBINED; not needed without "stderr.separate"), "spawn.signal"
 * (signal), "spawn.kill" (SIGKILL to the tree, or where signal is SF_UNSUPPORTED the stream's
 * cancel). Time limits and cancel need none. Other names are for whoever knows them.
 */
typedef struct sf_describe_result {
  size_t struct_size;
  sf_str settings_schema; /* JSON Schema draft-07; its defaults are the effective ones */
  sf_str describe;        /* JSON object: {"features": [...], ...}, the provider's additions */
} sf_describe_result;

typedef struct sf_describe_completion { /* FROZEN */
  void* ctx;
  void (*done)(void* ctx, const sf_error* error,
               const sf_describe_result* result) SF_NOEXCEPT; /* [callback] */
} sf_describe_completion;

/* A provider opened with its options. Owned by the host. FROZEN; implementations put it first. */
typedef struct sf_provider {
  const struct sf_provider_vtbl* vtbl;
} sf_provider;

typedef struct sf_provider_vtbl { /* APPENDABLE */
  size_t struct_size;
  /* The settings schema and the features, with the defaults that the options bring. [lane] */
  sf_status (*describe)(sf_provider* self, sf_describe_completion done, sf_op** op,
                        const sf_error_sink* err) SF_NOEXCEPT;
  /* An unstarted sandbox. No I/O. Accepts empty settings and a context of ids only. [lane] */
  sf_status (*create)(sf_provider* self, const sf_create_request* request, sf_sandbox** sandbox,
                      const sf_error_sink* err) SF_NOEXCEPT;
  /* The vtable of an extension, or null. Lives as long as the provider. [any] */
  const void* (*extension)(sf_provider* self, sf_str id)SF_NOEXCEPT;
  /* After all sandboxes of it were released. [lane] */
  void (*release)(sf_provider* self) SF_NOEXCEPT;
} sf_provider_vtbl;

typedef struct sf_open_request { /* APPENDABLE */
  size_t struct_size;
  sf_str provider; /* a name of the manifest */
  sf_str options;  /* JSON object, valid by the manifest's options schema, references resolved */
  sf_lane* lane;   /* the provider's lane; retained by the provider */
} sf_open_request;

/* ---- Host and plugin ----------------------------------------------------------------------- */

/* The host, as a plugin sees it. Lives as long as the process. FROZEN */
typedef struct sf_host {
  const struct sf_host_vtbl* vtbl;
} sf_host;

typedef struct sf_host_vtbl { /* APPENDABLE */
  size_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  /* The vtable of a service (sandforge/ext/host_*.h), or null. They take this host. [any] */
  const void* (*service)(sf_host* self, sf_str id)SF_NOEXCEPT;
} sf_host_vtbl;

/* The plugin. Static data. APPENDABLE */
typedef struct sf_plugin {
  size_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  /* Once, before anything else. Keeps the host pointer; starts nothing. [blocking] */
  sf_status (*init)(sf_host* host, const sf_error_sink* err) SF_NOEXCEPT;
  /* Opens a provider with options. No I/O. May be called several times, with other options. [lane]
   */
  sf_status (*open)(const sf_open_request* request, sf_provider** provider,
                    const sf_error_sink* err) SF_NOEXCEPT;
} sf_plugin;

/* The one exported symbol, and the section of the file that holds the manifest as JSON text. */
#define SF_PLUGIN_ENTRY sandforge_plugin_entry_v1
#define SF_PLUGIN_ENTRY_NAME "sandforge_plugin_entry_v1"
#define SF_MANIFEST_SECTION ".sandforge.manifest"
typedef const sf_plugin* (*sf_plugin_entry_fn)(void)SF_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_ABI_H */
