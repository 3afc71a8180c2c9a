#include "sandforge/wire/guest/files.hpp"

#include "bytes.hpp"
#include "sandforge/wire/guest/frame.hpp"

namespace sandforge::wire::guest {
namespace {

constexpr std::size_t kEntrySize = 26;  // at least
constexpr std::size_t kListedPath = 2 * kMaxFilePath;

void put_entry(Writer& w, const FileEntry& e) {
  w.text(e.path).number(static_cast<std::uint8_t>(e.kind)).number(e.mode).number(e.size);
  w.number(e.modified_ns).flag(e.link_target.has_value());
  if (e.link_target) w.text(*e.link_target);
}

void get_entry(Reader& r, FileEntry& e) {
  bool has = false;
  r.text(e.path, kListedPath).choice(e.kind, FileKind::symlink).number(e.mode).number(e.size);
  r.number(e.modified_ns).flag(has);
  if (has) r.text(e.link_target.emplace(), kMaxFilePath);
}

const char* wrong_path(const std::string& path) {
  if (path.empty()) return "the path is empty";
  if (path.find('\0') != std::string::npos) return "the path contains a NUL byte";
  if (path.size() > kMaxFilePath) return "the path has more than 4096 bytes";
  return nullptr;
}

}  // namespace

void FileRequest::encode(std::string& out) const {
  Writer w(out);
  w.text(path).text(target).number(mode).number(depth).number(offset).number(length);
  w.number(window).flag(parents).flag(replace).flag(tree).flag(recursive);
}

bool FileRequest::decode(std::string_view in) {
  Reader r(in);
  r.text(path, kMaxFilePath).text(target, kMaxFilePath).number(mode).number(depth);
  r.number(offset).number(length).number(window).flag(parents).flag(replace).flag(tree);
  r.flag(recursive);
  return r.done();
}

std::string FileRequest::check() const {
  if (const char* wrong = wrong_path(path)) return wrong;
  if (!target.empty())
    if (const char* wrong = wrong_path(target)) return wrong;
  if (mode > 07777) return "the mode has other than permission bits";
  return {};
}

void FileEntries::encode(std::string& out) const {
  Writer w(out);
  w.number(static_cast<std::uint32_t>(entries.size()));
  for (const FileEntry& e : entries)
    put_entry(w, e);
}

bool FileEntries::decode(std::string_view in) {
  Reader r(in);
  entries.clear();
  for (std::size_t n = r.count(kEntrySize, kMaxListedFiles); n > 0 && r.ok(); --n)
    get_entry(r, entries.emplace_back());
  return r.done();
}

void FileEvent::encode(std::string& out) const {
  Writer(out).number(static_cast<std::uint8_t>(change)).text(path);
}

bool FileEvent::decode(std::string_view in) {
  Reader r(in);
  r.choice(change, FileChange::overflow).text(path, kListedPath);
  return r.done();
}

}  // namespace sandforge::wire::guest
