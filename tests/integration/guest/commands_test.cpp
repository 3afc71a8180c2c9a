// Commands: cases A of the conformance list, as the guest alone shows them.
#include <sys/stat.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include "harness.hpp"

using namespace guest_test;
using wire::ErrorCode;

TEST_CASE("A01 output and exit codes are exact", "[cases.A01]") {
  Guest guest;
  const Seen& a = guest.host().run(shell("echo hello"));
  CHECK(a.out == "hello\n");
  CHECK(a.err.empty());
  CHECK(a.code() == 0);
  REQUIRE(a.end);
  CHECK(a.end->total.out == 6);
  CHECK_FALSE(a.end->pipes_held);
  CHECK_FALSE(a.end->background);
  const Seen& b = guest.host().run(shell("echo out; echo err >&2; exit 42"));
  CHECK(b.out == "out\n");
  CHECK(b.err == "err\n");
  CHECK(b.code() == 42);
  const Seen& c = guest.host().run(shell("exec true"));
  CHECK(c.out.empty());
  CHECK(c.code() == 0);
  CHECK(c.exit->duration_ns > 0);
}

TEST_CASE("A02 arguments round-trip", "[cases.A02]") {
  Guest guest;
  const std::vector<std::string> args = {"a b", "$HOME", "x'y", "",   "-n",          "--",
                                         "*",   "a\nb",  "é",   "\t", "\xff\xfe\x80"};
  std::vector<std::string> command = {"printf", "%s\\0"};
  command.insert(command.end(), args.begin(), args.end());
  std::string expected;
  for (const std::string& a : args)
    expected += a + '\0';
  CHECK(guest.host().run(argv(command)).out == expected);
}

TEST_CASE("A03 what no process can be given is refused before one starts", "[cases.A03]") {
  Guest guest;
  std::string why;
  const auto refused = [&](const wire::SpawnRequest& r) {
    why.clear();
    return !guest.host().client.spawn(r, &why) && !why.empty();
  };
  CHECK(refused(argv({"echo", std::string("a\0b", 3)})));
  CHECK(refused(shell(std::string("echo \0", 6))));
  wire::SpawnRequest r = shell("true");
  r.env.emplace_back("A=B", std::string("x"));
  CHECK(refused(r));
  r.env.back() = wire::EnvEntry(std::string("A\0B", 3), std::string("x"));
  CHECK(refused(r));
  r.env.back() = wire::EnvEntry("A", std::string("x\0", 2));
  CHECK(refused(r));
  r.env.back() = wire::EnvEntry("", std::string("x"));
  CHECK(refused(r));
  CHECK(refused(argv({""})));
  r = shell("");
  CHECK(refused(r));
  r = shell("true");
  r.request_id.clear();
  CHECK(refused(r));
}

TEST_CASE("A04 long arguments work or are called too large", "[cases.A04]") {
  Guest guest;
  const std::string most(131071, 'x');
  CHECK(guest.host().run(argv({"printf", "%s", most})).out == most);
  const Seen& b = guest.host().run(argv({"printf", "%s", std::string(200000, 'x')}));
  REQUIRE(b.error);
  CHECK(b.error->code == ErrorCode::too_large);
  wire::SpawnRequest many = argv({"true"});
  many.argv.insert(many.argv.end(), 40, std::string(100000, 'x'));
  const Seen& c = guest.host().run(many);
  REQUIRE(c.error);
  CHECK(c.error->code == ErrorCode::too_large);
  CHECK(guest.host().run(shell("echo ok")).out == "ok\n");
}

TEST_CASE("A05 shell text has the shell's meaning", "[cases.A05]") {
  Guest guest;
  TempFolder folder;
  wire::SpawnRequest r = shell("cat <<X | tr a-z A-Z > f && cat f\nhello $((1+1))\nX\n");
  r.cwd = folder.path();
  CHECK(guest.host().run(r).out == "HELLO 2\n");
}

TEST_CASE("A06 what cannot be run says why, and names the path", "[cases.A06]") {
  Guest guest;
  Host& host = guest.host();
  TempFolder folder;
  CHECK(host.run(shell("no-such-command-anywhere")).code() == 127);
  Seen s = host.run(argv({"no-such-command-anywhere"}));
  REQUIRE(s.error);
  CHECK(s.error->code == ErrorCode::no_command);
  CHECK(s.error->message.find("no-such-command-anywhere") != std::string::npos);

  write_text(folder.file("plain"), "echo\n");
  s = host.run(argv({folder.file("plain")}));
  REQUIRE(s.error);
  CHECK(s.error->code == ErrorCode::not_executable);
  CHECK(s.error->error_number == EACCES);

  wire::SpawnRequest r = shell("true");
  r.cwd = folder.file("missing");
  s = host.run(r);
  REQUIRE(s.error);
  CHECK(s.error->code == ErrorCode::no_directory);
  CHECK(s.error->error_number == ENOENT);
  CHECK(s.error->message.find(r.cwd) != std::string::npos);
  r = shell("true");
  r.cwd = folder.file("plain");
  s = host.run(r);
  REQUIRE(s.error);
  CHECK(s.error->code == ErrorCode::no_directory);
  CHECK(s.error->error_number == ENOTDIR);

  REQUIRE(::mkdir(folder.file("gone").c_str(), 0700) == 0);
  r = shell("rmdir \"$PWD\"; echo still here");
  r.cwd = folder.file("gone");
  CHECK(host.run(r).out == "still here\n");
  CHECK(host.run(shell("echo ok")).out == "ok\n");
  // A request that started nothing may be sent again.
  r = argv({folder.file("late")});
  const Seen& early = host.run(r);
  CHECK(early.error);
  write_text(r.argv[0], "#!/bin/sh\necho now\n");
  REQUIRE(::chmod(r.argv[0].c_str(), 0755) == 0);
  CHECK(host.run(r).out == "now\n");
}

TEST_CASE("a script without an interpreter line runs in the shell") {
  Guest guest;
  TempFolder folder;
  write_text(folder.file("script"), "echo \"$0 $1\"\n");
  REQUIRE(::chmod(folder.file("script").c_str(), 0755) == 0);
  CHECK(guest.host().run(argv({folder.file("script"), "x"})).out == folder.file("script") + " x\n");
}

TEST_CASE("A08 a command that reads finds the end of its input", "[cases.A08]") {
  Guest guest;
  CHECK(guest.host().run(argv({"cat"})).code() == 0);
  CHECK(guest.host().run(shell("read x; echo \"<$x> $?\"")).out == "<> 1\n");
}

TEST_CASE("A10 bytes come in order, whatever they are", "[cases.A10]") {
  Guest guest;
  std::string expected;
  for (int i = 1; i <= 5000; ++i)
    expected += std::to_string(i) + "\n";
  CHECK(guest.host().run(argv({"seq", "1", "5000"})).out == expected);
  TempFolder folder;
  std::string bytes;
  for (int i = 0; i < 4096; ++i)
    bytes += static_cast<char>((i * 7919) >> 3);
  write_text(folder.file("bytes"), bytes);
  CHECK(guest.host().run(argv({"cat", folder.file("bytes")})).out == bytes);
}

TEST_CASE("A13 commands that exit at once keep their output", "[cases.A13]") {
  Guest guest;
  Host& host = guest.host();
  constexpr int kCount = 1000, kAtOnce = 50;
  std::vector<wire::ChannelId> open;
  int right = 0;
  for (int i = 0; i < kCount;) {
    open.clear();
    for (int j = 0; j < kAtOnce; ++j, ++i)
      open.push_back(host.spawn(shell("echo nonce-" + std::to_string(i))));
    for (std::size_t j = 0; j < open.size(); ++j) {
      const Seen& s = host.wait(open[j]);
      const std::string expected =
          "nonce-" + std::to_string(i - kAtOnce + static_cast<int>(j)) + "\n";
      if (s.out == expected && s.code() == 0 && s.end) ++right;
    }
  }
  CHECK(right == kCount);
}

TEST_CASE("A14 output arrives while the command runs, on both streams", "[cases.A14]") {
  Guest guest;
  Host& host = guest.host();
  TempFolder folder;
  // Each step waits until the one before was seen here.
  const auto id = host.spawn(shell("cd " + folder.path() +
                                   "; echo a; echo x >&2; until [ -e go1 ]; do sleep .01; done; "
                                   "echo b; echo y >&2; until [ -e go2 ]; do sleep .01; done"));
  REQUIRE(host.until([&] { return host.of(id).out == "a\n" && host.of(id).err == "x\n"; }));
  write_text(folder.file("go1"), "");
  REQUIRE(host.until([&] { return host.of(id).out == "a\nb\n" && host.of(id).err == "x\ny\n"; }));
  CHECK_FALSE(host.of(id).exit);
  write_text(folder.file("go2"), "");
  CHECK(host.wait(id).code() == 0);
}

TEST_CASE("A16 combined output keeps the order of the writes", "[cases.A16]") {
  Guest guest;
  wire::SpawnRequest r = shell("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
  r.combined = true;
  const Seen& s = guest.host().run(r);
  CHECK(s.out == "o1\ne1\no2\ne2\no3\ne3\n");
  CHECK(s.err.empty());
}

TEST_CASE("A17 the environment is the one that was asked for", "[cases.A17]") {
  ::setenv("SANDFORGE_TEST_SECRET", "of-the-host", 1);
  Guest guest;
  Host& host = guest.host();
  wire::EnvSetRequest stored;
  stored.entries.emplace_back("LAYER", std::string("stored"));
  stored.entries.emplace_back("ONLY", std::string("stored only"));
  REQUIRE(host.wait(host.client.env_set(stored)).done);
  wire::EnvSetRequest odd;
  odd.entries.emplace_back("NUL", std::string("a\0b", 3));
  const auto refused = host.wait(host.client.env_set(odd));
  REQUIRE(refused.error);
  CHECK(refused.error->message == "the value of the variable NUL holds a NUL byte");

  wire::SpawnRequest r = argv({"env", "-0"});
  r.env.emplace_back("LAYER", std::string("call"));
  r.env.emplace_back("ODD", std::string("a b&'\"\n\xff"));
  std::string out = host.run(r).out;
  CHECK(out.find(std::string("LAYER=call\0", 11)) != std::string::npos);
  CHECK(out.find("LAYER=stored") == std::string::npos);
  CHECK(out.find("ONLY=stored only") != std::string::npos);
  CHECK(out.find("ODD=a b&'\"\n\xff") != std::string::npos);
  CHECK(out.find("of-the-host") == std::string::npos);

  r = argv({"env"});
  r.env.emplace_back("ONLY", std::nullopt);
  out = host.run(r).out;
  CHECK(out.find("ONLY") == std::string::npos);
  CHECK(out.find("LAYER=stored") != std::string::npos);
  r = argv({"env"});
  CHECK(host.run(r).out.find("ONLY=stored only") != std::string::npos);
  r = argv({"env"});
  r.stored_environment = false;
  CHECK(host.run(r).out.find("LAYER") == std::string::npos);

  const Seen& all = host.wait(host.client.env_get());
  REQUIRE(all.environment);
  REQUIRE(all.environment->entries.size() == 2);
  CHECK(all.environment->entries[0].name == "LAYER");
  CHECK(*all.environment->entries[1].value == "stored only");
}

TEST_CASE("A18 profiles of a shell are not read", "[cases.A18]") {
  Guest guest;
  TempFolder folder;
  write_text(folder.file(".bash_profile"), "echo profile\n");
  write_text(folder.file(".profile"), "echo profile\n");
  write_text(folder.file("env"), "echo planted\n");
  wire::SpawnRequest r = shell("echo hi");
  r.env.emplace_back("HOME", folder.path());
  r.env.emplace_back("BASH_ENV", folder.file("env"));
  CHECK(guest.host().run(r).out == "hi\n");
}

TEST_CASE("A19 A20 working directories and files", "[cases.A19][cases.A20]") {
  TempFolder folder;
  REQUIRE(::mkdir(folder.file("sub").c_str(), 0700) == 0);
  Guest guest({"--root", folder.path()});
  Host& host = guest.host();
  CHECK(host.run(argv({"pwd"})).out == folder.path() + "\n");
  wire::SpawnRequest r = argv({"pwd"});
  r.cwd = "sub";
  CHECK(host.run(r).out == folder.file("sub") + "\n");
  r = argv({"pwd"});
  r.cwd = "/tmp";
  CHECK(host.run(r).out == "/tmp\n");
  CHECK(host.run(shell("echo kept > one")).code() == 0);
  CHECK(host.run(shell("cat one")).out == "kept\n");
}

TEST_CASE("a command has three descriptors, default signals and its own session") {
  Guest guest;
  Host& host = guest.host();
  CHECK(host.run(shell("ls /proc/self/fd")).out == "0\n1\n2\n3\n");  // 3: the listing itself
  const std::string status = host.run(shell("exec cat /proc/self/status")).out;
  CHECK(status.find("SigBlk:\t0000000000000000") != std::string::npos);
  CHECK(status.find("SigIgn:\t0000000000000000") != std::string::npos);
  CHECK(host.run(shell("set -- $(cat /proc/$$/stat); echo $(($1 - $6)) $(($1 - $5))")).out ==
        "0 0\n");
  CHECK(host.run(shell("umask")).out == "0022\n");
  char limit[32];
  std::snprintf(limit, sizeof limit, "%ld\n", ::sysconf(_SC_OPEN_MAX));
  CHECK(host.run(shell("ulimit -Sn")).out == limit);
}

TEST_CASE("a command goes before the guest when memory runs out") {
  Guest guest;
  const std::string own = contents("/proc/" + std::to_string(guest.pid()) + "/oom_score_adj");
  const Seen& s = guest.host().run(shell(
      "i=0; while [ $(cat /proc/$$/oom_score_adj) -le " + std::to_string(std::atoi(own.c_str())) +
      " ] && [ $i -lt 500 ]; do sleep .01; i=$((i+1)); done; cat /proc/self/oom_score_adj"));
  CHECK(std::atoi(s.out.c_str()) > std::atoi(own.c_str()));
}

TEST_CASE("a request id runs once") {
  Guest guest;
  Host& host = guest.host();
  TempFolder folder;
  wire::SpawnRequest r = shell("echo run >> " + folder.file("count") + "; echo out");
  const Seen first = host.run(r);
  const Seen second = host.run(r);
  REQUIRE(second.started);
  CHECK_FALSE(first.started->existing);
  CHECK(second.started->existing);
  CHECK(second.started->process == first.started->process);
  CHECK(second.out == "out\n");
  CHECK(second.code() == 0);
  CHECK(contents(folder.file("count")) == "run\n");
  CHECK(host.wait(host.client.release(first.started->process)).done);
  const Seen third = host.run(r);
  REQUIRE(third.error);
  CHECK(third.error->code == ErrorCode::conflict);
  CHECK(contents(folder.file("count")) == "run\n");
}

TEST_CASE("users are switched where the guest may") {
  Guest guest;
  Host& host = guest.host();
  wire::SpawnRequest r = shell("id -u; id -g; id -G; echo $HOME");
  r.user = "12345:54321";
  const Seen s = host.run(r);
  if (::geteuid() == 0) {
    CHECK(s.out == "12345\n54321\n54321\n\n");
  } else {
    REQUIRE(s.error);
    CHECK(s.error->code == ErrorCode::not_permitted);
  }
  r = shell("true");
  r.user = "no-such-user-here";
  const Seen& t = host.run(r);
  REQUIRE(t.error);
  CHECK(t.error->message.find("no-such-user-here") != std::string::npos);
}
