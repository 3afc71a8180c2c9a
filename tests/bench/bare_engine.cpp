#include "bare_engine.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "sandforge/posix/fd.hpp"
#include "sandforge/support/json.hpp"

namespace sandforge::bench {
namespace {

constexpr const char* kScheme = "unix://";

std::string path_of(const std::string& host) {
  if (host.rfind(kScheme, 0) != 0)
    throw std::runtime_error("these rows need an engine at a unix socket, and not " + host);
  return host.substr(std::strlen(kScheme));
}

posix::Fd connected(const std::string& path) {
  posix::Fd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  if (path.size() >= sizeof at.sun_path) throw std::runtime_error("a long path: " + path);
  std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
  if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw std::system_error(errno, std::generic_category(), path);
  return out;
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) throw std::system_error(errno, std::generic_category(), "send");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string receive_all(int fd) {
  std::string out;
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got < 0) throw std::system_error(errno, std::generic_category(), "recv");
    if (got == 0) return out;
    out.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string id_in(const std::string& body) {
  const auto parsed = json::parse(body);
  const json::Value* id = parsed ? parsed.value.find("Id") : nullptr;
  if (id == nullptr) throw std::runtime_error("no id in " + body);
  return id->as_string();
}

}  // namespace

BareEngine::BareEngine(const std::string& host) : socket_(path_of(host)) {}

// HTTP/1.0: the answer is not cut into chunks, and ends with its connection.
std::string BareEngine::ask(const std::string& method, const std::string& path,
                            const std::string& body) const {
  const posix::Fd fd = connected(socket_);
  send_all(fd.get(), method + " /v1.41" + path + " HTTP/1.0\r\nHost: engine\r\n" +
                         "Content-Type: application/json\r\nContent-Length: " +
                         std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string answer = receive_all(fd.get());
  const auto space = answer.find(' ');
  const auto end = answer.find("\r\n\r\n");
  if (space == std::string::npos || end == std::string::npos ||
      std::atoi(answer.c_str() + space) >= 400)
    throw std::runtime_error(method + " " + path + ": " + answer);
  return answer.substr(end + 4);
}

std::string BareEngine::start_container(const std::string& image, const std::string& name) const {
  const std::string id = id_in(ask("POST", "/containers/create?name=" + name,
                                   R"({"Image":")" + image +
                                       R"(","Cmd":["sleep","infinity"],"OpenStdin":true,)"
                                       R"("HostConfig":{"Init":true,"NetworkMode":"none"}})"));
  ask("POST", "/containers/" + id + "/start");
  return id;
}

void BareEngine::remove_container(const std::string& id) const {
  ask("DELETE", "/containers/" + id + "?force=true");
}

void BareEngine::exec(const std::string& container, const std::string& program) const {
  const std::string id =
      id_in(ask("POST", "/containers/" + container + "/exec",
                R"({"Cmd":[")" + program + R"("],"AttachStdout":true,"AttachStderr":true})"));
  ask("POST", "/exec/" + id + "/start", R"({"Detach":false,"Tty":false})");
  const std::string end = ask("GET", "/exec/" + id + "/json");
  if (end.find("\"ExitCode\":0") == std::string::npos)
    throw std::runtime_error("it failed: " + end);
}

}  // namespace sandforge::bench
