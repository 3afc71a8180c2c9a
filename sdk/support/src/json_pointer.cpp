// JSON Pointer (RFC 6901) and merge patch (RFC 7386).
#include <algorithm>
#include <charconv>

#include "json_members.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge::json {
namespace {

// False when a `~` is followed by neither 0 nor 1.
bool unescape(std::string_view token, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      out.push_back(token[i]);
      continue;
    }
    if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return false;
    out.push_back(token[i] == '0' ? '~' : '/');
  }
  return true;
}

const Value* element(const Array& array, std::string_view token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool leading_zero = token.size() > 1 && token[0] == '0';
  if (error != std::errc() || end != token.data() + token.size() || leading_zero) return nullptr;
  return index < array.size() ? &array[index] : nullptr;
}

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

// For each member of `patch`, its position in `target`.
std::vector<std::size_t> positions(const Object& target, const Object& patch) {
  const auto sorted = sorted_members(target);
  std::vector<std::size_t> result;
  result.reserve(patch.size());
  for (const Member& member : patch) {
    const auto it =
        std::lower_bound(sorted.begin(), sorted.end(), member.first,
                         [](const Member* m, const std::string& key) { return m->first < key; });
    const bool found = it != sorted.end() && (*it)->first == member.first;
    result.push_back(found ? static_cast<std::size_t>(*it - &*target.begin()) : kAbsent);
  }
  return result;
}

}  // namespace

const Value* Value::at_pointer(std::string_view pointer) const noexcept {
  const Value* at = this;
  std::string key;
  while (!pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    if (!unescape(pointer.substr(1, end - 1), key)) return nullptr;
    pointer.remove_prefix(end);
    at = at->is_array() ? element(at->as_array(), key) : at->find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

std::string escape_pointer(std::string_view token) {
  std::string out;
  out.reserve(token.size());
  for (const char c : token) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

void merge_patch(Value& target, const Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Object();

  Object& object = target.as_object();
  const std::vector<std::size_t> found = positions(object, patch.as_object());
  std::vector<Member> members(std::make_move_iterator(object.begin()),
                              std::make_move_iterator(object.end()));
  std::vector<bool> erased(members.size(), false);
  std::size_t i = 0;
  for (const Member& member : patch.as_object()) {
    const std::size_t at = found[i++];
    if (at == kAbsent) {
      if (member.second.is_null()) continue;
      Value fresh;
      merge_patch(fresh, member.second);  // drops the nulls within
      members.emplace_back(member.first, std::move(fresh));
      erased.push_back(false);
    } else if (member.second.is_null()) {
      erased[at] = true;
    } else {
      merge_patch(members[at].second, member.second);
    }
  }

  std::size_t kept = 0;
  for (std::size_t at = 0; at < members.size(); ++at) {
    if (erased[at]) continue;
    if (kept != at) members[kept] = std::move(members[at]);
    ++kept;
  }
  members.resize(kept);
  object = Object::adopt(std::move(members));
}

}  // namespace sandforge::json
