// Files of a guest in the terms of sandforge/ext/files.h, as boundary.hpp. They link sandforge::sdk
// and sandforge::support.
#pragma once

#include <sandforge/ext/files.h>

#include <string>
#include <string_view>

#include "sandforge/support/encoding.hpp"
#include "sandforge/support/json.hpp"
#include "sandforge/support/utf8.hpp"
#include "sandforge/wire/guest/files.hpp"

namespace sandforge::wire::guest {

// Points into the entry.
inline sf_file_info to_abi(const FileEntry& entry) {
  const auto bytes = [](const std::string& text) {
    return sf_bytes{reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
  };
  sf_file_info out{};
  out.struct_size = sizeof out;
  out.path = bytes(entry.path);
  out.kind = static_cast<std::uint32_t>(entry.kind);
  out.mode = entry.mode & 07777;
  out.size = entry.size;
  out.modified_at = entry.modified_ns;
  if (entry.link_target) out.link_target = bytes(*entry.link_target);
  return out;
}

inline std::string_view name_of(FileChange change) {
  switch (change) {
    case FileChange::start:
      return "start";
    case FileChange::create:
      return "create";
    case FileChange::write:
      return "write";
    case FileChange::remove:
      return "remove";
    case FileChange::rename:
      return "rename";
    case FileChange::attribute:
      return "attribute";
    case FileChange::overflow:
      break;
  }
  return "overflow";
}

// The message of a watch. A path that is no UTF-8 is there twice: to read, and as it is.
inline std::string message_of(const FileEvent& event) {
  json::Object message;
  message.set("event", name_of(event.change));
  message.set("path", to_valid_utf8(event.path));
  if (!is_valid_utf8(event.path)) message.set("pathBytes", base64_encode(event.path));
  return json::write(message);
}

}  // namespace sandforge::wire::guest
