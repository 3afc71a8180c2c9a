// Values of plugins that are kept as long as the process.
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include <fmt/format.h>

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

  static constexpr std::uint64_t kEntry = 256;  // what an entry costs beside its texts
  static constexpr std::uint64_t kShares = 4;   // no plugin has more than one of them

  static std::uint64_t size_of(const Key& key, const std::string& value) {
    return kEntry + std::get<0>(key).size() + std::get<1>(key).size() + std::get<2>(key).size() +
           value.size();
  }

  Result<void> put(Key key, std::optional<std::string> value) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    const std::uint64_t before = found == values_.end() ? 0 : size_of(key, found->second);
    const std::uint64_t after = value ? size_of(key, *value) : 0;
    const std::string& plugin = std::get<0>(key);
    const auto its = used_by_.find(plugin);
    const std::uint64_t its_after = (its == used_by_.end() ? 0 : its->second) - before + after;
    // What shrinks is always taken.
    if (after > before && its_after > limit_ / kShares)
      return Error(Status::no_space,
                   fmt::format("the state of the plugin {} exceeds its limit", plugin));
    if (after > before && used_ - before + after > limit_)
      return Error(Status::no_space, "the state of all plugins exceeds its limit");
    used_ = used_ - before + after;
    used_by_[plugin] = its_after;
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
  std::map<std::string, std::uint64_t> used_by_;  // by plugin
};

}  // namespace

std::shared_ptr<StateStore> memory_state_store(std::uint64_t limit_bytes) {
  return std::make_shared<MemoryStateStore>(limit_bytes);
}

}  // namespace sandforge
