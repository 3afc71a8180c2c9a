// What a guest leaves behind that was killed: its commands' processes, known by their mark.
#pragma once

#include <string>

namespace sandforge::guest {

// The file in which a guest says who it is, while it serves. In `folder`, which is locked.
class InstanceFile {
 public:
  InstanceFile(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  // The guest that was here and did not end by itself; empty: none.
  std::string left() const;
  bool write(const std::string& instance) const;
  void remove() const;

 private:
  int folder_;
  std::string name_;
};

// Ends the processes that carry the mark of this instance, and their descendants. Blocks for a
// short time; false when some are still there.
bool end_leftovers(const std::string& instance);

}  // namespace sandforge::guest
