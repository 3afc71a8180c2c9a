#include "sandforge/posix/user.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "sandforge/posix/fd.hpp"

namespace sandforge::posix {
namespace {

constexpr std::size_t kFileLimit = 4 * 1024 * 1024;
constexpr std::size_t kGroupLimit = 65536;  // NGROUPS_MAX

bool number(std::string_view text, std::uint32_t& out) {
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, out);
  // The highest value means "unchanged" to setresuid.
  return !text.empty() && result.ec == std::errc() && result.ptr == end && out != UINT32_MAX;
}

// Calls `use` with the fields of each line until it answers true.
template <std::size_t N, class F>
void each_entry(std::string_view file, F use) {
  while (!file.empty()) {
    const std::size_t eol = std::min(file.find('\n'), file.size());
    std::string_view line = file.substr(0, eol);
    file.remove_prefix(std::min(eol + 1, file.size()));
    if (line.empty() || line.front() == '#') continue;
    std::array<std::string_view, N> fields{};
    std::size_t count = 0;
    while (count < N) {
      const std::size_t colon = std::min(line.find(':'), line.size());
      fields[count++] = line.substr(0, colon);
      if (colon == line.size()) break;
      line.remove_prefix(colon + 1);
    }
    if (count >= 4 && use(fields)) return;
  }
}

bool listed(std::string_view members, std::string_view name) {
  while (!members.empty()) {
    const std::size_t comma = std::min(members.find(','), members.size());
    if (members.substr(0, comma) == name) return true;
    members.remove_prefix(std::min(comma + 1, members.size()));
  }
  return false;
}

bool find_user(std::string_view text, std::string_view passwd, Identity& out) {
  std::uint32_t wanted = 0;
  const bool numeric = number(text, wanted);
  bool found = false;
  // A name that consists of digits wins over the uid, as in chown and in container engines.
  for (const bool by_name : {true, false}) {
    if (found || (!by_name && !numeric)) break;
    each_entry<7>(passwd, [&](const auto& f) {
      std::uint32_t uid = 0, gid = 0;
      if (!number(f[2], uid) || !number(f[3], gid)) return false;
      if (by_name ? f[0] != text : uid != wanted) return false;
      out.uid = uid;
      out.gid = gid;
      out.name.assign(f[0]);
      out.home.assign(f[5]);
      return found = true;
    });
  }
  if (!found && numeric) {
    out.uid = wanted;
    out.gid = 0;
  }
  return found || numeric;
}

bool find_group(std::string_view text, std::string_view group, gid_t& out) {
  bool found = false;
  each_entry<4>(group, [&](const auto& f) {
    std::uint32_t gid = 0;
    if (f[0] != text || !number(f[2], gid)) return false;
    out = gid;
    return found = true;
  });
  std::uint32_t gid = 0;
  if (!found && number(text, gid)) {
    out = gid;
    found = true;
  }
  return found;
}

}  // namespace

bool find_identity_in(std::string_view text, std::string_view passwd, std::string_view group,
                      Identity& out, std::string& why) {
  out = Identity();
  const std::size_t colon = text.find(':');
  const std::string_view user = text.substr(0, colon);
  if (user.empty() || !find_user(user, passwd, out)) {
    why = "there is no user '" + std::string(user) + "'";
    return false;
  }
  if (colon != std::string_view::npos) {
    const std::string_view name = text.substr(colon + 1);
    if (name.empty() || !find_group(name, group, out.gid)) {
      why = "there is no group '" + std::string(name) + "'";
      return false;
    }
    return true;
  }
  if (out.name.empty()) return true;
  each_entry<4>(group, [&](const auto& f) {
    std::uint32_t gid = 0;
    if (number(f[2], gid) && gid != out.gid && listed(f[3], out.name) &&
        out.groups.size() < kGroupLimit)
      out.groups.push_back(gid);
    return false;
  });
  return true;
}

bool find_identity(std::string_view text, Identity& out, std::string& why) {
  // A missing file leaves numbers usable.
  std::string passwd, group;
  read_file("/etc/passwd", passwd, kFileLimit);
  read_file("/etc/group", group, kFileLimit);
  return find_identity_in(text, passwd, group, out, why);
}

}  // namespace sandforge::posix
