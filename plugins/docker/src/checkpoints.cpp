#include "checkpoints.hpp"

#include <sandforge/plugin/coroutine.hpp>
#include <sandforge/support/encoding.hpp>
#include <sandforge/wire/docker/json_stream.hpp>

#include <algorithm>
#include <charconv>

namespace sandforge::docker {
namespace {

constexpr milliseconds kImageTime = std::chrono::minutes(2);
constexpr std::size_t kArchiveEnd = 1024;  // zeros at the end of every tar
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

std::string image_path(const std::string& image) {
  return "/images/" + percent_encode_path(image);
}

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// One instruction is one line, so what holds a line break cannot be said.
bool is_one_line(const std::string& text) {
  return text.find_first_of(std::string_view("\0\r\n", 3)) == std::string::npos;
}

// What the new image has of the one that the container was made from: nothing that was given to the
// container goes into it.
wire::Texts instructions_of(const wire::ImageInfo& origin, std::vector<std::string>& warnings) {
  wire::Texts out;
  for (const std::string& entry : origin.env) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.empty() || name.size() == entry.size()) continue;
    if (is_one_line(entry) && name.find_first_not_of(kNameCharacters) == std::string::npos) {
      out.push_back(wire::write_env(name, entry.substr(name.size() + 1)));
    } else {
      warnings.push_back("a variable of the image is not in the checkpoint: " +
                         percent_encode(name));
    }
  }
  if (origin.entrypoint && !origin.entrypoint->empty())
    out.push_back(wire::write_entrypoint(*origin.entrypoint));
  if (origin.user.find_first_not_of(std::string(kNameCharacters) + ':') != std::string::npos) {
    warnings.emplace_back("the user of the image is not in the checkpoint");
  } else if (!origin.user.empty()) {
    out.push_back("USER " + origin.user);
  }
  return out;
}

// How many zeros what was read ends with.
std::size_t zeros_after(std::string_view piece, std::size_t before) {
  const auto last = piece.find_last_not_of('\0');
  if (last == std::string_view::npos) return std::min(before + piece.size(), kArchiveEnd);
  return piece.size() - last - 1;
}

Error cut_short(const std::string& what) {
  return fault(Code::unavailable, "docker.cut_short", "the engine cut " + what + " short");
}

Error container_gone() {
  return fault(Code::gone, "sandbox.gone", "the container no longer exists");
}

plugin::Checkpoint told(const wire::ImageInfo& image, std::string name) {
  plugin::Checkpoint out;
  out.name = std::move(name);
  const std::string time = image.label(wire::kCheckpointTimeLabel);
  std::from_chars(time.data(), time.data() + time.size(), out.created_at);
  out.bytes = image.bytes;
  return out;
}

}  // namespace

// ---- Looking

Task<std::optional<wire::ImageInfo>> Checkpoints::inspect(std::string image) {
  const HttpAnswer answer = co_await engine_.call("GET", image_path(image) + "/json");
  if (answer.status == 404) co_return std::nullopt;
  engine_.throw_if_refused(answer, "look at an image");
  auto info = wire::read_image(answer.body);
  if (!info) throw engine_.no_answer_of_api("look at an image");
  co_return info;
}

Task<bool> Checkpoints::exists(std::optional<std::string> name) {
  if (!name) co_return false;
  const std::optional<wire::ImageInfo> found = co_await inspect(wire::checkpoint_image(*name));
  co_return found && found->label(wire::kCheckpointLabel) == percent_encode(*name);
}

Task<void> Checkpoints::must_exist(std::string name) {
  const bool there = co_await exists(name);
  if (!there)
    throw fault(Code::not_found, "docker.no_checkpoint", "there is no checkpoint \"" + name + "\"");
}

Task<Booted> Checkpoints::choose(Boot boot) {
  Booted out;
  if (boot.wanted) {
    co_await must_exist(*boot.wanted);
    boot.own = boot.wanted;
  }
  const bool own = co_await exists(boot.own);
  if (own) {
    out.image = wire::checkpoint_image(*boot.own);
    out.provenance = plugin::Provenance::checkpoint;
    co_return out;
  }
  const bool seed = co_await exists(boot.seed);
  if (seed) {
    out.image = wire::checkpoint_image(*boot.seed);
    out.provenance = plugin::Provenance::seed;
  }
  co_return out;
}

Task<std::vector<plugin::Checkpoint>> Checkpoints::list() {
  wire::Query query;
  query.add("filters", wire::label_filter(wire::kCheckpointLabel));
  const HttpAnswer answer = co_await engine_.call("GET", "/images/json" + query.text());
  engine_.throw_if_refused(answer, "list the images");
  const auto found = wire::read_images(answer.body);
  if (!found) throw engine_.no_answer_of_api("list the images");
  std::vector<plugin::Checkpoint> out;
  for (const wire::ImageInfo& image : *found) {
    const std::optional<std::string> name = percent_decode(image.label(wire::kCheckpointLabel));
    // Images that were built on a checkpoint have its labels, too.
    const bool named = name && std::find(image.tags.begin(), image.tags.end(),
                                         wire::checkpoint_image(*name)) != image.tags.end();
    if (named) out.push_back(told(image, *name));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return a.created_at != b.created_at ? a.created_at > b.created_at : a.name < b.name;
  });
  co_return out;
}

// ---- Removing

Task<void> Checkpoints::remove(std::string name) {
  const std::string path = image_path(wire::checkpoint_image(name));
  HttpAnswer answer = co_await engine_.call("DELETE", path, std::string(), kImageTime);
  // A container was made from it: it loses its name now, and goes with that container.
  if (answer.status == 409)
    answer = co_await engine_.call("DELETE", path + "?force=true", std::string(), kImageTime);
  if (answer.status != 404) engine_.throw_if_refused(answer, "remove the checkpoint");
}

Task<void> Checkpoints::drop_unnamed(std::string image_id) {
  const std::optional<wire::ImageInfo> image = co_await inspect(image_id);
  if (!image || !image->tags.empty() || image->label(wire::kCheckpointLabel).empty()) co_return;
  const HttpAnswer answer =
      co_await engine_.call("DELETE", image_path(image_id), std::string(), kImageTime);
  // 409: a container still needs it.
  if (answer.status != 404 && answer.status != 409)
    engine_.throw_if_refused(answer, "remove an image that was replaced");
}

// ---- Capturing

Task<void> Checkpoints::pause(std::string container) {
  const HttpAnswer answer =
      co_await engine_.call("POST", "/containers/" + percent_encode(container) + "/pause");
  if (answer.status == 404) throw container_gone();
  engine_.throw_if_refused(answer, "pause the container");
}

Task<void> Checkpoints::unpause(std::string container) {
  const HttpAnswer answer =
      co_await engine_.call("POST", "/containers/" + percent_encode(container) + "/unpause");
  // It is gone, or is not paused any more.
  if (answer.status != 404 && answer.status != 409)
    engine_.throw_if_refused(answer, "unpause the container");
}

// The status said 200 before anything was imported: what happened stands in the stream.
Task<std::string> Checkpoints::read_import(HttpStream& stream) {
  wire::JsonStream objects;
  std::string made;
  for (;;) {
    const std::optional<plugin::Output> piece = co_await stream.read_some();
    if (!piece) break;
    std::string_view bytes = piece->data;
    while (auto object = objects.next(bytes)) {
      const wire::Progress step(*object);
      if (!step.error.empty()) {
        const bool full = step.error.find("no space left on device") != std::string::npos;
        throw fault(full ? Code::no_space : Code::unavailable,
                    full ? "docker.no_space" : "docker.import",
                    "the engine cannot keep the checkpoint: " + step.error);
      }
      if (step.status.rfind("sha256:", 0) == 0) made = step.status;
    }
  }
  if (made.empty() || !objects.whole()) throw cut_short("its answer");
  co_return made;
}

Task<std::string> Checkpoints::copy(std::string container, std::string target) {
  plugin::HttpRequest from("GET", "/containers/" + percent_encode(container) + "/export");
  from.timeout = kImageTime;
  HttpStream files = co_await engine_.open(from);
  if (files.status() != 200) {
    const HttpAnswer refused = co_await files.rest();
    if (refused.status == 404) throw container_gone();
    engine_.throw_if_refused(refused, "read the container's files");
    throw engine_.no_answer_of_api("read the container's files");
  }
  plugin::HttpRequest to("POST", target);
  to.headers.emplace_back("Content-Type", "application/x-tar");
  HttpStream image = co_await engine_.upload(to);
  std::size_t zeros = 0;
  bool taken = true;
  while (taken) {
    const std::optional<plugin::Output> piece = co_await files.read_some();
    if (!piece) break;
    zeros = zeros_after(piece->data, zeros);
    try {
      co_await image.write_all(std::string(piece->data));
    } catch (const Error&) {
      taken = false;  // it has answered, or the wait for its answer tells why not
    }
  }
  // A part of the files must not become a whole image.
  if (taken && zeros < kArchiveEnd) throw cut_short("the container's files");
  if (taken) image.shutdown_write();
  co_await image.answered();
  if (image.status() != 200) {
    const HttpAnswer refused = co_await image.rest();
    engine_.throw_if_refused(refused, "keep the checkpoint");
    throw engine_.no_answer_of_api("keep the checkpoint");
  }
  std::string made = co_await read_import(image);
  co_return made;
}

Task<plugin::Checkpoint> Checkpoints::capture(wire::ContainerInfo of, std::string name,
                                              std::string session) {
  plugin::Checkpoint out;
  out.name = name;
  const std::string reference = wire::checkpoint_image(name);
  const std::optional<wire::ImageInfo> before = co_await inspect(reference);
  std::optional<wire::ImageInfo> origin = co_await inspect(of.image_id);
  if (!origin) {
    origin.emplace();
    if (of.label(wire::kGuestLabel).empty()) origin->entrypoint = of.entrypoint;
    origin->user = of.user;
    out.warnings.emplace_back(
        "the container's image was removed: its variables are not in the checkpoint");
  }
  if (!of.mounted.empty()) {
    std::string paths;
    for (const std::string& path : of.mounted)
      if (path != kGuestFolder && path != kGuestRun) paths += (paths.empty() ? "" : ", ") + path;
    if (!paths.empty())
      out.warnings.push_back("volumes, folders of the host and tmpfs are not captured: " + paths);
  }
  out.created_at = now_ns();
  wire::Texts changes = instructions_of(*origin, out.warnings);
  changes.push_back(wire::write_label(wire::kCheckpointLabel, percent_encode(name)));
  changes.push_back(wire::write_label(wire::kCheckpointSessionLabel, percent_encode(session)));
  changes.push_back(wire::write_label(wire::kCheckpointTimeLabel, std::to_string(out.created_at)));
  const wire::ImageReference split = wire::split_image(reference);
  wire::Query query;
  query.add("fromSrc", "-").add("repo", split.repository).add("tag", split.tag);
  if (!options_->platform.empty()) query.add("platform", options_->platform);
  for (const std::string& change : changes)
    query.add("changes", change);

  co_await pause(of.id);
  std::exception_ptr failed;
  std::string made;
  try {
    made = co_await copy(of.id, "/images/create" + query.text());
  } catch (...) {
    failed = std::current_exception();
  }
  co_await plugin::with_stop(plugin::StopToken(), unpause(of.id));
  if (failed) std::rethrow_exception(failed);

  const std::optional<wire::ImageInfo> now = co_await inspect(made);
  if (now) out.bytes = now->bytes;
  if (before && before->id != made) co_await drop_unnamed(before->id);
  // Another host captured under this name at the same moment, and came after.
  if (now && now->tags.empty()) co_await drop_unnamed(made);
  co_return out;
}

}  // namespace sandforge::docker
