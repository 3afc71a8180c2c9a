// Arbitrary bytes of an engine: the demultiplexer and the reader of progress say the same wherever
// they are cut, and keep nothing.
//
// fuzz-libs: sandforge::wire_docker
#include <cstdint>
#include <cstdlib>
#include <string>

#include "sandforge/wire/docker/frames.hpp"
#include "sandforge/wire/docker/json_stream.hpp"

namespace {

using namespace sandforge::wire::docker;

std::string streams_of(std::string_view bytes, std::size_t piece) {
  Demultiplexer demultiplexer;
  std::string streams[4];
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (const auto next = demultiplexer.next(part)) {
      if (next->data.empty()) std::abort();
      streams[static_cast<int>(next->stream)] += next->data;
    }
    if (!part.empty()) std::abort();
  }
  return streams[1] + '\0' + streams[2] + '\0' + streams[3] + (demultiplexer.whole() ? "w" : "c");
}

std::string objects_of(std::string_view bytes, std::size_t piece) {
  JsonStream stream(256);
  std::string out;
  while (!bytes.empty()) {
    std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (auto object = stream.next(part))
      out += sandforge::json::write(sandforge::json::Value(std::move(*object))) + '\n';
  }
  return out + stream.error() + (stream.whole() ? "w" : "c");
}

}  // namespace

// The first byte: the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{data[0]} + 1;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (streams_of(bytes, piece) != streams_of(bytes, size)) std::abort();
  if (objects_of(bytes, piece) != objects_of(bytes, size)) std::abort();
  return 0;
}
