// Who hears what of which channel.
#include "sandforge/wire/guest/listeners.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace sandforge::wire::guest;

namespace {

struct Ear : Listener {
  std::vector<std::string> heard;
  void on_output(StreamId, std::string_view bytes) override { heard.emplace_back(bytes); }
  void on_file_entries(const FileEntries&, bool more) override {
    heard.emplace_back(more ? "more" : "last");
  }
  void on_end(const End&) override { heard.emplace_back("end"); }
  void on_error(const ErrorInfo& error) override { heard.push_back(error.message); }
};

struct Office : Listeners<Ear> {
  using Listeners::add;
  using Listeners::each;
  using Listeners::listener;
  using Listeners::nobody_waits;
  using Listeners::on_end;
  using Listeners::on_error;
  using Listeners::on_file_entries;
  using Listeners::on_output;
  using Listeners::take;
};

constexpr ChannelId kOne{1}, kTwo{2};

}  // namespace

TEST_CASE("a listener hears its channel until the last event") {
  Office office;
  const auto one = std::make_shared<Ear>(), two = std::make_shared<Ear>();
  office.add(kOne, one);
  office.add(kTwo, two);
  office.on_output(kOne, StreamId{}, 0, "a");
  office.on_end(kOne, End());
  office.on_output(kOne, StreamId{}, 1, "b");
  office.on_end(kOne, End());
  CHECK(one->heard == std::vector<std::string>{"a", "end"});
  CHECK(two->heard.empty());
  CHECK_FALSE(office.nobody_waits());

  office.on_file_entries(kTwo, FileEntries(), true);
  office.on_file_entries(kTwo, FileEntries(), false);
  office.on_file_entries(kTwo, FileEntries(), false);
  CHECK(two->heard == std::vector<std::string>{"more", "last"});
  CHECK(office.nobody_waits());
}

TEST_CASE("nobody may listen, and who is taken hears nothing more") {
  Office office;
  const auto ear = std::make_shared<Ear>();
  office.add(kOne, nullptr);
  office.add(kTwo, ear);
  office.on_output(kOne, StreamId{}, 0, "a");
  office.each([&](Ear& to) { to.heard.emplace_back("each"); });
  CHECK(office.take(kTwo) == ear);
  CHECK(office.take(kTwo) == nullptr);
  ErrorInfo error;
  error.message = "lost";
  office.on_error(kTwo, error);
  CHECK(ear->heard == std::vector<std::string>{"each"});
  CHECK_FALSE(office.nobody_waits());
  office.on_error(kOne, error);
  CHECK(office.nobody_waits());
}

TEST_CASE("listeners may come and go inside an event") {
  struct Leaves : Ear {
    Office* office = nullptr;
    void on_error(const ErrorInfo& error) override {
      office->add(kTwo, std::make_shared<Ear>());
      Ear::on_error(error);
    }
  };
  Office office;
  auto leaves = std::make_shared<Leaves>();
  leaves->office = &office;
  office.add(kOne, leaves);
  const std::weak_ptr<Leaves> there = leaves;
  leaves.reset();
  ErrorInfo error;
  error.message = "over";
  office.on_error(kOne, error);
  CHECK(there.expired());
  CHECK(office.listener(kTwo) != nullptr);
}
