#include <algorithm>
#include <cmath>

#include "json_members.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge::json {

Object::Object() = default;
Object::Object(const Object&) = default;
Object::Object(Object&&) noexcept = default;
Object& Object::operator=(const Object&) = default;
Object& Object::operator=(Object&&) noexcept = default;
Object::~Object() = default;

Object Object::adopt(std::vector<Member> members) noexcept {
  Object object;
  object.members_ = std::move(members);
  return object;
}

std::size_t Object::size() const noexcept {
  return members_.size();
}
bool Object::empty() const noexcept {
  return members_.empty();
}

const Value* Object::find(std::string_view key) const noexcept {
  for (const Member& member : members_) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Value* Object::find(std::string_view key) noexcept {
  return const_cast<Value*>(std::as_const(*this).find(key));
}

Value& Object::set(std::string key, Value value) {
  if (Value* old = find(key)) {
    *old = std::move(value);
    return *old;
  }
  return members_.emplace_back(std::move(key), std::move(value)).second;
}

bool Object::erase(std::string_view key) noexcept {
  const auto it = std::find_if(members_.begin(), members_.end(),
                               [&](const Member& member) { return member.first == key; });
  if (it == members_.end()) return false;
  members_.erase(it);
  return true;
}

Value& Object::operator[](std::string_view key) {
  if (Value* old = find(key)) return *old;
  return members_.emplace_back(std::string(key), Value()).second;
}

std::vector<Member>::const_iterator Object::begin() const noexcept {
  return members_.begin();
}
std::vector<Member>::const_iterator Object::end() const noexcept {
  return members_.end();
}
std::vector<Member>::iterator Object::begin() noexcept {
  return members_.begin();
}
std::vector<Member>::iterator Object::end() noexcept {
  return members_.end();
}

Value::Value(unsigned long long i) noexcept {
  if (i <= static_cast<unsigned long long>(INT64_MAX)) {
    data_ = static_cast<std::int64_t>(i);
  } else {
    data_ = static_cast<double>(i);
  }
}

double Value::as_number() const {
  return is_integer() ? static_cast<double>(as_integer()) : std::get<double>(data_);
}

const Value* Value::find(std::string_view key) const noexcept {
  const Object* object = std::get_if<Object>(&data_);
  return object != nullptr ? object->find(key) : nullptr;
}

std::optional<std::int64_t> exact_integer(double number) noexcept {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(number >= -kTwoTo63 && number < kTwoTo63) || std::trunc(number) != number) return {};
  return static_cast<std::int64_t>(number);
}

std::vector<const Member*> sorted_members(const Object& object) {
  std::vector<const Member*> sorted;
  sorted.reserve(object.size());
  for (const Member& member : object)
    sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(),
            [](const Member* a, const Member* b) { return a->first < b->first; });
  return sorted;
}

namespace {

bool same_members(const Object& a, const Object& b) {
  if (a.size() != b.size()) return false;
  const bool same_order =
      std::equal(a.begin(), a.end(), b.begin(),
                 [](const Member& x, const Member& y) { return x.first == y.first; });
  if (same_order) return std::equal(a.begin(), a.end(), b.begin());
  const auto sorted_a = sorted_members(a);
  const auto sorted_b = sorted_members(b);
  return std::equal(sorted_a.begin(), sorted_a.end(), sorted_b.begin(),
                    [](const Member* x, const Member* y) { return *x == *y; });
}

bool same_number(const Value& a, const Value& b) {
  if (a.is_integer() == b.is_integer()) {
    return a.is_integer() ? a.as_integer() == b.as_integer() : a.as_number() == b.as_number();
  }
  const Value& integer = a.is_integer() ? a : b;
  const Value& number = a.is_integer() ? b : a;
  // Not by conversion to double: 2^53 + 1 would equal 2^53.
  return exact_integer(number.as_number()) == integer.as_integer();
}

}  // namespace

bool operator==(const Value& a, const Value& b) noexcept {
  if (a.is_number() && b.is_number()) return same_number(a, b);
  if (a.kind() != b.kind()) return false;
  if (a.is_object()) return same_members(a.as_object(), b.as_object());
  if (a.is_array()) return a.as_array() == b.as_array();
  if (a.is_string()) return a.as_string() == b.as_string();
  return a.is_null() || a.as_bool() == b.as_bool();
}

}  // namespace sandforge::json
