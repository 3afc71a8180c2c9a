#include "plugin/tokens.hpp"

#include <limits>
#include <utility>

namespace sandforge::plugin {
namespace {

constexpr unsigned kGenerationBits = 32;
constexpr unsigned kSlotBits = 22;
constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;
static_assert(sizeof(void*) == 8, "a token needs 64 bits");

std::uint64_t bits_of(const void* ctx) noexcept {
  return reinterpret_cast<std::uintptr_t>(ctx);
}

std::uint32_t slot_index(const void* ctx) noexcept {
  return static_cast<std::uint32_t>((bits_of(ctx) >> kGenerationBits) & kSlotMask);
}

}  // namespace

std::uint32_t Tokens::plugin_of(const void* ctx) noexcept {
  return static_cast<std::uint32_t>(bits_of(ctx) >> (kGenerationBits + kSlotBits));
}

void* Tokens::add(std::shared_ptr<void> object, const void* kind) {
  const std::lock_guard lock(mutex_);
  std::uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else if (slots_.size() <= kSlotMask) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    return nullptr;
  }
  Slot& slot = slots_[index];
  slot.object = std::move(object);
  slot.kind = kind;
  slot.used = true;
  const std::uint64_t bits = (std::uint64_t{plugin_} << (kGenerationBits + kSlotBits)) |
                             (std::uint64_t{index} << kGenerationBits) | slot.generation;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(bits));
}

Tokens::Lookup Tokens::find(void* ctx, const void* kind, bool last, std::shared_ptr<void>& object) {
  const std::lock_guard lock(mutex_);
  Slot* slot = slot_of(ctx);
  if (slot == nullptr) return Lookup::absent;
  if (slot->kind != kind) return Lookup::wrong_kind;
  object = last ? end(*slot, slot_index(ctx)) : slot->object;
  return Lookup::found;
}

bool Tokens::drop(void* ctx) {
  std::shared_ptr<void> object;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  Slot* slot = slot_of(ctx);
  if (slot == nullptr) return false;
  object = end(*slot, slot_index(ctx));
  return true;
}

std::size_t Tokens::in_use() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Slot& slot : slots_)
    count += slot.used ? 1 : 0;
  return count;
}

Tokens::Slot* Tokens::slot_of(void* ctx) {
  const std::uint32_t index = slot_index(ctx);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  const auto generation = static_cast<std::uint32_t>(bits_of(ctx));
  return slot.used && slot.generation == generation ? &slot : nullptr;
}

std::shared_ptr<void> Tokens::end(Slot& slot, std::uint32_t index) {
  slot.used = false;
  slot.kind = nullptr;
  // A slot whose generations are used up is never given out again.
  if (slot.generation != std::numeric_limits<std::uint32_t>::max()) {
    ++slot.generation;
    free_.push_back(index);
  }
  return std::exchange(slot.object, nullptr);
}

}  // namespace sandforge::plugin
