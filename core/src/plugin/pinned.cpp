#include "plugin/pinned.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace sandforge::plugin {
namespace {

constexpr std::size_t kChunk = 256U << 10;

Error system_error(const char* what) {
  const int number = errno;
  Error error(Status::internal, fmt::format("{}: {}", what, std::strerror(number)),
              "plugin.load_failed");
  error.details.set("errno", number);
  return error;
}

// Gives each piece of the file to `use`, which answers false to stop.
template <class Use>
Result<void> for_each_piece(int file, Use&& use) {
  const auto buffer = std::make_unique<std::array<unsigned char, kChunk>>();
  off_t offset = 0;
  for (;;) {
    const ssize_t n = ::pread(file, buffer->data(), buffer->size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error("the plugin cannot be read");
    if (n == 0) return {};
    if (auto good = use(buffer->data(), static_cast<std::size_t>(n)); !good) return good;
    offset += n;
  }
}

Result<void> write_all(int file, const unsigned char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return system_error("the plugin cannot be copied");
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Result<posix::Fd> copy_sealed(int file) {
  posix::Fd copy(::memfd_create("sandforge-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!copy) return system_error("memory for a pinned plugin is not to be had");
  auto copied = for_each_piece(file, [&](const unsigned char* data, std::size_t size) {
    return write_all(copy.get(), data, size);
  });
  if (!copied) return std::move(copied).error();
  if (::fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) !=
      0)
    return system_error("the copy of a pinned plugin cannot be sealed");
  return copy;
}

Result<std::string> sha256_of(int file) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  const Error failed(Status::internal, "SHA-256 is not available", "plugin.load_failed");
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) return failed;
  auto read = for_each_piece(file, [&](const unsigned char* data, std::size_t size) {
    return EVP_DigestUpdate(context.get(), data, size) == 1 ? Result<void>() : Result<void>(failed);
  });
  if (!read) return std::move(read).error();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1) return failed;
  std::string hex;
  for (unsigned i = 0; i < size; ++i)
    hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string normal_sha256(const std::string& text) {
  std::string hex = text.rfind("sha256:", 0) == 0 ? text.substr(7) : text;
  for (char& c : hex) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  const bool good = hex.size() == 64 && std::all_of(hex.begin(), hex.end(), [](char c) {
                      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                    });
  return good ? hex : std::string();
}

Result<DescriptorPath> DescriptorPath::make(posix::Fd file) {
  rlimit limit{};
  int lowest = 512;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    lowest = static_cast<int>(std::min<rlim_t>(512, limit.rlim_cur / 2));
  posix::Fd high(::fcntl(file.get(), F_DUPFD_CLOEXEC, lowest));
  if (!high) return system_error("there is no descriptor for a pinned plugin");
  std::string path = fmt::format("/proc/self/fd/{}", high.get());
  return DescriptorPath(std::move(high), std::move(path));
}

}  // namespace sandforge::plugin
