#include "http/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "http/text.hpp"
#include "http/websocket.hpp"
#include "plugin/abi_text.hpp"

namespace sandforge::http {
namespace {

constexpr std::size_t kMaxBody = 64U << 20;  // longer ones are streamed
constexpr std::size_t kMaxHead = 256U << 10;
constexpr std::size_t kMaxHeaders = 256;
constexpr std::uint64_t kCloseTimeoutMs = 5000;

Error bad_request(std::string why) {
  return Error(Status::invalid, std::move(why), "http.request");
}

bool is_token(std::string_view text) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
}

bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || static_cast<unsigned char>(c) >= ' ' ? c != '\x7f' : false;
  });
}

Result<void> read_start_line(const Address& address, const Proxy* proxy,
                             const sf_http_request& from, Request& out) {
  const auto method = plugin::view(from.method);
  const auto target = plugin::view(from.target);
  if (!is_token(method)) return bad_request("the method of a request is empty or no word");
  if (method == "CONNECT") return bad_request("CONNECT is no request of a client");
  const bool good = target == "*" ? method == "OPTIONS" && address.prefix.empty()
                                  : !target.empty() && target.front() == '/';
  const bool plain = std::all_of(target.begin(), target.end(),
                                 [](char c) { return c > ' ' && c < '\x7f' && c != '#'; });
  if (!good || !plain)
    return bad_request("the target of a request is a path and a query, percent-encoded");
  out.to_head = method == "HEAD";
  out.bytes.append(method).append(" ");
  const bool by_proxy = proxy != nullptr && address.kind == Address::Kind::tcp && !out.tunnel;
  if (by_proxy) out.bytes.append("http://").append(address.authority);
  if (!by_proxy || target != "*") out.bytes.append(address.prefix).append(target);
  out.bytes.append(" HTTP/1.1\r\n");
  if (by_proxy && !proxy->authorization.empty())
    out.bytes.append("Proxy-Authorization: ").append(proxy->authorization).append("\r\n");
  return {};
}

Result<void> read_length(std::string_view value, Request& out) {
  std::uint64_t length = 0;
  const auto [end, wrong] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (wrong != std::errc() || end != value.data() + value.size() || !out.streamed || out.length)
    return bad_request("a Content-Length is one number, and given for a streamed body only");
  out.length = length;
  return {};
}

bool is_of_handshake(std::string_view name) {
  constexpr std::string_view prefix = "Sec-WebSocket-";
  return same_name(name, "Connection") || same_name(name, "Upgrade") ||
         same_name(name.substr(0, prefix.size()), prefix);
}

Result<void> read_headers(const Address& address, const sf_http_request& from, Request& out) {
  if (from.header_count > kMaxHeaders || (from.headers == nullptr && from.header_count > 0))
    return bad_request("the headers of a request are null or too many");
  bool host = false;
  for (std::size_t i = 0; i < from.header_count; ++i) {
    const auto name = plugin::view(from.headers[i].name);
    const auto value = plugin::view(from.headers[i].value);
    if (!is_token(name) || !is_value(value))
      return bad_request("a header of a request has characters that headers cannot have");
    if (same_name(name, "Transfer-Encoding"))
      return bad_request("how a body is sent is no header: it follows from the request");
    if (same_name(name, "Content-Length")) {
      if (auto good = read_length(value, out); !good) return good;
    }
    if (same_name(name, "Host") && std::exchange(host, true))
      return bad_request("a request has one Host");
    if (!out.websocket_key.empty() && is_of_handshake(name))
      return bad_request("a WebSocket's handshake is no header: it follows from the request");
    out.bytes.append(name).append(": ").append(value).append("\r\n");
    if (out.bytes.size() > kMaxHead) return bad_request("the head of a request is too long");
  }
  if (!host) out.bytes.append("Host: ").append(address.authority).append("\r\n");
  return {};
}

Result<void> offer_websocket(const sf_http_request& from, Request& out) {
  if (plugin::view(from.method) != "GET" || from.body.len > 0 || out.streamed || out.upgrade)
    return bad_request("a WebSocket begins with a GET that has no body and no other upgrade");
  out.subprotocols = plugin::view(from.subprotocols);
  for (std::string_view rest = out.subprotocols; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    if (!is_token(trimmed(rest.substr(0, comma))))
      return bad_request("the subprotocols of a request are words with commas between them");
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  out.websocket_key = new_websocket_key();
  return {};
}

void write_handshake(Request& out) {
  out.bytes.append("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
  out.bytes.append("Sec-WebSocket-Key: ").append(out.websocket_key).append("\r\n");
  if (!out.subprotocols.empty())
    out.bytes.append("Sec-WebSocket-Protocol: ").append(out.subprotocols).append("\r\n");
}

void read_timeouts(const sf_http_request& from, Request& out) {
  out.head_timeout_ms = from.timeout_ms;
  out.idle_timeout_ms = from.idle_timeout_ms;
  out.ping_ms = from.ping_ms;
  if (SF_HAS(&from, total_timeout_ms)) out.total_timeout_ms = from.total_timeout_ms;
  if (SF_HAS(&from, close_timeout_ms)) out.close_timeout_ms = from.close_timeout_ms;
  if (out.close_timeout_ms == 0) out.close_timeout_ms = kCloseTimeoutMs;
}

}  // namespace

Result<Request> read_request(const Address& address, const Proxy* proxy,
                             const sf_http_request* from) {
  if (from == nullptr || !SF_HAS(from, subprotocols))
    return bad_request("there is no request, or it lacks members");
  constexpr std::uint32_t known =
      SF_HTTP_FRESH_CONNECTION | SF_HTTP_UPGRADE | SF_HTTP_WEBSOCKET | SF_HTTP_STREAM_BODY;
  if ((from->flags & ~known) != 0)
    return Error(Status::unsupported, "a request asks for what this host's client cannot do",
                 "http.flags");
  Request out;
  out.fresh = (from->flags & SF_HTTP_FRESH_CONNECTION) != 0;
  out.upgrade = (from->flags & SF_HTTP_UPGRADE) != 0;
  out.streamed = (from->flags & SF_HTTP_STREAM_BODY) != 0;
  out.window = from->window;
  read_timeouts(*from, out);
  const auto body = plugin::view(from->body);
  if (out.upgrade && out.streamed)
    return bad_request("before an upgrade there is no streamed body");
  if (out.streamed && !body.empty()) return bad_request("a streamed body is not given whole");
  if (body.size() > kMaxBody) return bad_request("a body of that length must be streamed");
  const bool websocket = (from->flags & SF_HTTP_WEBSOCKET) != 0;
  if (websocket) {
    if (auto good = offer_websocket(*from, out); !good) return std::move(good).error();
  }
  // A proxy passes on requests, and no change of the protocol.
  out.tunnel = proxy != nullptr && address.kind == Address::Kind::tcp && (out.upgrade || websocket);
  if (auto good = read_start_line(address, proxy, *from, out); !good)
    return std::move(good).error();
  if (auto good = read_headers(address, *from, out); !good) return std::move(good).error();
  if (websocket) write_handshake(out);
  const auto method = plugin::view(from->method);
  const bool has_body = !body.empty() || method == "POST" || method == "PUT" || method == "PATCH";
  if (out.streamed && !out.length) {
    out.bytes.append("Transfer-Encoding: chunked\r\n");
  } else if (!out.streamed && has_body) {
    out.bytes.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n");
  }
  out.bytes.append("\r\n").append(body);
  return out;
}

}  // namespace sandforge::http
