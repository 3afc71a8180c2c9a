// What providers and sandboxes have in common: a lane, references, and parts.
#pragma once

#include "host.hpp"
#include "launch.hpp"

namespace sandforge::plugin {

// The capabilities that a provider or a sandbox may have beside what every one has.
enum class Part : std::uint8_t {
  processes,
  files,
  pty,
  ports,
  metrics,
  lifetime,
  snapshots,
  templates,
  builds,
  directory,
  health
};

namespace detail {

/*
 * Base of the objects that the host holds. References: the host's handle, and one for each running
 * call, so that an object is never used after its end. It is destroyed on its lane.
 */
class Object {
 public:
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void retain() noexcept { ++refs_; }
  void drop() noexcept {
    if (--refs_ > 0) return;
    if (!lane_ || lane_.is_current()) {
      delete this;
      return;
    }
    try {
      lane_.post([this] { delete this; });
    } catch (...) {
      report_stray(std::current_exception(), "the end of an object");
    }
  }

  // The author's interface of a part, or null. Its type follows from the part and the style.
  virtual void* part(Part which) = 0;

  Lane lane_;

 protected:
  Object() = default;

 private:
  std::atomic<int> refs_{1};
};

// A reference to an object.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  explicit Ref(T& object) noexcept : object_(&object) { object_->retain(); }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->drop();
  }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }

 private:
  T* object_ = nullptr;
};

// The author's interface of a part, with the object that has it kept as long as the call runs.
template <class Interface>
class PartRef {
 public:
  PartRef(Object& owner, Part which, const char* absent)
      : keep_(owner), part_(static_cast<Interface*>(owner.part(which))), absent_(absent) {}
  const Lane& lane() const noexcept { return keep_->lane_; }
  Interface* operator->() const {
    if (part_ == nullptr) throw Error(Code::unsupported, absent_);
    return part_;
  }

 private:
  Ref<Object> keep_;
  Interface* part_;
  const char* absent_;  // what is said when the part is not there
};

inline std::string string_array(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  json::Array list;
  for (const std::string& text : texts)
    list.emplace_back(text);
  return json::write(json::Value(std::move(list)));
}

}  // namespace detail
}  // namespace sandforge::plugin
