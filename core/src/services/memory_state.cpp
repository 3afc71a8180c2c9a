// Values of plugins that are kept as long as the process.
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "sandforge/host_services.hpp"

namespace sandforge {
namespace {

class MemoryStateStore final : public StateStore {
 public:
  explicit MemoryStateStore(std::uint64_t limit) : limit_(limit) {}

  void get(const std::string& plugin, const SessionId& session, std::string key,
           Handler<std::optional<std::string>> done) override {
    std::optional<std::string> value;
    {
      const std::lock_guard lock(mutex_);
      const auto found = values_.find(Key(plugin, session.str(), std::move(key)));
      if (found != values_.end()) value = found->second;
    }
    std::move(done)(std::move(value));
  }

  void set(const std::string& plugin, const SessionId& session, std::string key,
           std::optional<std::string> value, Handler<void> done) override {
    std::move(done)(put(Key(plugin, session.str(), std::move(key)), std::move(value)));
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  static std::uint64_t size_of(const Key& key, const std::string& value) {
    return std::get<0>(key).size() + std::get<1>(key).size() + std::get<2>(key).size() +
           value.size();
  }

  Result<void> put(Key key, std::optional<std::string> value) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    const std::uint64_t before = found == values_.end() ? 0 : size_of(key, found->second);
    const std::uint64_t after = value ? size_of(key, *value) : 0;
    if (used_ - before + after > limit_)
      return Error(Status::no_space, "the state of all plugins exceeds its limit");
    used_ = used_ - before + after;
    if (value) {
      values_.insert_or_assign(std::move(key), std::move(*value));
    } else if (found != values_.end()) {
      values_.erase(found);
    }
    return {};
  }

  const std::uint64_t limit_;
  std::mutex mutex_;
  std::map<Key, std::string> values_;
  std::uint64_t used_ = 0;
};

}  // namespace

std::shared_ptr<StateStore> memory_state_store(std::uint64_t limit_bytes) {
  return std::make_shared<MemoryStateStore>(limit_bytes);
}

}  // namespace sandforge
