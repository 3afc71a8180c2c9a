#include "plugin/elf_section.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <elf.h>
#include <fmt/format.h>

namespace sandforge::plugin {
namespace {

constexpr std::uint64_t kMaxSections = 4096;
constexpr std::uint64_t kMaxNames = 1U << 20;

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr std::uint16_t kMachine = EM_RISCV;
#else
#error "name this machine"
#endif

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_386:
      return "i386";
    case EM_ARM:
      return "arm";
    default:
      return fmt::format("machine {}", machine);
  }
}

Error fail(std::string_view reason, std::string message) {
  return Error(Status::invalid, std::move(message), "plugin." + std::string(reason));
}

template <class T>
bool read_as(const ByteSource& file, std::uint64_t offset, T& out) {
  return file.read(offset, std::as_writable_bytes(std::span(&out, 1)));
}

// Offset and length lie within the file, without overflow.
bool inside(const ByteSource& file, std::uint64_t offset, std::uint64_t length) {
  return offset <= file.size() && length <= file.size() - offset;
}

Result<void> check_header(const Elf64_Ehdr& header) {
  const auto* ident = header.e_ident;
  if (ident[EI_DATA] != ELFDATA2LSB)
    return fail("wrong_architecture", fmt::format("is big-endian, this program is little-endian {}",
                                                  machine_name(kMachine)));
  if (ident[EI_CLASS] != ELFCLASS64)
    return fail("wrong_architecture",
                fmt::format("is 32-bit ({}), this program is 64-bit {}",
                            machine_name(header.e_machine), machine_name(kMachine)));
  if (header.e_machine != kMachine)
    return fail("wrong_architecture",
                fmt::format("is built for {}, this program for {}", machine_name(header.e_machine),
                            machine_name(kMachine)));
  if (header.e_type != ET_DYN)
    return fail("not_elf",
                fmt::format("is an ELF file of type {}, not a shared library", header.e_type));
  return {};
}

struct Sections {
  std::uint64_t count = 0;
  std::uint64_t names = 0;  // index of the section with the names
};

// Numbers that do not fit the header lie in section 0.
Result<Sections> count_sections(const ByteSource& file, const Elf64_Ehdr& header) {
  Sections sections{header.e_shnum, header.e_shstrndx};
  if (header.e_shoff == 0) return Sections{};
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    return fail("not_elf", "has section headers of an unknown size");
  if (sections.count == 0 || sections.names == SHN_XINDEX) {
    Elf64_Shdr first;
    if (!read_as(file, header.e_shoff, first))
      return fail("truncated", "ends before its section headers");
    if (sections.count == 0) sections.count = first.sh_size;
    if (sections.names == SHN_XINDEX) sections.names = first.sh_link;
  }
  if (sections.count > kMaxSections)
    return fail("not_elf",
                fmt::format("has {} sections, at most {} are read", sections.count, kMaxSections));
  return sections;
}

Result<std::string> read_content(const ByteSource& file, const Elf64_Shdr& section,
                                 std::string_view name, std::size_t limit_bytes) {
  if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_COMPRESSED) != 0)
    return fail("manifest_invalid", fmt::format("section {} holds no plain bytes", name));
  if (section.sh_size > limit_bytes)
    return fail("manifest_invalid", fmt::format("section {} has {} bytes, at most {} are read",
                                                name, section.sh_size, limit_bytes));
  if (!inside(file, section.sh_offset, section.sh_size))
    return fail("truncated", fmt::format("ends before its section {}", name));
  std::string text(static_cast<std::size_t>(section.sh_size), '\0');
  if (!file.read(section.sh_offset, std::as_writable_bytes(std::span(text.data(), text.size()))))
    return fail("truncated", fmt::format("ends before its section {}", name));
  return text;
}

}  // namespace

Result<std::string> read_section(const ByteSource& file, std::string_view name,
                                 std::size_t limit_bytes) {
  // In one piece, as far as the file goes.
  Elf64_Ehdr header{};
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), sizeof header));
  if (there < SELFMAG)
    return fail("truncated", file.size() == 0 ? "is empty" : "is too short for any shared library");
  if (!file.read(0, std::as_writable_bytes(std::span(&header, 1)).first(there)))
    return fail("truncated", "cannot be read");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return fail("not_elf", "is no ELF file");
  if (there < sizeof header) return fail("truncated", "ends within its ELF header");
  if (auto good = check_header(header); !good) return std::move(good).error();

  auto sections = count_sections(file, header);
  if (!sections) return std::move(sections).error();
  const Error absent = fail("no_manifest", fmt::format("has no section {}", name));
  if (sections->count == 0 || sections->names >= sections->count) return absent;
  const std::uint64_t table_bytes = sections->count * sizeof(Elf64_Shdr);
  if (!inside(file, header.e_shoff, table_bytes))
    return fail("truncated", "ends before its section headers");
  std::vector<Elf64_Shdr> table(static_cast<std::size_t>(sections->count));
  if (!file.read(header.e_shoff, std::as_writable_bytes(std::span(table))))
    return fail("truncated", "ends before its section headers");

  const Elf64_Shdr& names_header = table[static_cast<std::size_t>(sections->names)];
  if (names_header.sh_size > kMaxNames || names_header.sh_type != SHT_STRTAB)
    return fail("not_elf", "has no usable table of section names");
  if (!inside(file, names_header.sh_offset, names_header.sh_size))
    return fail("truncated", "ends before its table of section names");
  std::string names(static_cast<std::size_t>(names_header.sh_size), '\0');
  if (!file.read(names_header.sh_offset,
                 std::as_writable_bytes(std::span(names.data(), names.size()))))
    return fail("truncated", "ends before its table of section names");

  for (const Elf64_Shdr& section : table) {
    if (section.sh_name >= names.size()) continue;
    const std::string_view rest = std::string_view(names).substr(section.sh_name);
    if (rest.substr(0, rest.find('\0')) == name)
      return read_content(file, section, name, limit_bytes);
  }
  return absent;
}

}  // namespace sandforge::plugin
