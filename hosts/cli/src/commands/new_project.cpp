#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "commands/commands.hpp"
#include "exit_codes.hpp"
#include "project_files.hpp"

namespace sandforge::cli {
namespace {

namespace fs = std::filesystem;
using Values = std::vector<std::pair<std::string_view, std::string>>;

[[noreturn]] void fail(const fs::path& path, const std::string& why) {
  Error error(Status::invalid, "cannot make " + path.string() + ": " + why, "cli.new_failed");
  error.details.set("path", path.string());
  throw_error(std::move(error));
}

// "my-cloud" as "MyCloud".
std::string class_name(const std::string& name) {
  std::string out;
  bool begins = true;
  for (const char c : name) {
    if (c != '-') out += begins && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '-';
  }
  return out;
}

Values values_of(const NewArguments& arguments) {
  std::string target = arguments.name + "_plugin";
  std::replace(target.begin(), target.end(), '-', '_');
  const bool c = arguments.language == "c";
  return {{"@NAME@", arguments.name},
          {"@CLASS@", class_name(arguments.name)},
          {"@TARGET@", target},
          {"@SOURCE@", c ? "src/provider.c" : "src/provider.cpp"},
          {"@LIBS@", c ? "" : "LIBS sandforge::support\n  "},
          {"@STANDARD@", c                                   ? "c_std_11"
                         : arguments.language == "coroutine" ? "cxx_std_20"
                                                             : "cxx_std_17"}};
}

std::string filled_in(std::string_view content, const Values& values) {
  std::string out(content);
  for (const auto& [mark, value] : values)
    for (auto at = out.find(mark); at != std::string::npos; at = out.find(mark, at + value.size()))
      out.replace(at, mark.size(), value);
  return out;
}

// A folder beside the project's that is removed again, unless its content was moved out of it.
class Draft {
 public:
  explicit Draft(const fs::path& project) {
    std::string name = (project.parent_path() / ("." + project.filename().string() + "-XXXXXX"));
    if (::mkdtemp(name.data()) == nullptr) fail(project, std::strerror(errno));
    path_ = name;
  }
  ~Draft() {
    std::error_code ignored;  // whatever failed before is what people should hear of
    fs::remove_all(path_, ignored);
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::string_view name, const std::string& content) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << content;
    out.close();
    if (!out) fail(file, "it cannot be written");
  }

  // Into the folder, which is empty. What was moved is taken back when something fails.
  void move_into(const fs::path& folder) const {
    std::vector<fs::path> moved;
    try {
      for (const auto& entry : fs::directory_iterator(path_)) {
        const fs::path to = folder / entry.path().filename();
        fs::rename(entry.path(), to);
        moved.push_back(to);
      }
    } catch (...) {
      std::error_code ignored;
      for (const auto& path : moved)
        fs::remove_all(path, ignored);
      throw;
    }
  }

 private:
  fs::path path_;
};

// The project's folder is there afterwards, and empty. True: it was made.
bool make_folder(const fs::path& folder) {
  if (fs::create_directory(folder)) return true;
  if (!fs::is_empty(folder)) fail(folder, "the folder is not empty");
  return false;
}

std::vector<std::string> write_project(const NewArguments& arguments, const fs::path& folder) {
  if (fs::exists(folder) && !fs::is_directory(folder)) fail(folder, "there is a file of that name");
  if (!fs::is_directory(folder.parent_path())) fail(folder, "its parent folder does not exist");
  const Values values = values_of(arguments);
  const Draft draft(folder);
  std::vector<std::string> written;
  for (const auto& file : project_files()) {
    if (file.language != "all" && file.language != arguments.language) continue;
    draft.write(file.path, filled_in(file.content, values));
    written.emplace_back(file.path);
  }
  const bool made = make_folder(folder);
  try {
    draft.move_into(folder);
  } catch (...) {
    std::error_code ignored;
    if (made) fs::remove(folder, ignored);
    throw;
  }
  return written;
}

}  // namespace

int new_command(App& app, const NewArguments& arguments) {
  auto folder = fs::absolute(arguments.folder.empty() ? arguments.name : arguments.folder);
  folder = folder.lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::vector<std::string> files;
  try {
    files = write_project(arguments, folder);
  } catch (const fs::filesystem_error& e) {
    fail(folder, e.code().message());
  }
  if (app.terminal().json()) {
    json::Array names;
    for (const auto& file : files)
      names.emplace_back(file);
    json::Object out;
    out.set("name", arguments.name);
    out.set("folder", folder.string());
    out.set("files", std::move(names));
    return app.terminal().exit_code_after(app.terminal().print_json(out));
  }
  std::string text = "The provider " + arguments.name + " is in " + folder.string() + ":\n";
  for (const auto& file : files)
    text += "  " + file + "\n";
  text +=
      "Next, in that folder, where DIR is the prefix of this installation:\n"
      "  cmake -S . -B build -DCMAKE_PREFIX_PATH=DIR\n"
      "  cmake --build build\n"
      "  ctest --test-dir build\n"
      "  sandforge --config sandforge.yaml run -- echo hello\n";
  return app.terminal().exit_code_after(app.terminal().print_text(text));
}

}  // namespace sandforge::cli
