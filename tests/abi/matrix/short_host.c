/*
 * A host of version 1.0 that gives a plugin each struct right before a page that must not be
 * touched: whoever reads a member that this host does not have dies at once.
 *
 *   short_host PLUGIN    0: it worked; 3: the plugin refused to open; 1: something else was wrong
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sandforge/abi.h>

static void fail(const char* what) {
  fprintf(stderr, "short_host: %s\n", what);
  exit(1);
}

/* A copy that ends where its page ends, for as long as the program runs. */
static void* guarded(const void* object, size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || size > page) fail("no page for a struct");
  if (mprotect(pages + page, page, PROT_NONE) != 0) fail("a page could not be guarded");
  return memcpy(pages + page - size, object, size);
}
#define GUARDED(object) guarded(&(object), sizeof(object))

static sf_str str(const char* text) {
  sf_str s;
  s.ptr = text;
  s.len = strlen(text);
  return s;
}

/* ---- A lane: what is posted waits until it is run ------------------------------------------- */

typedef struct work {
  void (*fn)(void*);
  void* ctx;
} work;
static work posted[64];
static size_t posted_count;

static void lane_keep(sf_lane* self) {
  (void)self;
}
static void lane_post(sf_lane* self, void (*fn)(void*), void* ctx) {
  (void)self;
  if (posted_count == sizeof posted / sizeof posted[0]) fail("too much was posted");
  posted[posted_count].fn = fn;
  posted[posted_count++].ctx = ctx;
}
static uint32_t lane_is_current(sf_lane* self) {
  (void)self;
  return 1;
}
static sf_lane lane;
static void run_posted(void) {
  for (size_t i = 0; i < posted_count; ++i)
    posted[i].fn(posted[i].ctx);
  posted_count = 0;
}

static const void* no_service(sf_host* self, sf_str id) {
  (void)self;
  (void)id;
  return NULL;
}

/* ---- What the plugin answers ---------------------------------------------------------------- */

static int answers;
static void answered(void* ctx, const sf_error* error) {
  (void)ctx;
  if (error != NULL) fail("an answer was an error");
  ++answers;
}
static void described(void* ctx, const sf_error* error, const sf_describe_result* result) {
  (void)ctx;
  if (error != NULL || result == NULL || result->settings_schema.len == 0) fail("describe");
  ++answers;
}
static void informed(void* ctx, const sf_error* error, const sf_sandbox_info* info) {
  (void)ctx;
  if (error != NULL || info == NULL || !SF_HAS(info, metadata)) fail("info");
  ++answers;
}
static void instructed(void* ctx, const sf_error* error, sf_str text) {
  (void)ctx;
  if (error != NULL || text.len == 0) fail("instructions");
  ++answers;
}
static void started(void* ctx, const sf_error* error, const sf_start_result* result) {
  (void)ctx;
  if (error != NULL || result == NULL || !SF_HAS(result, outcome)) fail("start");
  ++answers;
}
static void identified(void* ctx, sf_str id) {
  (void)ctx;
  (void)id;
}
static void reported(void* ctx, const sf_error* error) {
  (void)error;
  *(int*)ctx += 1;
}
static void stream_data(void* ctx, uint32_t channel, uint32_t flags, sf_bytes data) {
  (void)ctx, (void)channel, (void)flags, (void)data;
}
static void stream_writable(void* ctx) {
  (void)ctx;
}
static void stream_done(void* ctx, const sf_error* error, const sf_stream_end* end) {
  (void)ctx, (void)error, (void)end;
}
static void process_started(void* ctx, const sf_process_started* what) {
  (void)ctx, (void)what;
}
static void process_exit(void* ctx, const sf_exit* what) {
  (void)ctx, (void)what;
}

static void sandbox_works(sf_sandbox* sandbox) {
  sf_start_request request;
  memset(&request, 0, sizeof request);
  request.struct_size = sizeof request;
  const sf_start_events events = {sizeof(sf_start_events), NULL, identified, started};
  if (sandbox->vtbl->start(sandbox, GUARDED(request), GUARDED(events), NULL, NULL) != SF_OK)
    fail("start was refused");
  const sf_info_completion info = {NULL, informed};
  if (sandbox->vtbl->info(sandbox, info, NULL, NULL) != SF_OK) fail("info was refused");
  const sf_text_completion text = {NULL, instructed};
  if (sandbox->vtbl->instructions(sandbox, text, NULL, NULL) != SF_OK)
    fail("instructions were refused");

  sf_command command;
  memset(&command, 0, sizeof command);
  command.struct_size = sizeof command;
  command.shell.ptr = (const uint8_t*)"true";
  command.shell.len = 4;
  const sf_stream_events io = {sizeof(sf_stream_events), NULL, stream_data, stream_writable,
                               stream_done};
  const sf_process_events process_events = {sizeof(sf_process_events), NULL, process_started,
                                            process_exit};
  sf_process* process = NULL;
  int reports = 0;
  const sf_error_sink sink = {&reports, reported};
  /* This host runs no processes, and the plugin must be able to say so. */
  if (sandbox->vtbl->spawn(sandbox, GUARDED(command), GUARDED(io), GUARDED(process_events),
                           &process, &sink) == SF_OK ||
      reports != 1)
    fail("spawn");
  const sf_completion done = {NULL, answered};
  if (sandbox->vtbl->stop(sandbox, done, NULL, NULL) != SF_OK) fail("stop was refused");
  if (sandbox->vtbl->destroy(sandbox, done, NULL, NULL) != SF_OK) fail("destroy was refused");
  run_posted();
  if (answers != 6) fail("an answer is missing");
  sandbox->vtbl->release(sandbox);
}

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: short_host PLUGIN");
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail(dlerror());
  sf_plugin_entry_fn entry = NULL;
  void* symbol = dlsym(library, SF_PLUGIN_ENTRY_NAME);
  memcpy(&entry, &symbol, sizeof entry);
  if (entry == NULL) fail("no entry");
  const sf_plugin* plugin = entry();

  const sf_lane_vtbl lane_functions = {sizeof(sf_lane_vtbl), lane_keep, lane_keep, lane_post,
                                       lane_is_current};
  lane.vtbl = GUARDED(lane_functions);
  const sf_host_vtbl host_functions = {sizeof(sf_host_vtbl), SF_ABI_MAJOR, 0, no_service};
  static sf_host host;
  host.vtbl = GUARDED(host_functions);
  if (plugin->init(&host, NULL) != SF_OK) fail("init");

  const sf_open_request open = {sizeof(sf_open_request), str("minimal-c"), str("{}"), &lane};
  sf_provider* provider = NULL;
  if (plugin->open(GUARDED(open), &provider, NULL) != SF_OK) return 3;
  const sf_describe_completion describe = {NULL, described};
  if (provider->vtbl->describe(provider, describe, NULL, NULL) != SF_OK)
    fail("describe was refused");
  sf_create_request create;
  memset(&create, 0, sizeof create);
  create.struct_size = sizeof create;
  create.lane = &lane;
  create.settings = str("{}");
  create.idle_timeout_ms = SF_NONE;
  sf_sandbox* sandbox = NULL;
  if (provider->vtbl->create(provider, GUARDED(create), &sandbox, NULL) != SF_OK) fail("create");
  sandbox_works(sandbox);
  provider->vtbl->release(provider);
  return 0;
}
