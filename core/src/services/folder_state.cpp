// Values of plugins that outlive the process: one file each, whose name is a hash.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <mutex>
#include <system_error>
#include <utility>

#include "sandforge/host_services.hpp"
#include "sandforge/support/hash.hpp"

namespace sandforge {
namespace {

class FolderStateStore final : public StateStore {
 public:
  explicit FolderStateStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void get(const std::string& plugin, const SessionId& session, std::string key,
           Handler<std::optional<std::string>> done) override {
    const auto path = path_of(plugin, session, key);
    std::ifstream in(path, std::ios::binary);
    std::error_code none;
    if (!in && !std::filesystem::exists(path, none))
      return std::move(done)(std::optional<std::string>());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in) return std::move(done)(failed("read", path, EIO));
    std::move(done)(std::optional<std::string>(std::move(text)));
  }

  void set(const std::string& plugin, const SessionId& session, std::string key,
           std::optional<std::string> value, Handler<void> done) override {
    std::move(done)(put(path_of(plugin, session, key), value));
  }

 private:
  std::filesystem::path path_of(const std::string& plugin, const SessionId& session,
                                const std::string& key) const {
    return folder_ / sha256_hex(plugin + '\0' + session.str() + '\0' + key);
  }

  static Error failed(const char* what, const std::filesystem::path& path, int number) {
    return Error(number == ENOSPC ? Status::no_space : Status::unavailable,
                 std::string("cannot ") + what + " " + path.string() + ": " +
                     std::generic_category().message(number),
                 "state.file");
  }

  // Whole or not at all, also for other processes.
  Result<void> put(const std::filesystem::path& path, const std::optional<std::string>& value) {
    std::error_code problem;
    if (!value) {
      std::filesystem::remove(path, problem);
      if (problem) return failed("remove", path, problem.value());
      return {};
    }
    std::filesystem::create_directories(folder_, problem);
    if (problem) return failed("make", folder_, problem.value());
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, problem);
    auto next = path;
    next += "." + std::to_string(::getpid()) + "-" + std::to_string(++serial_);
    const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return failed("make", next, errno);
    int number = 0;
    std::string_view rest = *value;
    while (!rest.empty() && number == 0) {
      const ssize_t written = ::write(file, rest.data(), rest.size());
      if (written >= 0)
        rest.remove_prefix(static_cast<std::size_t>(written));
      else if (errno != EINTR)
        number = errno;
    }
    if (number == 0 && ::fsync(file) != 0) number = errno;
    if (::close(file) != 0 && number == 0) number = errno;
    if (number == 0 && ::rename(next.c_str(), path.c_str()) != 0) number = errno;
    if (number == 0) return {};
    ::unlink(next.c_str());
    return failed("write", path, number);
  }

  const std::filesystem::path folder_;
  std::atomic<unsigned> serial_{0};
};

}  // namespace

std::shared_ptr<StateStore> folder_state_store(std::filesystem::path folder) {
  return std::make_shared<FolderStateStore>(std::move(folder));
}

}  // namespace sandforge
