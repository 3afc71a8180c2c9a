#include "plugin/elf_section.hpp"

#include <cstring>
#include <random>

#include <elf.h>
#include <fcntl.h>
#include <catch2/catch.hpp>

#include "sandforge/manifest.hpp"
#include "sandforge/posix/fd.hpp"
#include "support/temp_dir.hpp"
#include "unit/loader/fixture_path.hpp"

using namespace sandforge;

namespace {

std::string good_bytes() {
  return test::read_file(test::fixture("good_a"));
}

// The reason of the error, without "plugin.", or "" when the text was read.
std::string reason(const std::string& bytes) {
  const auto text = manifest_text(std::as_bytes(std::span(bytes)));
  return text.ok() ? "" : text.error().reason.substr(7);
}

template <class T>
void poke(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

Elf64_Ehdr header_of(const std::string& bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

}  // namespace

TEST_CASE("elf: what is no plugin file is named as what it is") {
  CHECK(reason("") == "truncated");
  CHECK(reason("\x7f") == "truncated");
  CHECK(reason("#!/bin/sh\necho hello\n") == "not_elf");
  CHECK(reason(std::string("\x7f"
                           "ELF")) == "truncated");
  CHECK(reason(test::read_file(test::fixture("no_manifest"))) == "no_manifest");
}

TEST_CASE("elf: other machines") {
  std::string bytes = good_bytes();
  poke<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_machine), EM_S390);
  CHECK(reason(bytes) == "wrong_architecture");
  bytes = good_bytes();
  bytes[EI_CLASS] = ELFCLASS32;
  CHECK(reason(bytes) == "wrong_architecture");
  bytes = good_bytes();
  bytes[EI_DATA] = ELFDATA2MSB;
  CHECK(reason(bytes) == "wrong_architecture");
  bytes = good_bytes();
  poke<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_type), ET_REL);
  CHECK(reason(bytes) == "not_elf");
}

TEST_CASE("elf: a file that ends too early") {
  const std::string bytes = good_bytes();
  const auto header = header_of(bytes);
  REQUIRE(header.e_shoff > sizeof(Elf64_Ehdr));
  CHECK(reason(bytes.substr(0, 63)) == "truncated");
  CHECK(reason(bytes.substr(0, header.e_shoff)) == "truncated");
  CHECK(reason(bytes.substr(0, bytes.size() - 1)) == "truncated");
}

TEST_CASE("elf: hostile numbers") {
  std::string bytes = good_bytes();
  poke<std::uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff), UINT64_MAX - 10);
  CHECK(reason(bytes) == "truncated");
  bytes = good_bytes();
  poke<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shnum), 0xfeff);
  CHECK(reason(bytes) == "not_elf");
  bytes = good_bytes();
  poke<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shentsize), 1);
  CHECK(reason(bytes) == "not_elf");
  bytes = good_bytes();
  poke<std::uint16_t>(bytes, offsetof(Elf64_Ehdr, e_shstrndx), 0xfff0);
  CHECK(reason(bytes) == "no_manifest");
  bytes = good_bytes();
  poke<std::uint64_t>(bytes, offsetof(Elf64_Ehdr, e_shoff), 0);
  CHECK(reason(bytes) == "no_manifest");
}

TEST_CASE("elf: a manifest section that lies") {
  const std::string good = good_bytes();
  const auto header = header_of(good);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const std::size_t at = header.e_shoff + i * sizeof(Elf64_Shdr);
    std::string bytes = good;
    poke<std::uint64_t>(bytes, at + offsetof(Elf64_Shdr, sh_size), 1ULL << 40);
    const std::string why = reason(bytes);
    CHECK((why.empty() || why == "truncated" || why == "not_elf" || why == "manifest_invalid"));
    bytes = good;
    poke<std::uint64_t>(bytes, at + offsetof(Elf64_Shdr, sh_offset), UINT64_MAX - 1);
    const std::string where = reason(bytes);
    CHECK((where.empty() || where == "truncated"));
    bytes = good;
    poke<std::uint32_t>(bytes, at + offsetof(Elf64_Shdr, sh_type), SHT_NOBITS);
    const std::string kind = reason(bytes);
    CHECK((kind.empty() || kind == "manifest_invalid" || kind == "not_elf"));
  }
}

TEST_CASE("elf: thousands of damaged files give an answer each") {
  const std::string good = good_bytes();
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 8; ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    // Most damage where the reader looks.
    const auto header = header_of(good);
    bytes[random() % sizeof(Elf64_Ehdr)] = static_cast<char>(random());
    bytes[header.e_shoff + random() % (bytes.size() - header.e_shoff)] =
        static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    const auto text = manifest_text(std::as_bytes(std::span(bytes)));
    if (text.ok()) {
      CHECK(text->size() <= 1U << 20);
    } else {
      CHECK(text.error().reason.rfind("plugin.", 0) == 0);
    }
  }
}

TEST_CASE("elf: the file form answers as the memory form does") {
  const posix::Fd good(::open(test::fixture("good_a").c_str(), O_RDONLY | O_CLOEXEC));
  const auto from_file = manifest_text(good.get());
  const std::string bytes = good_bytes();
  const auto from_memory = manifest_text(std::as_bytes(std::span(bytes)));
  REQUIRE(from_file.ok());
  REQUIRE(from_memory.ok());
  CHECK(*from_file == *from_memory);
  CHECK_FALSE(manifest_text(-1).ok());
}
