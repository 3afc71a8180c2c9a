// Users and groups from /etc/passwd and /etc/group, read as files: name services need shared
// libraries, which a static program in somebody else's image cannot count on.
#pragma once

#include <sys/types.h>
#include <string>
#include <string_view>
#include <vector>

namespace sandforge::posix {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  std::string name;           // empty when the uid has no entry
  std::string home;           // likewise
  Identity() {}
};

// `text` is NAME, UID, NAME:GROUP or UID:GID in any mixture. False, and what is wrong in `why`.
// A uid without an entry is accepted, with gid 0 unless one is given, as container engines do.
bool find_identity(std::string_view text, Identity& out, std::string& why);

// The same over given file contents, for tests.
bool find_identity_in(std::string_view text, std::string_view passwd, std::string_view group,
                      Identity& out, std::string& why);

}  // namespace sandforge::posix
