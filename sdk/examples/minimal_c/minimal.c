/*
 * A complete provider in C: one fixed folder is the sandbox, its commands run there. It shows the
 * bare boundary; sandforge/plugin/plugin.hpp does all of this for authors of C++.
 */
#include <sandforge/abi.h>
#include <sandforge/ext/host_process.h>
#include <stdlib.h>
#include <string.h>

static sf_host* host;
static const char folder[] = "/tmp";
static const char schema[] =
    "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";

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

/* Nothing here lasts, so one handle serves every call: cancelling comes too late for all. */
static void ignore(sf_op* op) {
  (void)op;
}
static const sf_op_vtbl op_functions = {sizeof(sf_op_vtbl), ignore, ignore};
static sf_op finished_op = {&op_functions};
static void give_op(sf_op** op) {
  if (op != NULL) *op = &finished_op;
}

/* An answer that is given later, on the lane: never from inside the call. */
typedef struct answer {
  sf_completion plain;
  sf_text_completion text;
  sf_info_completion info;
  sf_start_events start;
  sf_describe_completion describe;
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
} box;

static sf_lane* lane_of(sf_sandbox* self) {
  return ((box*)self)->lane;
}

static void give_start(void* ctx) {
  answer* a = ctx;
  sf_start_result result;
  memset(&result, 0, sizeof result);
  result.struct_size = sizeof result;
  result.outcome = SF_OUTCOME_CONNECTED;
  result.working_directory = str(folder);
  result.template_retry_after_ms = SF_NONE;
  a->start.done(a->start.ctx, NULL, &result);
  free(a);
}
static sf_status box_start(sf_sandbox* self, const sf_start_request* request,
                           const sf_start_events* events, sf_op** op, const sf_error_sink* err) {
  answer a;
  (void)request;
  memset(&a, 0, sizeof a);
  /* An older host may know less of it. */
  memcpy(&a.start, events,
         events->struct_size < sizeof a.start ? events->struct_size : sizeof a.start);
  return later(lane_of(self), &a, give_start, op, err);
}

static void give_plain(void* ctx) {
  answer* a = ctx;
  a->plain.done(a->plain.ctx, NULL);
  free(a);
}
static sf_status box_end(sf_sandbox* self, sf_completion done, sf_op** op,
                         const sf_error_sink* err) {
  answer a;
  memset(&a, 0, sizeof a);
  a.plain = done;
  return later(lane_of(self), &a, give_plain, op, err);
}

static void give_info(void* ctx) {
  answer* a = ctx;
  sf_sandbox_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.state = SF_STATE_RUNNING;
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
  return later(lane_of(self), &a, give_info, op, err);
}

static void give_text(void* ctx) {
  answer* a = ctx;
  a->text.done(a->text.ctx, NULL, str("Commands run in /tmp."));
  free(a);
}
static sf_status box_instructions(sf_sandbox* self, sf_text_completion done, sf_op** op,
                                  const sf_error_sink* err) {
  answer a;
  memset(&a, 0, sizeof a);
  a.text = done;
  return later(lane_of(self), &a, give_text, op, err);
}

/* The command goes to the host's process service as it is, but for its folder. */
static sf_status box_spawn(sf_sandbox* self, const sf_command* command, const sf_stream_events* io,
                           const sf_process_events* events, sf_process** process,
                           const sf_error_sink* err) {
  const sf_process_service* service = host->vtbl->service(host, str(SF_SERVICE_PROCESS));
  sf_command changed;
  if (service == NULL) return refuse(err, SF_UNSUPPORTED, "the host runs no processes");
  memset(&changed, 0, sizeof changed);
  memcpy(&changed, command,
         command->struct_size < sizeof changed ? command->struct_size : sizeof changed);
  changed.struct_size = sizeof changed;
  if (changed.cwd.ptr == NULL) {
    changed.cwd.ptr = (const uint8_t*)folder;
    changed.cwd.len = sizeof folder - 1;
  }
  return service->spawn(host, lane_of(self), &changed, io, events, process, err);
}

static const void* box_extension(sf_sandbox* self, sf_str id) {
  (void)self;
  (void)id;
  return NULL;
}
static void box_release(sf_sandbox* self) {
  sf_lane* lane = lane_of(self);
  free(self);
  lane->vtbl->release(lane);
}
static const sf_sandbox_vtbl box_functions = {
    sizeof(sf_sandbox_vtbl), box_start, box_end,       box_end,    box_info,
    box_instructions,        box_spawn, box_extension, box_release};

/* ---- The provider --------------------------------------------------------------------------- */

/* All that the process service can; what is not named here is refused by the host. */
static const char features[] =
    "{\"features\":[\"spawn.stdin\",\"spawn.signal\",\"spawn.kill\",\"spawn.user\","
    "\"env.per_command\",\"env.unset\",\"stderr.separate\",\"stderr.combined\"]}";

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
  box* made = malloc(sizeof *made);
  (void)self;
  if (made == NULL) return refuse(err, SF_INTERNAL, "out of memory");
  made->base.vtbl = &box_functions;
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
