// A git repository for a test to clone from.
#pragma once

#include <catch2/catch.hpp>

#include "support/temp_dir.hpp"
#include "unit/session/real_program.hpp"

class GitOrigin {
 public:
  explicit GitOrigin(const std::string& name) : path_(dir_ / name) {
    sh("mkdir -p '" + path_ + "'");
    git("init -q -b main");
    commit("one", "README", "first\n");
  }

  std::string url() const { return "file://" + path_; }
  const std::string& path() const { return path_; }

  std::string commit(const std::string& message, const std::string& file,
                     const std::string& content) {
    sh("printf '%s' '" + content + "' >'" + path_ + "/" + file + "'");
    git("add -A");
    git("commit -q -m '" + message + "'");
    return head();
  }
  std::string head() { return line(git("rev-parse HEAD")); }
  std::string git(const std::string& arguments) {
    return sh("cd '" + path_ +
              "' && git -c user.name=t -c user.email=t@example.com -c commit.gpgsign=false " +
              arguments);
  }

  static std::string line(std::string text) {
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    return text;
  }

 private:
  std::string sh(const std::string& text) {
    const auto ran = sandforge::fake::run_here({"sh", "-c", text}, {}, dir_.str(), dir_.str());
    INFO(text << ": " << ran.err);
    REQUIRE(ran.code == 0);
    return ran.out;
  }

  sandforge::test::TempDir dir_;
  std::string path_;
};
