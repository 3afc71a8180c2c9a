// Many commands at once.
#pragma once

#include "local_host.hpp"
#include "rows.hpp"

namespace sandforge::bench {

std::vector<Row> many_rows(LocalHost& host, const Scale& scale);

}  // namespace sandforge::bench
