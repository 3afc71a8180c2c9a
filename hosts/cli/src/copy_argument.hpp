// One end of a copy, as the command line names it.
#pragma once

#include <optional>
#include <string>

namespace sandforge::cli {

struct CopyEnd {
  std::optional<std::string> session;  // absent: here
  std::string path;                    // "-", here: standard input or output
};

// "SESSION:PATH", or a path of this machine; one with a colon in it has a slash before that: ./a:b.
CopyEnd parse_copy_end(const std::string& word);

}  // namespace sandforge::cli
