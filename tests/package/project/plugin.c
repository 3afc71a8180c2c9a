/* The smallest plugin in C: it says what it is, and refuses to be opened. */
#include <sandforge/abi.h>

#ifdef LEAKY
SF_EXPORT int leaked_by_mistake(void);
int leaked_by_mistake(void) {
  return 1;
}
#endif

#ifdef UNRESOLVED
sf_status nobody_has_this(void);
#endif

static sf_status init(sf_host* host, const sf_error_sink* err) {
  (void)host;
  (void)err;
  return SF_OK;
}

static sf_status open_provider(const sf_open_request* request, sf_provider** provider,
                               const sf_error_sink* err) {
  (void)request;
  (void)provider;
  (void)err;
#ifdef UNRESOLVED
  return nobody_has_this();
#else
  return SF_UNSUPPORTED;
#endif
}

static const sf_plugin plugin = {
    .struct_size = sizeof(sf_plugin),
    .abi_major = SF_ABI_MAJOR,
    .abi_minor = SF_ABI_MINOR,
    .init = init,
    .open = open_provider,
};

SF_EXPORT const sf_plugin* SF_PLUGIN_ENTRY(void);
const sf_plugin* SF_PLUGIN_ENTRY(void) {
  return &plugin;
}
