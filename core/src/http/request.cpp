#include "http/request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "plugin/abi_text.hpp"

namespace sandforge::http {
namespace {

constexpr std::size_t kMaxBody = 64U << 20;  // longer ones are streamed
constexpr std::size_t kMaxHead = 256U << 10;
constexpr std::size_t kMaxHeaders = 256;

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

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || static_cast<unsigned char>(c) >= ' ' ? c != '\x7f' : false;
  });
}

Result<void> read_start_line(const Address& address, const sf_http_request& from, Request& out) {
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
  out.bytes.append(method).append(" ").append(address.prefix).append(target);
  out.bytes.append(" HTTP/1.1\r\n");
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
    out.bytes.append(name).append(": ").append(value).append("\r\n");
    if (out.bytes.size() > kMaxHead) return bad_request("the head of a request is too long");
  }
  if (!host) out.bytes.append("Host: ").append(address.authority).append("\r\n");
  return {};
}

}  // namespace

Result<Request> read_request(const Address& address, const sf_http_request* from) {
  if (from == nullptr || !SF_HAS(from, subprotocols))
    return bad_request("there is no request, or it lacks members");
  constexpr std::uint32_t known = SF_HTTP_FRESH_CONNECTION | SF_HTTP_UPGRADE | SF_HTTP_STREAM_BODY;
  if ((from->flags & ~known) != 0)
    return Error(Status::unsupported, "a request asks for what this host's client cannot do",
                 "http.flags");
  Request out;
  out.fresh = (from->flags & SF_HTTP_FRESH_CONNECTION) != 0;
  out.upgrade = (from->flags & SF_HTTP_UPGRADE) != 0;
  out.streamed = (from->flags & SF_HTTP_STREAM_BODY) != 0;
  out.head_timeout_ms = from->timeout_ms;
  out.idle_timeout_ms = from->idle_timeout_ms;
  out.window = from->window;
  const auto body = plugin::view(from->body);
  if (out.upgrade && out.streamed)
    return bad_request("before an upgrade there is no streamed body");
  if (out.streamed && !body.empty()) return bad_request("a streamed body is not given whole");
  if (body.size() > kMaxBody) return bad_request("a body of that length must be streamed");
  if (auto good = read_start_line(address, *from, out); !good) return std::move(good).error();
  if (auto good = read_headers(address, *from, out); !good) return std::move(good).error();
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
