// What a guest leaves behind that was killed: its commands' processes, known by their mark.
#pragma once

#include <string>

namespace sandforge::guest {

struct Left {
  std::string instance;  // empty: none
  std::string group;     // its control group; empty: it had none
};

// Makes the name free, whatever lies there; a folder that is not empty is moved beside it.
void make_way(int folder, const std::string& name);

// The file in which a guest says who it is, while it serves. In `folder`, which is locked.
class InstanceFile {
 public:
  InstanceFile(int folder, std::string name) : folder_(folder), name_(std::move(name)) {}
  // The guest that was here and did not end by itself.
  Left left() const;
  bool write(const Left& self) const;
  void remove() const;

 private:
  int folder_;
  std::string name_;
};

// Ends the processes of this instance's group, those that carry its mark, and their descendants.
// Blocks for a short time; false when some are still there.
bool end_leftovers(const Left& left);

}  // namespace sandforge::guest
