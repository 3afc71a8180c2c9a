// Finds a section of an ELF64 shared library without mapping or running it. Every offset and count
// comes from the file and is taken for hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sandforge/error.hpp"

namespace sandforge::plugin {

// Bytes at offsets, such as a file or memory.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills all of `out`, or answers false.
  virtual bool read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// Content of the first section of that name. The reasons of errors are those of manifest_text().
Result<std::string> read_section(const ByteSource& file, std::string_view name,
                                 std::size_t limit_bytes);

}  // namespace sandforge::plugin
