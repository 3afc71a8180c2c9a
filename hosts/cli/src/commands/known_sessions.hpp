// All sessions of the store.
#pragma once

#include <iterator>
#include <vector>

#include "sandforge/session_store.hpp"

namespace sandforge::cli {

inline std::vector<SessionRecord> all_sessions(SessionStore& store) {
  std::vector<SessionRecord> all;
  SessionQuery query;
  for (;;) {
    auto page = store.list(query).value();
    const bool last = page.size() < query.limit;
    all.insert(all.end(), std::make_move_iterator(page.begin()),
               std::make_move_iterator(page.end()));
    if (last) return all;
    query.after = all.back().id;
  }
}

}  // namespace sandforge::cli
