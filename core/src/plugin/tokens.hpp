// The ctx values that a plugin is given with callbacks. They are looked up, never dereferenced, so
// that a late, second or invented one is a fault with a name instead of undefined.
//
// A token is  plugin index (10 bits) | slot (22 bits) | generation (32 bits).  The plugin's index
// is in it so that also a call with a token of the past can be put to its plugin's account.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace sandforge::plugin {

inline constexpr std::uint32_t kMaxPlugins = 1023;

// The tokens of one plugin. Thread rule: every function from any thread.
class Tokens {
 public:
  explicit Tokens(std::uint32_t plugin_index) : plugin_(plugin_index) {}

  enum class Lookup : std::uint8_t { found, absent, wrong_kind };

  // Null when all four million slots are in use. `kind` is any unique address.
  void* add(std::shared_ptr<void> object, const void* kind);
  // The object of a token that is in use; with `last`, the token ends by it.
  Lookup find(void* ctx, const void* kind, bool last, std::shared_ptr<void>& object);
  // False: it had ended already.
  bool drop(void* ctx);
  std::size_t in_use() const;

  static std::uint32_t plugin_of(const void* ctx) noexcept;

 private:
  struct Slot {
    std::shared_ptr<void> object;
    const void* kind = nullptr;
    std::uint32_t generation = 1;
    bool used = false;
  };
  Slot* slot_of(void* ctx);
  std::shared_ptr<void> end(Slot& slot, std::uint32_t index);

  const std::uint32_t plugin_;
  mutable std::mutex mutex_;
  std::deque<Slot> slots_;
  std::deque<std::uint32_t> free_;  // oldest first: generations rise slowly
};

}  // namespace sandforge::plugin
