#include "options.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

namespace sandforge::guest {

const char kUsage[] =
    "usage: sandforge-guest serve (--socket PATH | --fd N) [options] [-- COMMAND...]\n"
    "       sandforge-guest relay --socket PATH [--wait-ms N] [--write-deadline-ms N]\n"
    "       sandforge-guest --version\n"
    "\n"
    "serve owns the processes of a sandbox and answers hosts on a Unix socket. With a command it\n"
    "ends when that ends.\n"
    "  --root DIR             where commands run that name no folder\n"
    "  --files-root DIR       what file operations reach; the root\n"
    "  --files-link           that folder may be a symbolic link\n"
    "  --idle-ms N            end everything after N ms in which no foreground command ran\n"
    "                         and no host asked for anything\n"
    "  --exit-when-idle-and-unused-ms N\n"
    "                         exit after N ms without a host and any process\n"
    "  --on-disconnect MODE   'end' (default) or 'keep' the commands of a lost connection\n"
    "  --grace-ms N           between SIGTERM and SIGKILL when the guest ends; 2000\n"
    "  --ping-ms N            ask a silent host for a sign of life; 15000\n"
    "  --log-bytes N          retained output of one process; 1048576\n"
    "  --log-total-bytes N    of all processes together; 67108864\n"
    "  --daemon               go into the background once connections are taken\n"
    "  --own-environment      commands begin with the environment that the guest was given\n"
    "  --no-cgroup            make no control group for the processes, even where one can be made\n"
    "  --ready-fd N           write a byte here once connections are taken\n"
    "relay connects its standard input and output with that socket.\n";

namespace {

class Arguments {
 public:
  Arguments(int argc, char** argv, CommandLine& line) : argc_(argc), argv_(argv), line_(line) {}

  bool next(std::string_view& name) {
    if (at_ >= argc_ || !line_.wrong.empty()) return false;
    name = argv_[at_++];
    return true;
  }
  void text(std::string& out) {
    if (const char* value = take()) out = value;
  }
  template <class T>
  void number(T& out, T limit) {
    const char* value = take();
    if (!value) return;
    T parsed{};
    const char* end = value + std::strlen(value);
    const auto result = std::from_chars(value, end, parsed);
    if (result.ec != std::errc() || result.ptr != end || parsed < 0 || parsed > limit)
      line_.wrong = std::string("not a number that ") + argv_[at_ - 2] + " takes: " + value;
    else
      out = parsed;
  }
  void rest(std::vector<std::string>& out) {
    out.assign(argv_ + at_, argv_ + argc_);
    at_ = argc_;
    if (out.empty()) line_.wrong = "-- needs a command";
  }
  void unknown(std::string_view name) { line_.wrong = "unknown option " + std::string(name); }

 private:
  const char* take() {
    if (at_ < argc_) return argv_[at_++];
    line_.wrong = std::string(argv_[at_ - 1]) + " needs a value";
    return nullptr;
  }

  int argc_;
  char** argv_;
  int at_ = 2;
  CommandLine& line_;
};

constexpr std::int64_t kMaxMs = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;

void parse_serve(Arguments& args, CommandLine& line) {
  ServeOptions& o = line.serve;
  std::int64_t log_bytes = static_cast<std::int64_t>(o.log_bytes);
  std::int64_t total = static_cast<std::int64_t>(o.log_total_bytes);
  std::string mode = "end";
  for (std::string_view name; args.next(name);) {
    if (name == "--socket")
      args.text(o.socket);
    else if (name == "--fd")
      args.number(o.fd, 1 << 20);
    else if (name == "--ready-fd")
      args.number(o.ready_fd, 1 << 20);
    else if (name == "--daemon")
      o.daemon = true;
    else if (name == "--")
      args.rest(o.main_command);
    else if (name == "--own-environment")
      o.inherit = true;
    else if (name == "--no-cgroup")
      o.group = false;
    else if (name == "--root")
      args.text(o.root);
    else if (name == "--files-root")
      args.text(o.files_root);
    else if (name == "--files-link")
      o.files_link = true;
    else if (name == "--idle-ms")
      args.number(o.idle_ms, kMaxMs);
    else if (name == "--exit-when-idle-and-unused-ms")
      args.number(o.unused_ms, kMaxMs);
    else if (name == "--grace-ms")
      args.number(o.grace_ms, kMaxMs);
    else if (name == "--ping-ms")
      args.number(o.ping_ms, kMaxMs);
    else if (name == "--log-bytes")
      args.number(log_bytes, kMaxBytes);
    else if (name == "--log-total-bytes")
      args.number(total, kMaxBytes);
    else if (name == "--on-disconnect")
      args.text(mode);
    else
      args.unknown(name);
  }
  o.log_bytes = static_cast<std::size_t>(log_bytes);
  o.log_total_bytes = static_cast<std::size_t>(total);
  o.keep = mode == "keep";
  if (!line.wrong.empty()) return;
  if (mode != "keep" && mode != "end") line.wrong = "--on-disconnect takes 'end' or 'keep'";
  if (o.daemon && o.socket.empty()) line.wrong = "--daemon needs --socket";
  if (o.socket.empty() == (o.fd < 0)) line.wrong = "serve takes one of --socket and --fd";
}

void parse_relay(Arguments& args, CommandLine& line) {
  for (std::string_view name; args.next(name);) {
    if (name == "--socket")
      args.text(line.relay.socket);
    else if (name == "--wait-ms")
      args.number(line.relay.wait_ms, kMaxMs);
    else if (name == "--write-deadline-ms")
      args.number(line.relay.write_deadline_ms, kMaxMs);
    else
      args.unknown(name);
  }
  if (line.wrong.empty() && line.relay.socket.empty()) line.wrong = "relay needs --socket";
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine line;
  const std::string_view role = argc > 1 ? argv[1] : "";
  Arguments args(argc, argv, line);
  if (role == "serve") {
    line.role = Role::serve;
    parse_serve(args, line);
  } else if (role == "relay") {
    line.role = Role::relay;
    parse_relay(args, line);
  } else if (role == "--version") {
    line.role = Role::version;
  } else if (role == "--help" || role == "-h") {
    line.role = Role::help;
  } else {
    line.wrong = role.empty() ? "a role is missing" : "unknown role " + std::string(role);
  }
  if (!line.wrong.empty()) line.role = Role::wrong;
  return line;
}

}  // namespace sandforge::guest
