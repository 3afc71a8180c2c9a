// Why a document was refused: a second walk, made for messages.
#pragma once

#include <vector>

#include "model.hpp"

namespace sandforge::schema_detail {

// Every mistake in document order, at most max_issues. Empty if the walk finds none.
std::vector<Issue> explain(const Node& root, const json::Value& document);

}  // namespace sandforge::schema_detail
