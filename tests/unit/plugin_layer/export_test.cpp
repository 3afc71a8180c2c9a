// How factory classes become the plugin of a library.
#include <sandforge/plugin/export.hpp>

#include <catch2/catch.hpp>
#include <cstdlib>

#include <sandforge/testing/driver.hpp>

namespace testing = sandforge::testing;
using namespace sandforge::plugin;

namespace {

// Takes the options.
class First : public FactorySandbox {
 public:
  static constexpr const char* provider = "first";
  static inline std::string opened;
  explicit First(const Opening& opening) {
    opened = opening.options.string("root").value_or("none") + (opening.lane ? " on a lane" : "");
  }
  std::unique_ptr<SandboxBase> create(Context, Settings) override { return nullptr; }
};

// Takes nothing.
class Second : public FactorySandbox {
 public:
  static constexpr const char* provider = "second";
  static inline int made = 0;
  Second() { ++made; }
  std::unique_ptr<SandboxBase> create(Context, Settings) override { return nullptr; }
};

}  // namespace

SANDFORGE_PLUGIN(First, Second)

TEST_CASE("the entry of a library is one plugin of this version") {
  const sf_plugin* plugin = SF_PLUGIN_ENTRY();
  CHECK(plugin == SF_PLUGIN_ENTRY());
  CHECK(plugin->struct_size == sizeof(sf_plugin));
  CHECK(plugin->abi_major == SF_ABI_MAJOR);
  CHECK(plugin->abi_minor == SF_ABI_MINOR);
}

TEST_CASE("a provider is opened by its name, with its options, or refused") {
  testing::Host host;
  const auto open = [&](const char* name, const char* options) {
    testing::Driver driver(host, SF_PLUGIN_ENTRY());
    testing::Failure failure;
    const sf_status status = driver.open(name, options, failure);
    CHECK((driver.provider != nullptr) == (status == SF_OK));
    return status == SF_OK ? "opened" : std::to_string(status) + " " + failure.message;
  };
  CHECK(open("first", R"({"root":"/r"})") == "opened");
  CHECK(First::opened == "/r on a lane");
  CHECK(open("second", "") == "opened");
  CHECK(Second::made == 1);
  CHECK(open("third", "{}") == R"(2 this plugin has no provider "third")");
  CHECK(open("", "{}") == R"(2 this plugin has no provider "")");
  CHECK(open("first", R"({"root":5})") == R"(1 "root" must be a string)");
  CHECK(open("second", "[]") == "1 a JSON object was expected");
  CHECK(Second::made == 1);
  CHECK(testing::Lane::live == 0);
}

TEST_CASE("a host of another major version is refused before it is used") {
  static constexpr sf_host_vtbl functions = {
      sizeof(sf_host_vtbl), SF_ABI_MAJOR + 1, 0,
      [](sf_host*, sf_str) noexcept -> const void* { std::abort(); }};
  sf_host host{&functions};
  testing::Failure failure;
  const sf_error_sink err = testing::sink(failure);
  CHECK(SF_PLUGIN_ENTRY()->init(&host, &err) == SF_UNSUPPORTED);
  CHECK(failure.message == "the host speaks another major version");
}
