// G, the network: what a sandbox reaches and what it does not, by connections that are tried in it.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>

#include "procedure.hpp"

namespace sandforge::conformance {
namespace {

// Tries $1 at port $2 with whatever is there, and prints open, refused, silent or "no tool".
constexpr const char* kConnect = R"sh(
export LC_ALL=C
if command -v bash >/dev/null; then
  said=$(timeout 3 bash -c 'exec 3<>"/dev/tcp/$0/$1" && echo opened' "$1" "$2" 2>&1)
elif command -v python3 >/dev/null; then
  said=$(python3 -c '
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
print("opened")' "$1" "$2" 2>&1)
elif command -v perl >/dev/null; then
  said=$(perl -MIO::Socket::INET -e '
print IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => $ARGV[1], Timeout => 3)
  ? "opened" : $@' "$1" "$2" 2>&1)
elif command -v nc >/dev/null; then
  said=$(nc -w 3 "$1" "$2" </dev/null 2>&1 && echo opened)
else
  said="no tool"
fi
case $said in
  *opened*) echo open ;;
  *refused*) echo refused ;;
  "no tool") echo "no tool" ;;
  *) echo silent ;;
esac
)sh";

std::string connect_from(Sandbox& sandbox, const std::string& address, int port) {
  const auto result =
      sandbox.exec({"sh", "-c", kConnect, "sh", address, std::to_string(port)}, limited(20s));
  std::string said = result.out.substr(0, result.out.find('\n'));
  if (said == "no tool") unverified("the sandbox has no program that makes connections");
  REQUIRE((said == "open" || said == "refused" || said == "silent"));
  return said;
}

// A socket of this machine that nobody outside of it can reach: at the loopback, or at a bridge
// between this machine and what runs on it.
class Listener {
 public:
  explicit Listener(in_addr address) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr = address;
    socklen_t size = sizeof at;
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::listen(fd_, 8) != 0 || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
      const int code = errno;
      if (fd_ >= 0) ::close(fd_);
      throw_error(Error(Status::internal, std::generic_category().message(code), "conformance"));
    }
    port_ = ntohs(at.sin_port);
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    address_ = text;
  }
  ~Listener() { ::close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  const std::string& address() const noexcept { return address_; }
  int port() const noexcept { return port_; }
  // Whether anybody has connected since the last call.
  bool reached() const {
    const int one = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (one >= 0) ::close(one);
    return one >= 0;
  }

 private:
  int fd_ = -1;
  int port_ = 0;
  std::string address_;
};

// After the sandboxes were started: a provider may make its bridge only then.
std::vector<std::unique_ptr<Listener>> listen_on_this_machine() {
  std::vector<std::unique_ptr<Listener>> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) unverified("the addresses of this machine cannot be read");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(all, ::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0) continue;
    const bool loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    if (!loopback && !fs::exists(fs::path("/sys/class/net") / one->ifa_name / "bridge")) continue;
    out.push_back(std::make_unique<Listener>(
        reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr));
  }
  if (out.empty()) unverified("this machine has no address that only it can reach");
  return out;
}

void reaches_nothing_of_this_machine(Sandbox& sandbox) {
  for (const auto& listener : listen_on_this_machine()) {
    CAPTURE(listener->address());
    connect_from(sandbox, listener->address(), listener->port());
    CHECK_FALSE(listener->reached());
  }
}

std::shared_ptr<Sandbox> started_in(Host& host, const std::string& network,
                                    const std::string& name = "s") {
  json::Object changes;
  changes.set("networkIsolation", network);
  auto sandbox = host.make(host.open(changes), host.config(name));
  sandbox->start();
  return sandbox;
}

// The addresses of a sandbox but those of its loopback.
std::vector<std::string> addresses_of(Sandbox& sandbox) {
  std::istringstream lines(read_file(sandbox, "/proc/net/fib_trie"));
  std::set<std::string> out;
  std::string line, last;
  while (std::getline(lines, line)) {
    const auto dashes = line.find("-- ");
    if (dashes != std::string::npos) last = line.substr(dashes + 3);
    if (line.find("/32 host LOCAL") != std::string::npos && last.rfind("127.", 0) != 0)
      out.insert(last);
  }
  return {out.begin(), out.end()};
}

// A port at which nothing listens, so that the refusal tells that the sandbox was reached.
constexpr int kClosedPort = 1;

bool reaches(Sandbox& from, Sandbox& to) {
  for (const auto& address : addresses_of(to))
    if (connect_from(from, address, kClosedPort) != "silent") return true;
  return false;
}

void none(Host& host) {
  const auto sandbox = started_in(host, "NONE");
  std::istringstream devices(read_file(*sandbox, "/proc/net/dev"));
  std::string line;
  bool loopback = false;
  while (std::getline(devices, line)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto name = line.substr(line.find_first_not_of(' '), colon - line.find_first_not_of(' '));
    // Tunnels that a kernel puts into every network of its own, and that are down.
    const std::string up =
        read_file(*sandbox, "/sys/class/net/" + name + "/operstate").substr(0, 2);
    CAPTURE(name);
    if (name == "lo") loopback = true;
    CHECK((name == "lo" || up != "up"));
  }
  if (!loopback) unverified("the sandbox does not show its network devices");
  std::istringstream routes(read_file(*sandbox, "/proc/net/route"));
  std::getline(routes, line);  // the heading
  CHECK_FALSE(std::getline(routes, line));
  CHECK(addresses_of(*sandbox).empty());
  reaches_nothing_of_this_machine(*sandbox);
  const auto look_up = sandbox->exec(
      {"sh", "-c", "getent ahosts example.org || nslookup example.org"}, limited(30s));
  CHECK_FALSE(look_up.success);
}

void isolated(Host& host) {
  const auto sandbox = started_in(host, "ISOLATED");
  const auto other = started_in(host, "ISOLATED", "other");
  reaches_nothing_of_this_machine(*sandbox);
  CHECK_FALSE(reaches(*sandbox, *other));
  const char* internet = std::getenv("SANDFORGE_CONFORMANCE_INTERNET");
  const std::string where = internet == nullptr ? "" : internet;
  const auto colon = where.rfind(':');
  if (colon == std::string::npos)
    unverified("SANDFORGE_CONFORMANCE_INTERNET=HOST:PORT names nothing to reach");
  CHECK(connect_from(*sandbox, where.substr(0, colon), std::atoi(where.c_str() + colon + 1)) ==
        "open");
}

void in_private(Host& host) {
  const auto one = started_in(host, "PRIVATE");
  const auto other = started_in(host, "PRIVATE", "other");
  CHECK(reaches(*one, *other));
  CHECK(reaches(*other, *one));
}

}  // namespace

void add_network(Procedures& to) {
  to["network.none"] = none;
  to["network.isolated"] = isolated;
  to["network.private"] = in_private;
}

}  // namespace sandforge::conformance
