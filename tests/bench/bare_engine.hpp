// The engine's API as nobody could ask it with less: a request, its answer, over a unix socket.
#pragma once

#include <string>

namespace sandforge::bench {

class BareEngine {
 public:
  // "unix:///var/run/docker.sock"; throws for others.
  explicit BareEngine(const std::string& host);

  // Makes it and starts it; its id.
  std::string start_container(const std::string& image, const std::string& name) const;
  void remove_container(const std::string& id) const;
  // Runs the command, which takes no argument, to the end of its output, and asks for its code.
  void exec(const std::string& container, const std::string& program) const;

 private:
  // The body of an answer below 400. Of an upgraded one: all that comes after it.
  std::string ask(const std::string& method, const std::string& path,
                  const std::string& body = {}) const;
  const std::string socket_;
};

}  // namespace sandforge::bench
