// Arbitrary bytes as an archive: nothing leaves it, nothing exceeds its limits, and what is told of
// it does not depend on where it is cut.
//
// fuzz-libs: sandforge::wire_docker
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sandforge/wire/docker/tar.hpp"

namespace {

using namespace sandforge::wire::docker;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string told(std::string_view bytes, std::size_t piece) {
  TarLimits limits;
  limits.entries = 100;
  limits.bytes = 1 << 20;
  limits.path_bytes = 300;
  TarReader reader(limits);
  std::string out;
  std::uint64_t left = 0;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    for (;;) {
      const auto event = reader.next(part);
      if (event == TarReader::Event::more || event == TarReader::Event::end) break;
      if (event == TarReader::Event::failed) return out + "failed " + reader.error();
      if (event == TarReader::Event::data) {
        require(!reader.data().empty() && reader.data().size() <= left);
        left -= reader.data().size();
        out += reader.data();
        continue;
      }
      const TarEntry& entry = reader.entry();
      require(left == 0 && entry.size <= limits.bytes && entry.mode <= 07777);
      require(entry.path.size() <= limits.path_bytes);
      require(plain_path(entry.path) == entry.path);
      left = entry.size;
      out += '\n' + entry.path + ' ' + entry.link_target + '\n';
    }
    require(part.empty());
  }
  return out;
}

}  // namespace

// The first byte: the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(told(bytes, piece) == told(bytes, size));
  return 0;
}
