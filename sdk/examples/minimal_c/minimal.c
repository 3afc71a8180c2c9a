/*
 * A complete provider in C: each session is a folder on the host's machine, its commands run there.
 * It shows the bare boundary; sandforge/plugin/plugin.hpp does all of this for authors of C++.
 */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <ftw.h>
#include <sandforge/abi.h>
#include <sandforge/ext/host_executor.h>
#include <sandforge/ext/host_paths.h>
#include <sandforge/ext/host_process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef _WIN32
#include <direct.h>
#define mkdir(path, mode) _mkdir(path)
#endif

static sf_host* host;
static const char schema[] =
    "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
static const uint64_t grace_ms = 2000;

static sf_str str(const char* text) {
  sf_str s;
  s.ptr = text;
  s.len = strlen(text);
  return s;
}

static sf_status refuse(const sf_error_sink* err, sf_status code, const char* message) {
  sf_error e;
  memset(&e, 0, sizeof e);
  e.struct_size = sizeof e;
  e.code = code;
  e.message = str(message);
  e.retry_after_ms = SF_NONE;
  if (err != NULL) err->report(err->ctx, &e);
  return code;
}

/* Every service of a host may be absent, and an older one knows no groups of commands. */
static const sf_process_service* processes(void) {
  const sf_process_service* service = host->vtbl->service(host, str(SF_SERVICE_PROCESS));
  return service != NULL && SF_HAS_FN(service, end_group) ? service : NULL;
}

/* No work here is long, so one handle serves every call: cancelling comes too late for all. */
static void ignore(sf_op* op) {
  (void)op;
}
static const sf_op_vtbl op_functions = {sizeof(sf_op_vtbl), ignore, ignore};
static sf_op finished_op = {&op_functions};
static void give_op(sf_op** op) {
  if (op != NULL) *op = &finished_op;
}

/* ---- The folder of a session ---------------------------------------------------------------- */

/* PARENT/NAME, where the name is the id with every unusual byte as _XX; or NULL. */
static char* folder_of(sf_str id) {
  const sf_paths_service* paths = host->vtbl->service(host, str(SF_SERVICE_PATHS));
  sf_bytes parent = {NULL, 0};
  char *path, *end;
  size_t i;
  if (paths != NULL) parent = paths->get(host, SF_PATH_DATA);
  if (parent.ptr == NULL) {
    parent.ptr = (const uint8_t*)"/tmp";
    parent.len = 4;
  }
  path = malloc(parent.len + sizeof "/box-" + 3 * id.len);
  if (path == NULL) return NULL;
  memcpy(path, parent.ptr, parent.len);
  end = path + parent.len + sprintf(path + parent.len, "/box-");
  for (i = 0; i < id.len; ++i) {
    const unsigned char byte = (unsigned char)id.ptr[i];
    const int plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                      (byte >= '0' && byte <= '9') || byte == '-';
    end += sprintf(end, plain ? "%c" : "_%02X", byte);
  }
  return path;
}

/* Makes it and what lies above. 1: it was made, 0: it was there, -1: neither, see errno. */
static int make_folder(char* path) {
  char* slash;
  if (mkdir(path, 0777) == 0) return 1;
  if (errno == EEXIST) return 0;
  slash = strrchr(path, '/');
  if (errno != ENOENT || slash == NULL || slash == path) return -1;
  *slash = '\0';
  if (make_folder(path) < 0) return -1;
  *slash = '/';
  return mkdir(path, 0777) == 0 ? 1 : -1;
}

static int remove_one(const char* path, const struct stat* what, int kind, struct FTW* where) {
  (void)what;
  (void)kind;
  (void)where;
  return remove(path);
}

/* An answer that is known at once is given later all the same: never from inside the call. */
typedef struct answer {
  struct box* b; /* held until then */
  sf_completion plain;
  sf_start_events start;
  sf_start_result result;
  sf_text_completion text;
  sf_info_completion info;
  sf_describe_completion describe;
  uint32_t state;
} answer;

static sf_status later(sf_lane* lane, const answer* what, void (*give)(void*), sf_op** op,
                       const sf_error_sink* err) {
  answer* copy = malloc(sizeof *copy);
  if (copy == NULL) return refuse(err, SF_INTERNAL, "out of memory");
  *copy = *what;
  lane->vtbl->post(lane, give, copy);
  give_op(op);
  return SF_OK;
}

/* ---- The sandbox ---------------------------------------------------------------------------- */

typedef struct box {
  sf_sandbox base; /* first, so that a pointer to it is a pointer to the box */
  sf_lane* lane;
  char* machine; /* the folder that is the machine; also the name of its group of commands */
  char* folder;  /* where commands run: the same, or what the caller wants */
  sf_env_entry* env;
  size_t env_count;
  int running;
  int refs; /* the host's and those of jobs; changed on the lane only */
} box;

static box* box_of(sf_sandbox* self) {
  return (box*)self;
}

static char* copy_bytes(const void* from, size_t length) {
  char* copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  if (length > 0) memcpy(copy, from, length);
  copy[length] = '\0';
  return copy;
}

static void drop_env(box* b) {
  size_t i;
  for (i = 0; i < b->env_count; ++i) {
    free((void*)b->env[i].name.ptr);
    free((void*)b->env[i].value.ptr);
  }
  free(b->env);
  b->env = NULL;
  b->env_count = 0;
}
/* Copies it: what is given is borrowed for the call. */
static int keep_env(box* b, const sf_env_entry* env, size_t count) {
  size_t i;
  drop_env(b);
  b->env = calloc(count + 1, sizeof *b->env);
  if (b->env == NULL) return -1;
  for (i = 0; i < count; ++i) {
    sf_env_entry* e = &b->env[b->env_count++];
    e->name.ptr = (const uint8_t*)copy_bytes(env[i].name.ptr, env[i].name.len);
    e->name.len = env[i].name.len;
    e->value.len = env[i].value.len;
    if (env[i].value.ptr != NULL)
      e->value.ptr = (const uint8_t*)copy_bytes(env[i].value.ptr, env[i].value.len);
    if (e->name.ptr == NULL || (env[i].value.ptr != NULL && e->value.ptr == NULL)) return -1;
  }
  return 0;
}

static void drop_box(box* b) {
  sf_lane* lane = b->lane;
  if (--b->refs > 0) return;
  drop_env(b);
  free(b->machine);
  free(b->folder);
  free(b);
  lane->vtbl->release(lane);
}

static void give_start(void* ctx) {
  answer* a = ctx;
  a->start.done(a->start.ctx, NULL, &a->result);
  drop_box(a->b);
  free(a);
}
static sf_status box_start(sf_sandbox* self, const sf_start_request* request,
                           const sf_start_events* events, sf_op** op, const sf_error_sink* err) {
  box* b = box_of(self);
  const sf_process_service* service = processes();
  const int made = make_folder(b->machine);
  sf_status status;
  answer a;
  if (made < 0 || make_folder(b->folder) < 0)
    return refuse(err, errno == ENOSPC ? SF_NO_SPACE : SF_UNAVAILABLE, "the folder is not there");
  if (keep_env(b, request->env, request->env_count) != 0)
    return refuse(err, SF_INTERNAL, "out of memory");
  status = service != NULL ? service->open_group(host, str(b->machine), err) : SF_OK;
  if (status != SF_OK) return status;
  b->running = 1;
  memset(&a, 0, sizeof a);
  a.b = b;
  a.result.struct_size = sizeof a.result;
  a.result.outcome = made == 1 ? SF_OUTCOME_CREATED : SF_OUTCOME_CONNECTED;
  a.result.sandbox_id = str(b->machine);
  a.result.working_directory = str(b->folder);
  a.result.template_retry_after_ms = SF_NONE;
  /* An older host may know less of it. */
  memcpy(&a.start, events,
         events->struct_size < sizeof a.start ? events->struct_size : sizeof a.start);
  ++b->refs;
  status = later(b->lane, &a, give_start, op, err);
  if (status != SF_OK) drop_box(b);
  return status;
}

static void give_plain(void* ctx) {
  answer* a = ctx;
  a->plain.done(a->plain.ctx, NULL);
  free(a);
}
static sf_status box_stop(sf_sandbox* self, sf_completion done, sf_op** op,
                          const sf_error_sink* err) {
  box* b = box_of(self);
  const sf_process_service* service = processes();
  answer a;
  b->running = 0;
  if (service != NULL)
    return service->end_group(host, b->lane, str(b->machine), grace_ms, done, op, err);
  memset(&a, 0, sizeof a);
  a.plain = done;
  return later(b->lane, &a, give_plain, op, err);
}

/* A destroy: first as stop, then the folder, on a thread that may block. */
typedef struct removal {
  box* b;
  sf_completion done;
  int error_number;
} removal;

static void remove_folder(void* ctx) {
  removal* r = ctx;
  r->error_number =
      nftw(r->b->machine, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT ? 0 : errno;
}
static void removed(void* ctx, const sf_error* error) {
  removal* r = ctx;
  sf_error e;
  memset(&e, 0, sizeof e);
  e.struct_size = sizeof e;
  e.code = SF_UNAVAILABLE;
  e.message = str("the folder cannot be removed");
  e.retry_after_ms = SF_NONE;
  if (error == NULL && r->error_number != 0) error = &e;
  r->done.done(r->done.ctx, error);
  drop_box(r->b);
  free(r);
}
static void stopped(void* ctx, const sf_error* error) {
  removal* r = ctx;
  const sf_executor_service* executor = host->vtbl->service(host, str(SF_SERVICE_EXECUTOR));
  const sf_completion done = {r, removed};
  sf_op* op = NULL;
  if (error == NULL && executor != NULL &&
      executor->post_blocking(host, r->b->lane, remove_folder, r, done, &op, NULL) == SF_OK) {
    if (op != NULL) op->vtbl->release(op);
    return;
  }
  if (error == NULL) remove_folder(r);
  removed(r, error);
}
static sf_status box_destroy(sf_sandbox* self, sf_completion done, sf_op** op,
                             const sf_error_sink* err) {
  removal* r = calloc(1, sizeof *r);
  const sf_completion then = {r, stopped};
  sf_status status;
  if (r == NULL) return refuse(err, SF_INTERNAL, "out of memory");
  r->b = box_of(self);
  r->done = done;
  ++r->b->refs;
  status = box_stop(self, then, op, err);
  if (status == SF_OK) return SF_OK;
  drop_box(r->b);
  free(r);
  return status;
}

static void give_info(void* ctx) {
  answer* a = ctx;
  sf_sandbox_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.state = a->state;
  info.memory_mb = info.memory_used_mb = info.disk_mb = info.disk_used_mb = SF_NONE;
  info.cpu_millis = SF_NONE;
  a->info.done(a->info.ctx, NULL, &info);
  free(a);
}
static sf_status box_info(sf_sandbox* self, sf_info_completion done, sf_op** op,
                          const sf_error_sink* err) {
  answer a;
  memset(&a, 0, sizeof a);
  a.info = done;
  a.state = box_of(self)->running ? SF_STATE_RUNNING : SF_STATE_UNKNOWN;
  return later(box_of(self)->lane, &a, give_info, op, err);
}

static void give_text(void* ctx) {
  answer* a = ctx;
  a->text.done(a->text.ctx, NULL, str("Commands run in a folder of the host's machine."));
  free(a);
}
static sf_status box_instructions(sf_sandbox* self, sf_text_completion done, sf_op** op,
                                  const sf_error_sink* err) {
  answer a;
  memset(&a, 0, sizeof a);
  a.text = done;
  return later(box_of(self)->lane, &a, give_text, op, err);
}

/* The command goes to the host's process service, in the folder and with the environment. */
static sf_status box_spawn(sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
                           const sf_process_events* events, sf_process** process,
                           const sf_error_sink* err) {
  box* b = box_of(self);
  const sf_process_service* service = processes();
  struct stat there;
  sf_command changed;
  sf_env_entry* env;
  char* cwd;
  sf_status status;
  if (service == NULL) return refuse(err, SF_UNSUPPORTED, "the host runs no commands in groups");
  if (stat(b->folder, &there) != 0)
    return refuse(err, SF_GONE, "the folder of the sandbox no longer exists");
  memset(&changed, 0, sizeof changed);
  memcpy(&changed, command,
         command->struct_size < sizeof changed ? command->struct_size : sizeof changed);
  changed.struct_size = sizeof changed;

  cwd = malloc(strlen(b->folder) + changed.cwd.len + 2);
  env = calloc(b->env_count + changed.env_count + 1, sizeof *env);
  if (cwd == NULL || env == NULL) {
    free(cwd);
    free(env);
    return refuse(err, SF_INTERNAL, "out of memory");
  }
  if (changed.cwd.ptr == NULL || changed.cwd.len == 0 || changed.cwd.ptr[0] != '/') {
    const int length = sprintf(cwd, changed.cwd.len > 0 ? "%s/" : "%s", b->folder);
    if (changed.cwd.len > 0) memcpy(cwd + length, changed.cwd.ptr, changed.cwd.len);
    changed.cwd.ptr = (const uint8_t*)cwd;
    changed.cwd.len += (size_t)length;
  }
  /* Of entries with one name the last counts. */
  if (b->env_count > 0) memcpy(env, b->env, b->env_count * sizeof *env);
  if (changed.env_count > 0)
    memcpy(env + b->env_count, changed.env, changed.env_count * sizeof *env);
  changed.env = env;
  changed.env_count += b->env_count;
  status = service->spawn_in(host, b->lane, str(b->machine), &changed, io, events, process, err);
  free(cwd);
  free(env);
  return status;
}

static const void* box_extension(sf_sandbox* self, sf_str id) {
  (void)self;
  (void)id;
  return NULL;
}
static void box_release(sf_sandbox* self) {
  drop_box(box_of(self));
}
static const sf_sandbox_vtbl box_functions = {
    sizeof(sf_sandbox_vtbl), box_start, box_stop,      box_destroy, box_info,
    box_instructions,        box_spawn, box_extension, box_release};

/* ---- The provider --------------------------------------------------------------------------- */

/* All that the process service can; what is not named here is refused by the host. */
static const char features[] =
    "{\"features\":[\"spawn.stdin\",\"spawn.signal\",\"spawn.kill\",\"spawn.user\","
    "\"spawn.tree\",\"env.per_command\",\"env.unset\",\"stderr.separate\","
    "\"stderr.combined\",\"output.credit\"]}";

typedef struct factory {
  sf_provider base;
  sf_lane* lane;
} factory;

static void give_describe(void* ctx) {
  answer* a = ctx;
  sf_describe_result result;
  result.struct_size = sizeof result;
  result.settings_schema = str(schema);
  result.describe = str(features);
  a->describe.done(a->describe.ctx, NULL, &result);
  free(a);
}
static sf_status factory_describe(sf_provider* self, sf_describe_completion done, sf_op** op,
                                  const sf_error_sink* err) {
  answer a;
  memset(&a, 0, sizeof a);
  a.describe = done;
  return later(((factory*)self)->lane, &a, give_describe, op, err);
}
static sf_status factory_create(sf_provider* self, const sf_create_request* request,
                                sf_sandbox** sandbox, const sf_error_sink* err) {
  const sf_context_fields* session =
      request->context != NULL ? request->context->vtbl->fields(request->context) : NULL;
  sf_str wanted = request->working_directory;
  box* made = calloc(1, sizeof *made);
  (void)self;
  if (made == NULL) return refuse(err, SF_INTERNAL, "out of memory");
  if (wanted.ptr == NULL && session != NULL) wanted = session->working_directory;
  made->machine = folder_of(session != NULL ? session->session_id : str(""));
  if (wanted.ptr == NULL && made->machine != NULL) wanted = str(made->machine);
  made->folder = copy_bytes(wanted.ptr, wanted.len);
  if (made->machine == NULL || made->folder == NULL) {
    free(made->machine);
    free(made->folder);
    free(made);
    return refuse(err, SF_INTERNAL, "out of memory");
  }
  made->base.vtbl = &box_functions;
  made->refs = 1;
  made->lane = request->lane;
  made->lane->vtbl->retain(made->lane);
  *sandbox = &made->base;
  return SF_OK;
}
static const void* factory_extension(sf_provider* self, sf_str id) {
  (void)self;
  (void)id;
  return NULL;
}
static void factory_release(sf_provider* self) {
  sf_lane* lane = ((factory*)self)->lane;
  free(self);
  lane->vtbl->release(lane);
}
static const sf_provider_vtbl factory_functions = {
    sizeof(sf_provider_vtbl), factory_describe, factory_create, factory_extension, factory_release};

/* ---- The plugin ----------------------------------------------------------------------------- */

static sf_status plugin_init(sf_host* given, const sf_error_sink* err) {
  (void)err;
  host = given;
  return SF_OK;
}
static sf_status plugin_open(const sf_open_request* request, sf_provider** provider,
                             const sf_error_sink* err) {
  factory* opened = malloc(sizeof *opened);
  if (opened == NULL) return refuse(err, SF_INTERNAL, "out of memory");
  opened->base.vtbl = &factory_functions;
  opened->lane = request->lane;
  opened->lane->vtbl->retain(opened->lane);
  *provider = &opened->base;
  return SF_OK;
}

SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void);
SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void) {
  static const sf_plugin plugin = {sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR, plugin_init,
                                   plugin_open};
  return &plugin;
}
