/*
 * A plugin of a later minor version, in which sf_open_request has one more member. With ASKS it
 * looks first whether the host knows the member; without it breaks rule 2.
 */
#include <sandforge/abi.h>
#include <string.h>

typedef struct later_open_request {
  sf_open_request base;
  uint64_t added;
} later_open_request;

static sf_status greedy_init(sf_host* host, const sf_error_sink* err) {
  (void)host;
  (void)err;
  return SF_OK;
}

static sf_status greedy_open(const sf_open_request* request, sf_provider** provider,
                             const sf_error_sink* err) {
  const volatile later_open_request* later = (const volatile later_open_request*)request;
  uint64_t added = 0;
  (void)provider;
  (void)err;
#ifdef ASKS
  if (request->struct_size >= sizeof *later) added = later->added;
#else
  added = later->added;
#endif
  return added == 0 ? SF_UNSUPPORTED : SF_INVALID;
}

SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void);
SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void) {
  static const sf_plugin plugin = {sizeof(sf_plugin), SF_ABI_MAJOR, SF_ABI_MINOR, greedy_init,
                                   greedy_open};
  return &plugin;
}
