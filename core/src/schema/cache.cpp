#include <list>
#include <mutex>
#include <unordered_map>

#include "sandforge/schema.hpp"
#include "sandforge/support/hash.hpp"

namespace sandforge {

struct SchemaCache::Impl {
  using Entry = std::pair<std::string, CompiledSchemaPtr>;

  explicit Impl(std::size_t limit) : capacity(limit) {}

  CompiledSchemaPtr find(const std::string& key) {
    const std::lock_guard lock(mutex);
    const auto found = index.find(key);
    if (found == index.end()) return nullptr;
    entries.splice(entries.begin(), entries, found->second);
    return found->second->second;
  }

  void add(const std::string& key, const CompiledSchemaPtr& schema) {
    const std::lock_guard lock(mutex);
    if (capacity == 0 || index.count(key) != 0) return;
    entries.emplace_front(key, schema);
    index.emplace(key, entries.begin());
    if (entries.size() <= capacity) return;
    index.erase(entries.back().first);
    entries.pop_back();
  }

  const std::size_t capacity;
  mutable std::mutex mutex;
  std::list<Entry> entries;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> index;
};

SchemaCache::SchemaCache(std::size_t capacity) : impl_(std::make_unique<Impl>(capacity)) {}
SchemaCache::~SchemaCache() = default;

CompileResult SchemaCache::get(const json::Value& schema, SchemaProfile profile) {
  // The order of members decides the order of declared keys, so it is part of the identity; the
  // canonical text would lose it.
  const std::string key =
      std::to_string(static_cast<int>(profile)) + ':' + sha256_hex(json::write(schema));
  if (CompiledSchemaPtr found = impl_->find(key)) return {std::move(found), {}};
  CompileResult result = compile_schema(schema, profile);
  if (result) impl_->add(key, result.schema);
  return result;
}

std::size_t SchemaCache::size() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->entries.size();
}

}  // namespace sandforge
