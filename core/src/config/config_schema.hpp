// The text of schemas/host-config.schema.json.
#pragma once

namespace sandforge::config_detail {

extern const char* const host_config_schema;

}  // namespace sandforge::config_detail
