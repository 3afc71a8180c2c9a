// Errors of this provider: a code, a stable reason, and one sentence.
#pragma once

#include <sandforge/plugin/error.hpp>

namespace sandforge::docker {

using plugin::Code;
using plugin::Error;

inline Error fault(Code code, std::string reason, std::string message) {
  Error error(code, std::move(message));
  error.detail("reason", std::move(reason));
  return error;
}

}  // namespace sandforge::docker
