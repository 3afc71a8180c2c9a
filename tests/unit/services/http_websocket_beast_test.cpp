// WebSockets against the server of Boost.Beast, which knows the protocol by itself.
#include <random>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "http_fixture.hpp"

using namespace sandforge;
using namespace sandforge::test;

namespace {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;

// Sends each message back in frames of a few bytes, with a ping before it, until it is closed.
void echo(int socket, boost::beast::error_code& last) {
  asio::io_context context;
  websocket::stream<asio::ip::tcp::socket, false> stream(
      asio::ip::tcp::socket(context, asio::ip::tcp::v4(), socket));
  stream.accept(last);
  stream.write_buffer_bytes(1000);
  boost::beast::flat_buffer buffer;
  while (!last) {
    stream.read(buffer, last);
    if (last) return;
    stream.text(stream.got_text());
    stream.ping("are you there", last);
    if (!last) stream.write(buffer.data(), last);
    buffer.consume(buffer.size());
  }
}

}  // namespace

TEST_CASE("websocket: an echo by another implementation") {
  Server server;
  HttpBench bench(server.url);
  Ask ask;
  ask.flags = SF_HTTP_WEBSOCKET;
  Call& call = bench.send(ask);
  boost::beast::error_code last;
  std::thread other([&, socket = server.take()] { echo(socket, last); });
  std::vector<std::string> said;
  std::mt19937 dice(7);
  bool good = true;
  for (int i = 0; good && i < 50; ++i) {
    const bool text = i % 2 == 0;
    std::string message(dice() % 5000, 'x');
    if (!text)
      for (char& c : message)
        c = static_cast<char>(dice());
    said.push_back((text ? "text " : "binary ") + message);
    std::string_view rest = message;
    const std::uint32_t kind = text ? SF_DATA_TEXT : SF_DATA_BINARY;
    for (bool ended = false; !ended;) {
      const std::size_t size = std::min<std::size_t>(rest.size(), 1 + dice() % 3000);
      ended = size == rest.size();
      const int before = call.writables_so_far();
      const auto [status, accepted] =
          bench.write(call, rest.substr(0, size), kind | (ended ? SF_DATA_END : 0U));
      good = status == SF_OK;
      CHECK(good);
      if (!good) break;
      ended = ended && accepted == size;
      rest.remove_prefix(accepted);
      if (accepted < size) CHECK(call.until([&] { return call.writables > before; }));
    }
  }
  CHECK(call.until([&] { return call.messages.size() == said.size(); }));
  CHECK(call.messages == said);
  CHECK(bench.shutdown(call) == SF_OK);
  CHECK(call.until_done());
  CHECK(call.code == SF_OK);
  CHECK(call.close_code == 1000);
  other.join();
  CHECK(last == websocket::error::closed);
}
