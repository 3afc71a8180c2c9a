#include "plugin/members.hpp"

namespace sandforge::plugin {

const char* missing_member(const sf_provider* provider) noexcept {
  if (provider == nullptr) return "the provider itself";
  if (provider->vtbl == nullptr) return "vtbl";
  if (!SF_HAS_FN(provider->vtbl, describe)) return "describe";
  if (!SF_HAS_FN(provider->vtbl, create)) return "create";
  if (!SF_HAS_FN(provider->vtbl, extension)) return "extension";
  if (!SF_HAS_FN(provider->vtbl, release)) return "release";
  return nullptr;
}

const char* missing_member(const sf_sandbox* sandbox) noexcept {
  if (sandbox == nullptr) return "the sandbox itself";
  if (sandbox->vtbl == nullptr) return "vtbl";
  if (!SF_HAS_FN(sandbox->vtbl, start)) return "start";
  if (!SF_HAS_FN(sandbox->vtbl, stop)) return "stop";
  if (!SF_HAS_FN(sandbox->vtbl, destroy)) return "destroy";
  if (!SF_HAS_FN(sandbox->vtbl, info)) return "info";
  if (!SF_HAS_FN(sandbox->vtbl, instructions)) return "instructions";
  if (!SF_HAS_FN(sandbox->vtbl, spawn)) return "spawn";
  if (!SF_HAS_FN(sandbox->vtbl, extension)) return "extension";
  if (!SF_HAS_FN(sandbox->vtbl, release)) return "release";
  return nullptr;
}

const char* missing_member(const sf_process* process) noexcept {
  if (process == nullptr) return "the process itself";
  if (process->vtbl == nullptr) return "vtbl";
  if (!SF_HAS_FN(process->vtbl, stream)) return "stream";
  if (!SF_HAS_FN(process->vtbl, signal)) return "signal";
  if (!SF_HAS_FN(process->vtbl, release)) return "release";
  return nullptr;
}

const char* missing_member(const sf_stream* stream) noexcept {
  if (stream == nullptr) return "its stream";
  if (stream->vtbl == nullptr) return "vtbl of its stream";
  if (!SF_HAS_FN(stream->vtbl, grant)) return "grant";
  if (!SF_HAS_FN(stream->vtbl, write)) return "write";
  if (!SF_HAS_FN(stream->vtbl, shutdown_write)) return "shutdown_write";
  if (!SF_HAS_FN(stream->vtbl, cancel)) return "cancel";
  if (!SF_HAS_FN(stream->vtbl, release)) return "release of its stream";
  return nullptr;
}

}  // namespace sandforge::plugin
