// json::Value as valijson sees it: a view, without copies. Included by engine.cpp only.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <valijson/internal/adapter.hpp>
#include <valijson/internal/basic_adapter.hpp>
#include <valijson/internal/frozen_value.hpp>

#include "model.hpp"

namespace sandforge::schema_detail {

// The work that one validation may still do. Every look at the kind of a value costs one.
struct Run {
  std::size_t left = 2'000'000;
};

struct TooMuchWork {};

class ValueAdapter;

template <class Derived, class Iterator>
class ViewIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using difference_type = std::ptrdiff_t;

  ViewIterator(Iterator at, Run* run) : at_(at), run_(run) {}
  bool operator==(const Derived& other) const { return at_ == other.at_; }
  bool operator!=(const Derived& other) const { return at_ != other.at_; }
  const Derived& operator++() {
    ++at_;
    return static_cast<const Derived&>(*this);
  }
  Derived operator++(int) {
    Derived before(at_, run_);
    ++at_;
    return before;
  }
  const Derived& operator--() {
    --at_;
    return static_cast<const Derived&>(*this);
  }
  void advance(std::ptrdiff_t n) { at_ += n; }

 protected:
  Iterator at_;
  Run* run_;
};

class ArrayIterator : public ViewIterator<ArrayIterator, json::Array::const_iterator> {
 public:
  using value_type = ValueAdapter;
  using pointer = ValueAdapter*;
  using reference = ValueAdapter&;
  using ViewIterator::ViewIterator;
  ValueAdapter operator*() const;
  valijson::adapters::DerefProxy<ValueAdapter> operator->() const;
};

using AdaptedMember = std::pair<std::string, ValueAdapter>;

class MemberIterator
    : public ViewIterator<MemberIterator, std::vector<json::Member>::const_iterator> {
 public:
  using value_type = AdaptedMember;
  using pointer = AdaptedMember*;
  using reference = AdaptedMember&;
  using ViewIterator::ViewIterator;
  AdaptedMember operator*() const;
  valijson::adapters::DerefProxy<AdaptedMember> operator->() const;
};

class ArrayView {
 public:
  using const_iterator = ArrayIterator;
  using iterator = ArrayIterator;
  ArrayView() : ArrayView(empty(), nullptr) {}
  ArrayView(const json::Array& array, Run* run) : array_(&array), run_(run) {}
  ArrayIterator begin() const { return {array_->begin(), run_}; }
  ArrayIterator end() const { return {array_->end(), run_}; }
  std::size_t size() const { return array_->size(); }

 private:
  static const json::Array& empty() {
    static const json::Array none;
    return none;
  }
  const json::Array* array_;
  Run* run_;
};

class ObjectView {
 public:
  using const_iterator = MemberIterator;
  using iterator = MemberIterator;
  ObjectView() : ObjectView(empty(), nullptr) {}
  ObjectView(const json::Object& object, Run* run) : object_(&object), run_(run) {
    if (object.size() > linear_limit) build_index();
  }
  MemberIterator begin() const { return {object_->begin(), run_}; }
  MemberIterator end() const { return {object_->end(), run_}; }
  std::size_t size() const { return object_->size(); }
  MemberIterator find(const std::string& name) const {
    if (index_ != nullptr) {
      const auto found = std::lower_bound(index_->begin(), index_->end(), name, ByName{});
      const bool match = found != index_->end() && (*found)->first == name;
      return match ? MemberIterator(*found, run_) : end();
    }
    auto at = object_->begin();
    while (at != object_->end() && at->first != name)
      ++at;
    return {at, run_};
  }

 private:
  using Position = std::vector<json::Member>::const_iterator;
  using Index = std::vector<Position>;
  struct ByName {
    bool operator()(Position a, Position b) const { return a->first < b->first; }
    bool operator()(Position a, const std::string& name) const { return a->first < name; }
  };
  static constexpr std::size_t linear_limit = 32;
  static const json::Object& empty() {
    static const json::Object none;
    return none;
  }
  void build_index() {
    auto index = std::make_shared<Index>();
    index->reserve(object_->size());
    for (auto at = object_->begin(); at != object_->end(); ++at)
      index->push_back(at);
    std::sort(index->begin(), index->end(), ByName{});
    index_ = std::move(index);
  }
  const json::Object* object_;
  Run* run_;
  std::shared_ptr<const Index> index_;
};

class ValueView {
 public:
  ValueView() : ValueView(empty(), nullptr) {}
  ValueView(const json::Value& value, Run* run) : value_(&value), run_(run) {}

  valijson::adapters::FrozenValue* freeze() const;
  std::optional<ArrayView> getArrayOptional() const {
    if (!isArray()) return {};
    return ArrayView(value_->as_array(), run_);
  }
  bool getArraySize(std::size_t& result) const {
    if (!value_->is_array()) return false;
    result = value_->as_array().size();
    return true;
  }
  bool getBool(bool& result) const {
    if (!value_->is_bool()) return false;
    result = value_->as_bool();
    return true;
  }
  bool getDouble(double& result) const {
    if (!isDouble()) return false;
    result = value_->as_number();
    return true;
  }
  bool getInteger(std::int64_t& result) const {
    if (!value_->is_integer()) return false;
    result = value_->as_integer();
    return true;
  }
  std::optional<ObjectView> getObjectOptional() const {
    if (!isObject()) return {};
    return ObjectView(value_->as_object(), run_);
  }
  bool getObjectSize(std::size_t& result) const {
    if (!value_->is_object()) return false;
    result = value_->as_object().size();
    return true;
  }
  bool getString(std::string& result) const {
    if (!value_->is_string()) return false;
    result = value_->as_string();
    return true;
  }
  static bool hasStrictTypes() { return true; }
  bool isArray() const {
    charge();
    return value_->is_array();
  }
  bool isBool() const { return value_->is_bool(); }
  bool isDouble() const { return value_->kind() == json::Kind::number; }
  bool isInteger() const { return value_->is_integer(); }
  bool isNull() const { return value_->is_null(); }
  bool isNumber() const { return value_->is_number(); }
  bool isObject() const {
    charge();
    return value_->is_object();
  }
  bool isString() const { return value_->is_string(); }

  const json::Value& value() const { return *value_; }
  void charge() const {
    if (run_ == nullptr) return;
    if (run_->left == 0) throw TooMuchWork();
    --run_->left;
  }

 private:
  static const json::Value& empty() {
    static const json::Value none{json::Object()};
    return none;
  }
  const json::Value* value_;
  Run* run_;
};

class ValueAdapter final
    : public valijson::adapters::BasicAdapter<ValueAdapter, ArrayView, AdaptedMember, ObjectView,
                                              ValueView> {
 public:
  ValueAdapter() = default;
  ValueAdapter(const json::Value& value, Run* run)
      : BasicAdapter(ValueView(value, run)), view_(value, run) {}
  explicit ValueAdapter(const json::Value& value) : ValueAdapter(value, nullptr) {}

  const json::Value& value() const { return view_.value(); }
  void charge() const { view_.charge(); }

 private:
  ValueView view_;  // the one of the base is private
};

// Constants are compared by us, so valijson never needs this; its parser asks for the type.
class FrozenCopy final : public valijson::adapters::FrozenValue {
 public:
  explicit FrozenCopy(json::Value value) : value_(std::move(value)) {}
  valijson::adapters::FrozenValue* clone() const override { return new FrozenCopy(value_); }
  bool equalTo(const valijson::adapters::Adapter& other, bool strict) const override {
    return ValueAdapter(value_).equalTo(other, strict);
  }

 private:
  json::Value value_;
};

inline valijson::adapters::FrozenValue* ValueView::freeze() const {
  return new FrozenCopy(*value_);
}

inline ValueAdapter ArrayIterator::operator*() const {
  return {*at_, run_};
}
inline valijson::adapters::DerefProxy<ValueAdapter> ArrayIterator::operator->() const {
  return valijson::adapters::DerefProxy<ValueAdapter>(**this);
}
inline AdaptedMember MemberIterator::operator*() const {
  return {at_->first, ValueAdapter(at_->second, run_)};
}
inline valijson::adapters::DerefProxy<AdaptedMember> MemberIterator::operator->() const {
  return valijson::adapters::DerefProxy<AdaptedMember>(**this);
}

}  // namespace sandforge::schema_detail

namespace valijson::adapters {
template <>
struct AdapterTraits<sandforge::schema_detail::ValueAdapter> {
  using DocumentType = sandforge::json::Value;
  static std::string adapterName() { return "ValueAdapter"; }
};
}  // namespace valijson::adapters
