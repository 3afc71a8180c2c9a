// A whole life of a sandbox whose plugin breaks one rule, with the other session at work beside it.
#pragma once

#include <memory>
#include <string>

#include "unit/loader/fake_plugin.hpp"
#include "world.hpp"

namespace sandforge::test {

struct Fault {
  std::string name;
  bool endless = false;    // one of its operations never ends
  bool hands_off = false;  // its command ends by itself, so nothing is done with it meanwhile
};

class Life {
 public:
  // Runs it. Lines say of each step how it ended, as far as there was one.
  Life(World& world, Fault fault);
  Lines take() { return std::move(lines_); }

 private:
  bool is(const char* fault) const { return fault_.name == fault; }
  void note(const std::string& step, const std::string& how);
  void note(const std::string& step, const Error& error);
  template <class T, class Words>
  bool note(const std::string& step, const Result<T>& result, Words words);
  bool note(const std::string& step, const Result<void>& result);

  bool open();
  bool create();
  void start();
  void command();
  void use(ProcessBackend& process);
  void rest();
  void release();
  void endless_start();

  World& world_;
  const Fault fault_;
  const Lane lane_;
  Lines lines_;
  std::shared_ptr<ProviderBackend> provider_;
  std::shared_ptr<SandboxBackend> sandbox_;
  std::shared_ptr<ProcessBackend> process_;
  std::shared_ptr<RecordingSink> sink_;
};

}  // namespace sandforge::test
