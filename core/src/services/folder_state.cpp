// Values of plugins that outlive the process: a folder for each plugin, a file for each value; all
// names are hashes. The disk may be slow, and callers are lanes: a thread of its own waits for it.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/blocking_pool.hpp"
#include "sandforge/host_services.hpp"
#include "sandforge/posix/fd.hpp"
#include "sandforge/posix/system.hpp"
#include "sandforge/support/hash.hpp"

namespace sandforge {
namespace {

namespace fs = std::filesystem;

// Runs one piece of work after the other, so that the last value set is the one that stays. The
// thread is made with the first of them; at the end what waits is still done.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  // Why it will not run, if so. It must not throw.
  std::optional<Error> post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable() && !start()) return no_thread();
    if (queue_.size() >= kMostWaiting)
      return Error(Status::rate_limited, "too much is asked of the state before the disk has it");
    queue_.push_back(std::move(work));
    wake_.notify_one();
    return std::nullopt;
  }

 private:
  bool start() {
    const BlockSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  static constexpr std::size_t kMostWaiting = 256;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  std::thread thread_;
  bool ending_ = false;
};

class FolderStateStore final : public StateStore {
 public:
  FolderStateStore(fs::path folder, std::uint64_t limit)
      : folder_(std::move(folder)), limit_(limit) {}

  void get(const std::string& plugin, const SessionId& session, std::string key,
           Handler<std::optional<std::string>> done) override {
    run<std::optional<std::string>>(
        std::move(done),
        [this, path = folder_of(plugin) / name_of(session, key)] { return read(path); });
  }

  void set(const std::string& plugin, const SessionId& session, std::string key,
           std::optional<std::string> value, Handler<void> done) override {
    run<void>(std::move(done), [this, plugin, name = name_of(session, key),
                                value = std::move(value)] { return put(plugin, name, value); });
  }

 private:
  template <class T, class Work>
  void run(Handler<T> done, Work work) {
    auto held = std::make_shared<Handler<T>>(std::move(done));
    auto refused = worker_.post([held, work = std::move(work)] {
      auto result = [&work]() -> Result<T> {
        try {
          return work();
        } catch (const std::exception& e) {
          return Error(Status::internal, std::string("the state failed: ") + e.what(),
                       "state.failed");
        }
      }();
      std::move (*held)(std::move(result));
    });
    if (refused) std::move (*held)(*std::move(refused));
  }

  Result<std::optional<std::string>> read(const fs::path& path) const {
    std::string text;
    if (posix::read_file(path.c_str(), text, limit_))
      return std::optional<std::string>(std::move(text));
    if (errno == ENOENT) return std::optional<std::string>();
    return failed("read", path, errno);
  }

  static constexpr std::uint64_t kEntry = 256;  // what a file costs beside its bytes
  static constexpr std::chrono::hours kLongestWrite{1};

  fs::path folder_of(const std::string& plugin) const { return folder_ / sha256_hex(plugin); }
  static std::string name_of(const SessionId& session, const std::string& key) {
    return sha256_hex(session.str() + '\0' + key);
  }

  static Error failed(const char* what, const fs::path& path, int number) {
    return Error(number == ENOSPC || number == EDQUOT ? Status::no_space : Status::unavailable,
                 std::string("cannot ") + what + " " + path.string() + ": " +
                     std::generic_category().message(number),
                 "state.file");
  }

  // What a process that was killed has left of a write: it would be in the way of others for good.
  static bool removed_leftover(const fs::path& file) {
    if (!file.has_extension()) return false;
    std::error_code gone;
    const auto written = fs::last_write_time(file, gone);
    if (gone || fs::file_time_type::clock::now() - written < kLongestWrite) return false;
    return fs::remove(file, gone);
  }

  // Of all that lies there but `name`.
  static std::uint64_t used_beside(const fs::path& folder, const std::string& name) {
    std::uint64_t used = 0;
    std::error_code problem;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end;
         it.increment(problem)) {
      if (it->path().filename() == name || removed_leftover(it->path())) continue;
      std::error_code gone;
      const auto size = it->file_size(gone);
      used += kEntry + (gone ? 0 : size);
    }
    return used;
  }

  // Whole or not at all, also for other processes.
  Result<void> put(const std::string& plugin, const std::string& name,
                   const std::optional<std::string>& value) {
    const auto folder = folder_of(plugin);
    const auto path = folder / name;
    std::error_code problem;
    if (!value) {
      fs::remove(path, problem);
      if (problem) return failed("remove", path, problem.value());
      return {};
    }
    if (used_beside(folder, name) + kEntry + value->size() > limit_)
      return Error(Status::no_space,
                   fmt::format("the state of the plugin {} exceeds its limit", plugin));
    fs::create_directories(folder, problem);
    if (problem) return failed("make", folder, problem.value());
    fs::permissions(folder_, fs::perms::owner_all, problem);
    if (problem) return failed("protect", folder_, problem.value());
    return write(folder / (name + "." + posix::random_hex(8)), path, *value);
  }

  static Result<void> write(const fs::path& next, const fs::path& path, std::string_view rest) {
    posix::Fd file(::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return failed("make", next, errno);
    int number = 0;
    while (!rest.empty() && number == 0) {
      const ssize_t written = ::write(file.get(), rest.data(), rest.size());
      if (written >= 0)
        rest.remove_prefix(static_cast<std::size_t>(written));
      else if (errno != EINTR)
        number = errno;
    }
    if (number == 0 && ::fsync(file.get()) != 0) number = errno;
    if (number == 0 && ::rename(next.c_str(), path.c_str()) != 0) number = errno;
    if (number == 0) return {};
    ::unlink(next.c_str());
    return failed("write", path, number);
  }

  const fs::path folder_;
  const std::uint64_t limit_;
  Worker worker_;
};

}  // namespace

std::shared_ptr<StateStore> folder_state_store(fs::path folder, std::uint64_t limit_bytes) {
  return std::make_shared<FolderStateStore>(std::move(folder), limit_bytes);
}

}  // namespace sandforge
