// What a guest says, in the terms of sandforge/abi.h: how a process ended, what an error means.
// For those who pass commands on from one to the other; they link sandforge::sdk.
#pragma once

#include <sandforge/abi.h>

#include "sandforge/wire/guest/messages.hpp"

namespace sandforge::wire::guest {

// cancelled: the caller has asked for the end of the process.
inline sf_exit to_abi(const Exit& exit, bool cancelled) {
  sf_exit out{};
  out.struct_size = sizeof(out);
  out.code = exit.code.value_or(0);
  out.signal = exit.signal.value_or(0);
  if (exit.out_of_memory) {
    out.outcome = SF_EXIT_OUT_OF_MEMORY;
  } else if (exit.timed_out) {
    out.outcome = SF_EXIT_TIMED_OUT;
  } else if (cancelled && exit.killed) {
    out.outcome = SF_EXIT_CANCELLED;
  } else {
    out.outcome = exit.signal ? SF_EXIT_SIGNALED : SF_EXIT_EXITED;
  }
  if (exit.killed && exit.signal) out.flags |= SF_EXIT_KILLED;
  return out;
}

struct ErrorMeaning {
  sf_status status = SF_INTERNAL;
  const char* reason = "guest.internal";
};

// Of an error about a command. What a guest that is stopping means depends on who stops it:
// `stopping` says.
inline ErrorMeaning meaning_of(ErrorCode code, const ErrorMeaning& stopping) {
  switch (code) {
    case ErrorCode::invalid:
      return {SF_INVALID, "command.invalid"};
    case ErrorCode::not_found:
      return {SF_NOT_FOUND, "process.not_found"};
    case ErrorCode::not_permitted:
      return {SF_FORBIDDEN, "command.not_permitted"};
    case ErrorCode::not_executable:
      return {SF_INVALID, "command.not_executable"};
    case ErrorCode::no_command:
      return {SF_NOT_FOUND, "command.not_found"};
    case ErrorCode::no_directory:
      return {SF_INVALID, "command.no_directory"};
    case ErrorCode::too_large:
      return {SF_INVALID, "command.too_large"};
    case ErrorCode::limit:
      return {SF_NO_SPACE, "command.limit"};
    case ErrorCode::conflict:
      return {SF_ALREADY_EXISTS, "command.already_ran"};
    case ErrorCode::unsupported:
      return {SF_UNSUPPORTED, "command.unsupported"};
    case ErrorCode::stopping:
      return stopping;
    case ErrorCode::internal:
    case ErrorCode::outside:
    case ErrorCode::exists:
    case ErrorCode::not_empty:
      break;
  }
  return {};
}

// Of an error about a file.
inline ErrorMeaning file_meaning_of(ErrorCode code, const ErrorMeaning& stopping) {
  switch (code) {
    case ErrorCode::invalid:
      return {SF_INVALID, "file.invalid"};
    case ErrorCode::not_found:
      return {SF_NOT_FOUND, "file.not_found"};
    case ErrorCode::not_permitted:
      return {SF_FORBIDDEN, "file.not_permitted"};
    case ErrorCode::no_directory:
      return {SF_INVALID, "file.no_directory"};
    case ErrorCode::too_large:
      return {SF_INVALID, "file.too_large"};
    case ErrorCode::limit:
      return {SF_NO_SPACE, "file.no_space"};
    case ErrorCode::conflict:
      return {SF_UNAVAILABLE, "file.busy"};
    case ErrorCode::outside:
      return {SF_FORBIDDEN, "file.outside"};
    case ErrorCode::exists:
      return {SF_ALREADY_EXISTS, "file.exists"};
    case ErrorCode::not_empty:
      return {SF_INVALID, "file.not_empty"};
    case ErrorCode::unsupported:
      return {SF_UNSUPPORTED, "feature.files"};
    case ErrorCode::stopping:
      return stopping;
    case ErrorCode::not_executable:
    case ErrorCode::no_command:
    case ErrorCode::internal:
      break;
  }
  return {};
}

// It was already run: the effect has taken place, or may have.
inline bool may_have_started(ErrorCode code) {
  return code == ErrorCode::conflict;
}

}  // namespace sandforge::wire::guest
