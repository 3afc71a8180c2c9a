// What the pages of sdk/docs say that an author must implement: these classes compile, and lack
// nothing. Their functions are nowhere.
#include <sandforge/plugin/plugin.hpp>

#include <type_traits>

namespace outlines {

using namespace sandforge::plugin;

class Shelf : public BasicSnapshots<Blocking> {
 public:
  // Absent: nothing was captured, as the sandbox does not run or has no name.
  std::optional<Checkpoint> create(std::string name, StopToken stop) override;
  std::vector<Checkpoint> list(StopToken stop) override;       // newest first
  void remove(std::string name, StopToken stop) override;      // what is gone succeeds
  void start_from(std::string name, StopToken stop) override;  // Code::not_found: there is none
};

class Drawer : public BasicFiles<Blocking> {
 public:
  FileInfo stat(std::string path, StopToken stop) override;  // of a link itself
  // Depth 1: the entries of the directory alone.
  std::vector<FileInfo> list(std::string path, std::uint32_t depth, StopToken stop) override;
  // Without a length: to the end. The bytes go to io.write.
  void read(std::string path, std::uint64_t offset, std::optional<std::uint64_t> length,
            Io& io) override;
  // The bytes come from io.read. Mode 0: that of the old file, or 0644.
  void write(std::string path, std::uint32_t mode, bool create_parents, Io& io) override;
  void make_directory(std::string path, std::uint32_t mode, bool create_parents,
                      StopToken stop) override;
  void move(std::string from, std::string to, bool replace, StopToken stop) override;
  void remove(std::string path, bool tree, StopToken stop) override;

  // With the feature files.watch only; both have a default that refuses.
  bool can_watch() const override;
  void watch(std::string path, bool recursive, Io& io) override;
};

static_assert(!std::is_abstract_v<Shelf> && !std::is_abstract_v<Drawer>);

}  // namespace outlines
