#include "services/plugin_host.hpp"

namespace sandforge::services {

const void* process_service() noexcept {
  return nullptr;
}

}  // namespace sandforge::services
