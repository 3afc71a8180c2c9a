// The program that goes into every container.
#include <catch2/catch.hpp>

#include <link.h>

#include <cstring>
#include <string>

#include "program_file.hpp"

using sandforge::docker::needs_loader;

namespace {

// The head of a program, with these parts.
std::string program_of(std::initializer_list<std::uint32_t> parts) {
  ElfW(Ehdr) head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_phoff = sizeof head;
  head.e_phnum = static_cast<std::uint16_t>(parts.size());
  head.e_phentsize = sizeof(ElfW(Phdr));
  std::string out(reinterpret_cast<const char*>(&head), sizeof head);
  for (const std::uint32_t type : parts) {
    ElfW(Phdr) part{};
    part.p_type = type;
    out.append(reinterpret_cast<const char*>(&part), sizeof part);
  }
  return out;
}

}  // namespace

TEST_CASE("a guest's program is static, and whole at its head") {
  CHECK(needs_loader(program_of({PT_LOAD, PT_LOAD})) == false);
  CHECK(needs_loader(program_of({PT_LOAD, PT_INTERP})) == true);
  const std::string cut = program_of({PT_LOAD, PT_LOAD});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, sizeof(ElfW(Ehdr)) - 1, sizeof(ElfW(Ehdr)), cut.size() - 1})
    CHECK_FALSE(needs_loader(std::string_view(cut).substr(0, size)));
  CHECK_FALSE(needs_loader(std::string(4096, 'x')));
}
