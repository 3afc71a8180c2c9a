#include "program_file.hpp"

#include <link.h>

#include <cstring>

namespace sandforge::docker {

std::optional<bool> needs_loader(std::string_view program) {
  ElfW(Ehdr) head;
  if (program.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, program.data(), sizeof head);
  ElfW(Phdr) part;
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof part ||
      head.e_phoff > program.size() ||
      std::size_t{head.e_phnum} * sizeof part > program.size() - head.e_phoff)
    return std::nullopt;
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    std::memcpy(&part, program.data() + head.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

}  // namespace sandforge::docker
