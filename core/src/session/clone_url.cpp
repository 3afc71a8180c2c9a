// What git is allowed to be given as a clone URL, a ref and a directory.
#include <algorithm>

#include "sandforge/setup_plan.hpp"
#include "sandforge/support/encoding.hpp"
#include "session/name_character.hpp"

namespace sandforge {
namespace {

Error bad_url(const std::string& why) {
  // The URL itself is left out: it may carry a password.
  return Error(Status::invalid, "the clone URL " + why, "setup.bad_url");
}

Error bad_ref(const std::string& why) {
  return Error(Status::invalid, "the ref " + why, "setup.bad_ref");
}

bool is_host(std::string_view host) {
  if (host.empty() || host.front() == '-') return false;
  return std::all_of(host.begin(), host.end(), [](char c) {
    return is_name_character(c) || c == ':' || c == '[' || c == ']';
  });
}

bool is_user(std::string_view user) {
  if (user.empty() || user.front() == '-') return false;
  return std::all_of(user.begin(), user.end(), is_name_character);
}

// A userinfo that is no valid encoding is taken as it stands.
std::string decoded(std::string_view text) {
  return percent_decode(text).value_or(std::string(text));
}

Authorization authorization_of(std::string_view userinfo) {
  Authorization authorization;
  const auto colon = userinfo.find(':');
  if (colon == std::string_view::npos) {
    authorization.token = decoded(userinfo);
  } else {
    authorization.scheme = "basic";
    authorization.username = decoded(userinfo.substr(0, colon));
    authorization.token = decoded(userinfo.substr(colon + 1));
  }
  return authorization;
}

Result<CloneUrl> parse_network(const std::string& scheme, std::string_view rest) {
  // Git has no use for them, and a credential that stands there would be kept and shown.
  if (rest.find_first_of("?#") != std::string_view::npos)
    return bad_url("has a query or a fragment");
  CloneUrl out;
  out.protocol = scheme;
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash + 1 == rest.size()) return bad_url("names no path");
  auto authority = rest.substr(0, slash);
  std::string user;
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    const auto userinfo = authority.substr(0, at);
    authority = authority.substr(at + 1);
    if (scheme == "ssh") {
      if (!is_user(userinfo)) return bad_url("has a user name that ssh must not be given");
      user = std::string(userinfo) + "@";
    } else {
      out.authorization = authorization_of(userinfo);
    }
  }
  if (!is_host(authority)) return bad_url("has no valid host name");
  out.host = std::string(authority);
  out.url = scheme + "://" + user + out.host + std::string(rest.substr(slash));
  return out;
}

Result<CloneUrl> parse_scp(std::string_view text, std::size_t colon) {
  auto host = text.substr(0, colon);
  if (const auto at = host.rfind('@'); at != std::string_view::npos) {
    if (!is_user(host.substr(0, at))) return bad_url("has a user name that ssh must not be given");
    host = host.substr(at + 1);
  }
  if (!is_host(host)) return bad_url("has no valid host name");
  if (text.find('@', colon) != std::string_view::npos)
    return bad_url("has an '@' behind its host: a password cannot be given to ssh");
  if (colon + 1 == text.size() || text[colon + 1] == '-') return bad_url("names no valid path");
  CloneUrl out;
  out.protocol = "ssh";
  out.host = std::string(host);
  out.url = std::string(text);
  return out;
}

constexpr const char* kBlank = "contains a space or a backslash";
bool has_blank(std::string_view text) {
  return text.find_first_of(" \\") != std::string_view::npos;
}

// Git decodes the URLs of files, too: what a path has of its own is kept, and what would end a word
// stands encoded, as everywhere else.
std::string encoded(std::string_view path, std::string_view special) {
  std::string out;
  for (const char c : path) {
    if (special.find(c) == std::string_view::npos) {
      out += c;
    } else {
      constexpr const char* digits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      (out += '%') += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

CloneUrl file_url(std::string_view path, std::string_view special) {
  CloneUrl out;
  out.protocol = "file";
  out.url = "file://" + encoded(path, special);
  return out;
}

}  // namespace

Result<CloneUrl> parse_clone_url(std::string_view text) {
  if (text.empty()) return bad_url("is empty");
  if (text.size() > 2048) return bad_url("is longer than 2048 bytes");
  if (text.front() == '-') return bad_url("begins with '-'");
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return bad_url("contains a control character");
  // Folders of this machine may have any name.
  if (text.front() == '/' && text.find("::") == std::string_view::npos)
    return file_url(text, " %\\");

  if (const auto mark = text.find("://"); mark != std::string_view::npos) {
    std::string scheme(text.substr(0, mark));
    std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const auto rest = text.substr(mark + 3);
    if (scheme == "https" || scheme == "http" || scheme == "ssh") {
      if (has_blank(text)) return bad_url(kBlank);
      return parse_network(scheme, rest);
    }
    if (scheme == "file") {
      if (rest.empty() || rest.front() != '/') return bad_url("must name an absolute path");
      return file_url(rest, " \\");
    }
    return bad_url("has a protocol that is not allowed (https, http, ssh and file are)");
  }
  if (text.find("::") != std::string_view::npos) return bad_url("names a transport helper");
  if (has_blank(text)) return bad_url(kBlank);
  const auto colon = text.find(':');
  if (colon != std::string_view::npos && text.find('/') > colon) return parse_scp(text, colon);
  return bad_url("is no https, http, ssh or file URL and no absolute path");
}

Result<void> check_ref(std::string_view ref) {
  if (ref.empty()) return bad_ref("is empty");
  if (ref.size() > 255) return bad_ref("is longer than 255 bytes");
  if (ref.front() == '-') return bad_ref("begins with '-'");
  if (ref.front() == '/' || ref.back() == '/' || ref.back() == '.')
    return bad_ref("begins or ends with a character that git refuses there");
  for (const char c : ref)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f ||
        std::string_view("~^:?*[\\").find(c) != std::string_view::npos)
      return bad_ref("contains a character that git refuses");
  if (ref.find("..") != std::string_view::npos || ref.find("@{") != std::string_view::npos ||
      ref.find("//") != std::string_view::npos || ref == "@")
    return bad_ref("is no name that git accepts");
  if (ref == "HEAD") return bad_ref("is 'HEAD', which is what no ref at all stands for");
  return {};
}

std::string repository_directory(std::string_view url) {
  while (!url.empty() && url.back() == '/')
    url.remove_suffix(1);
  const auto cut = url.find_last_of("/:");
  auto name = std::string(cut == std::string_view::npos ? url : url.substr(cut + 1));
  if (url.substr(0, 7) == "file://") name = decoded(name);
  if (name.size() > 4 && name.compare(name.size() - 4, 4, ".git") == 0)
    name.resize(name.size() - 4);
  for (auto& c : name)
    if (!is_name_character(c)) c = '-';
  name.erase(0, std::min(name.find_first_not_of(".-"), name.size()));
  if (name.size() > 255) name.resize(255);
  return name.empty() ? "repo" : name;
}

}  // namespace sandforge
