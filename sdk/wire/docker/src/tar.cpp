#include "sandforge/wire/docker/tar.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sandforge::wire::docker {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kLargestMeta = 64 * 1024;
constexpr std::uint64_t kLargestOctal = (std::uint64_t{1} << 33) - 1;  // 11 digits

// Where the fields of a header are.
struct Field {
  std::size_t at;
  std::size_t size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kMtime{136, 12}, kSum{148, 8}, kLink{157, 100}, kMagic{257, 6}, kPrefix{345, 155};
constexpr std::size_t kType = 156;

constexpr std::uint64_t padding_of(std::uint64_t size) noexcept {
  return (kBlock - size % kBlock) % kBlock;
}

std::string_view text_at(std::string_view block, Field field) {
  const std::string_view all = block.substr(field.at, field.size);
  return all.substr(0, all.find('\0'));
}

// Octal digits, or a binary number after a byte 0x80. Absent: neither, or negative.
std::optional<std::uint64_t> number_at(std::string_view block, Field field) {
  std::string_view text = block.substr(field.at, field.size);
  if ((text.front() & '\x80') != 0) {
    if (text.front() != '\x80') return std::nullopt;
    std::uint64_t out = 0;
    for (const char c : text.substr(1)) {
      if (out >> 55 != 0) return std::nullopt;
      out = out << 8 | static_cast<unsigned char>(c);
    }
    return out;
  }
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return 0;
  text.remove_prefix(first);
  std::uint64_t out = 0;
  for (const char c : text) {
    if (c == '\0' || c == ' ') break;
    if (c < '0' || c > '7') return std::nullopt;
    out = out << 3 | static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

std::uint64_t sum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kSum.at && i < kSum.at + kSum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

void put_octal(std::string& block, Field field, std::uint64_t value) {
  for (std::size_t i = field.size - 1; i-- > 0; value >>= 3)
    block[field.at + i] = static_cast<char>('0' + (value & 7));
}

void put_text(std::string& block, Field field, std::string_view text) {
  text = text.substr(0, field.size);
  std::copy(text.begin(), text.end(), block.begin() + static_cast<std::ptrdiff_t>(field.at));
}

std::string header_block(const TarEntry& entry, std::string_view path, char type,
                         std::uint64_t size) {
  std::string block(kBlock, '\0');
  put_text(block, kName, path);
  put_octal(block, kMode, entry.mode & 07777);
  put_octal(block, kUid, std::min<std::uint32_t>(entry.uid, 07777777));
  put_octal(block, kGid, std::min<std::uint32_t>(entry.gid, 07777777));
  put_octal(block, kSize, std::min(size, kLargestOctal));
  put_octal(block, kMtime, static_cast<std::uint64_t>(std::max<std::int64_t>(entry.mtime, 0)));
  block[kType] = type;
  put_text(block, kLink, entry.link_target);
  put_text(block, kMagic, std::string_view("ustar\0", 6));
  block[263] = block[264] = '0';
  put_octal(block, {kSum.at, 7}, sum_of(block));
  block[kSum.at + 7] = ' ';
  return block;
}

// "LENGTH key=value\n", where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length)
    ++length;
  return std::to_string(length) + ' ' + std::string(key) + '=' + std::string(value) + '\n';
}

char letter_of(TarType type) {
  switch (type) {
    case TarType::file:
      return '0';
    case TarType::directory:
      return '5';
    case TarType::symlink:
      return '2';
    case TarType::hardlink:
      return '1';
    case TarType::other:
      break;
  }
  throw std::invalid_argument("an archive holds files, directories and links");
}

}  // namespace

std::optional<std::string> plain_path(std::string_view path) {
  if (path.find('\0') != std::string_view::npos || path.substr(0, 1) == "/") return std::nullopt;
  std::string out;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return std::nullopt;
    if (!out.empty()) out += '/';
    out += part;
  }
  return out;
}

bool stays_inside(std::string_view path, std::string_view target) {
  if (target.substr(0, 1) == "/" || target.find('\0') != std::string_view::npos) return false;
  auto depth = std::count(path.begin(), path.end(), '/');
  while (!target.empty()) {
    const auto slash = std::min(target.find('/'), target.size());
    const std::string_view part = target.substr(0, slash);
    target.remove_prefix(std::min(slash + 1, target.size()));
    if (part.empty() || part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

// ---- Writing

std::string TarWriter::header(const TarEntry& entry) {
  const char type = letter_of(entry.type);
  auto path = plain_path(entry.path);
  if (!path || path->empty()) throw std::invalid_argument("no path of an archive: " + entry.path);
  if (entry.link_target.find('\0') != std::string::npos)
    throw std::invalid_argument("a link's target holds a NUL");
  if (entry.type == TarType::directory) *path += '/';
  const std::uint64_t size = entry.type == TarType::file ? entry.size : 0;
  std::string pax;
  if (path->size() > kName.size) pax += pax_record("path", *path);
  if (entry.link_target.size() > kLink.size) pax += pax_record("linkpath", entry.link_target);
  if (size > kLargestOctal) pax += pax_record("size", std::to_string(size));
  std::string out;
  if (!pax.empty()) out = header_block({}, "pax", 'x', pax.size()) + pax + padding(pax.size());
  return out + header_block(entry, *path, type, size);
}

std::string TarWriter::padding(std::uint64_t size) {
  return std::string(static_cast<std::size_t>(padding_of(size)), '\0');
}

std::string TarWriter::finish() {
  return std::string(2 * kBlock, '\0');
}

// ---- Reading

TarReader::Event TarReader::fail(std::string why) {
  state_ = State::failed;
  error_ = std::move(why);
  block_.clear();
  return Event::failed;
}

TarReader::Event TarReader::next(std::string_view& bytes) {
  for (;;) {
    switch (state_) {
      case State::failed:
        return Event::failed;
      case State::end:
        bytes = {};
        return Event::end;
      case State::header:
      case State::meta: {
        const std::uint64_t wanted = (state_ == State::header ? kBlock : left_) - block_.size();
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, bytes.size()));
        block_ += bytes.substr(0, n);
        bytes.remove_prefix(n);
        if (n < wanted) return Event::more;
        const Event event = state_ == State::header ? take_header() : take_meta();
        if (event != Event::more) return event;
        break;
      }
      case State::content: {
        if (left_ == 0) {
          state_ = State::padding;
          break;
        }
        if (bytes.empty()) return Event::more;
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
        data_ = bytes.substr(0, n);
        bytes.remove_prefix(n);
        left_ -= n;
        return Event::data;
      }
      case State::padding: {
        const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(padding_, bytes.size()));
        bytes.remove_prefix(n);
        padding_ -= n;
        if (padding_ > 0) return Event::more;
        state_ = State::header;
        break;
      }
    }
  }
}

// `more`: nothing to tell of it.
TarReader::Event TarReader::take_header() {
  const std::string block = std::exchange(block_, {});
  if (std::all_of(block.begin(), block.end(), [](char c) { return c == '\0'; })) {
    if (std::exchange(zero_seen_, true)) state_ = State::end;
    return Event::more;
  }
  zero_seen_ = false;
  const auto sum = number_at(block, kSum);
  if (!sum || *sum != sum_of(block)) return fail("a header whose sum is wrong");
  auto size = number_at(block, kSize);
  const auto mode = number_at(block, kMode), uid = number_at(block, kUid),
             gid = number_at(block, kGid);
  if (!size || !mode || !uid || !gid) return fail("a header with a number that is none");
  const char type = block[kType];
  if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
    if (*size > kLargestMeta) return fail("a header of more than 64 KiB");
    meta_ = type;
    left_ = *size;
    padding_ = padding_of(*size);
    state_ = State::meta;
    return Event::more;
  }
  if (long_size_) size = std::exchange(long_size_, std::nullopt);
  entry_ = {};
  entry_.mode = static_cast<std::uint32_t>(*mode & 07777);
  entry_.uid = static_cast<std::uint32_t>(*uid);
  entry_.gid = static_cast<std::uint32_t>(*gid);
  entry_.mtime = static_cast<std::int64_t>(number_at(block, kMtime).value_or(0));
  entry_.path = text_at(block, kName);
  const bool posix = block.compare(kMagic.at, 6, std::string_view("ustar\0", 6)) == 0;
  if (posix && !text_at(block, kPrefix).empty())
    entry_.path.insert(0, std::string(text_at(block, kPrefix)) + '/');
  entry_.link_target = text_at(block, kLink);
  if (long_path_) entry_.path = *std::exchange(long_path_, std::nullopt);
  if (long_link_) entry_.link_target = *std::exchange(long_link_, std::nullopt);
  entry_.size = *size;
  return announce(type);
}

TarReader::Event TarReader::announce(char type) {
  if (++entries_ > limits_.entries) return fail("too many entries");
  if (entry_.size > limits_.bytes || (bytes_ += entry_.size) > limits_.bytes)
    return fail("more content than is allowed");
  if (entry_.path.size() > limits_.path_bytes || entry_.link_target.size() > limits_.path_bytes)
    return fail("a path that is too long");
  auto path = plain_path(entry_.path);
  if (!path) return fail("a path that leaves the archive: " + entry_.path);
  const bool slash = !entry_.path.empty() && entry_.path.back() == '/';
  entry_.path = std::move(*path);
  // Links and directories have no content, whatever their header says.
  if (type == '1' || type == '2' || type == '5') entry_.size = 0;
  left_ = entry_.size;
  padding_ = padding_of(entry_.size);
  switch (type) {
    case '0':
    case '\0':
    case '7':
      entry_.type = slash ? TarType::directory : TarType::file;
      break;
    case '1': {
      entry_.type = TarType::hardlink;
      auto target = plain_path(entry_.link_target);
      if (!target) return fail("a link that leaves the archive: " + entry_.link_target);
      entry_.link_target = std::move(*target);
      break;
    }
    case '2':
      entry_.type = TarType::symlink;
      break;
    case '5':
      entry_.type = TarType::directory;
      break;
    default:
      entry_.type = TarType::other;
      break;
  }
  state_ = State::content;
  return Event::entry;
}

TarReader::Event TarReader::take_meta() {
  const std::string text = std::exchange(block_, {});
  state_ = State::padding;
  const std::string_view name = std::string_view(text).substr(0, text.find('\0'));
  if (meta_ == 'L') long_path_ = name;
  if (meta_ == 'K') long_link_ = name;
  if (meta_ == 'x' && !read_pax(text)) return fail("a pax header that is none");
  return Event::more;
}

bool TarReader::read_pax(std::string_view text) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 4 || *end != ' ' ||
        text[length - 1] != '\n')
      return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const auto equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") long_path_ = value;
    if (key == "linkpath") long_link_ = value;
    if (key != "size") continue;
    std::uint64_t size = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), size);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return false;
    long_size_ = size;
  }
  return true;
}

}  // namespace sandforge::wire::docker
