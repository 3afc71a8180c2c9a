// Bodies of requests to an engine, and what is read of its answers. Members of answers that are
// missing or of another type read as empty: engines drop fields between versions, and those that
// only mimic the API have others. Classes with constructors, because coroutines carry them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sandforge/support/json.hpp"

namespace sandforge::wire::docker {

using Texts = std::vector<std::string>;
using Labels = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view kSandboxLabel = "mastra.sandbox";       // "true"
inline constexpr std::string_view kSandboxIdLabel = "mastra.sandbox.id";  // the session's id
inline constexpr std::string_view kSpecLabel = "sandforge.spec";  // hash of what it was made with
// Of a container whose first process is a guest, and of the guest's volume: hash of its program.
inline constexpr std::string_view kGuestLabel = "sandforge.guest";
// Of a container whose guest ends it when it is idle: after so many milliseconds.
inline constexpr std::string_view kIdleLabel = "sandforge.idle";
// Of an image that is a checkpoint. Names of sessions and checkpoints are percent-encoded.
inline constexpr std::string_view kCheckpointLabel = "sandforge.checkpoint";
inline constexpr std::string_view kCheckpointSessionLabel = "sandforge.checkpoint.session";
inline constexpr std::string_view kCheckpointTimeLabel = "sandforge.checkpoint.created";

// ---- Answers. Absent: the body is not what the engine's API says.

// What an engine says of a refusal; else the start of the body, or nothing.
std::string error_message(std::string_view body);

class CreatedContainer {
 public:
  CreatedContainer() {}
  std::string id;
  Texts warnings;
};
std::optional<CreatedContainer> read_created_container(std::string_view body);

class ContainerSummary {
 public:
  ContainerSummary() {}
  std::string id;
  std::string name;          // the first of its names
  std::int64_t created = 0;  // seconds
  std::string state;
  std::string image_id;
  json::Object labels;
  // Of a label; empty: it has none.
  std::string label(std::string_view name) const;
};
std::optional<std::vector<ContainerSummary>> read_containers(std::string_view body);

// Of a container, at the engine's machine.
class PublishedPort {
 public:
  PublishedPort() {}
  std::string port;  // "80/tcp"
  std::string address;
  std::string host_port;
};

class ContainerInfo {
 public:
  ContainerInfo() {}
  std::string id;
  std::string name;  // without the slash
  std::string image;
  std::string image_id;
  std::string created;  // RFC 3339
  std::string status;   // "running", "exited", … and words of other engines
  bool running = false;
  bool paused = false;
  bool restarting = false;
  bool dead = false;
  bool oom_killed = false;
  std::int64_t exit_code = 0;
  std::string error;
  std::string working_directory;
  std::string user;
  Texts env;
  std::int64_t memory = 0;  // bytes; 0: no limit
  std::int64_t nano_cpus = 0;
  std::optional<Texts> entrypoint;
  Texts mounted;                     // paths of volumes, of this machine's folders, and of tmpfs
  std::vector<PublishedPort> ports;  // while it runs
  json::Object labels;
  // Of a label; empty: it has none.
  std::string label(std::string_view name) const;
  bool is_going() const { return dead || status == "removing" || status == "dead"; }
};
std::optional<ContainerInfo> read_container(std::string_view body);

class ImageInfo {
 public:
  ImageInfo() {}
  std::string id;
  Texts tags;
  std::uint64_t bytes = 0;
  json::Object labels;
  std::string parent;  // id of the image that it was made from, as far as the engine knows one
  std::int64_t created = 0;  // seconds; of a list only
  // In a list they are empty.
  std::string user;
  Texts env;
  std::optional<Texts> entrypoint;
  // Of a label; empty: it has none.
  std::string label(std::string_view name) const;
};
std::optional<ImageInfo> read_image(std::string_view body);
std::optional<std::vector<ImageInfo>> read_images(std::string_view body);

class VolumeInfo {
 public:
  VolumeInfo() {}
  std::string name;
  std::string created;  // RFC 3339
  json::Object labels;
  // Of a label; empty: it has none.
  std::string label(std::string_view name) const;
};
std::optional<std::vector<VolumeInfo>> read_volumes(std::string_view body);

std::optional<std::string> read_exec_id(std::string_view body);

class ExecInfo {
 public:
  ExecInfo() {}
  bool running = false;
  std::optional<std::int64_t> exit_code;  // absent before its start, and while it runs
  bool ended() const { return !running && exit_code.has_value(); }
};
std::optional<ExecInfo> read_exec(std::string_view body);

// One object of the progress of a pull or a build.
class Progress {
 public:
  explicit Progress(const json::Object& object);
  std::string id;
  std::string status;
  std::optional<std::int64_t> current, total;
  std::string error;  // not empty: it failed, whatever the status of the answer was
};

// ---- Requests

class ExecRequest {
 public:
  ExecRequest() {}
  Texts command;
  Texts env;  // "NAME=value", or "NAME" to take it away
  std::string user;
  std::string directory;
  bool pipe_stdin = false;
  bool attach = true;  // to its output
};
std::string write_exec(const ExecRequest& request);
// detach: it runs on, and nobody hears of it.
std::string write_exec_start(bool detach);

// {"label": ["name=value"]}, as filters are; without a value: whatever it is.
std::string label_filter(std::string_view name, std::string_view value = {});
std::string label_filter(const Labels& all);

// Instructions that an import applies to its image, one each; "\n" has no place in them.
std::string write_env(std::string_view name, std::string_view value);
std::string write_label(std::string_view name, std::string_view value);
std::string write_entrypoint(const Texts& words);

}  // namespace sandforge::wire::docker
