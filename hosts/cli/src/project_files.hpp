// The files of a new project, as sdk/template has them.
#pragma once

#include <string_view>
#include <vector>

namespace sandforge::cli {

struct ProjectFile {
  std::string_view language;  // "all", or the one that it is for
  std::string_view path;      // below the folder of the project
  std::string_view content;   // with @NAME@ and others in it
};

const std::vector<ProjectFile>& project_files();

}  // namespace sandforge::cli
