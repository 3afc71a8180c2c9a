// Requests of the host's http client whose answers are streams, for coroutines: bodies that are
// read as they come, and upgrades to a raw connection that carries bytes both ways.
#pragma once

#include <coroutine>

#include "host_stream.hpp"
#include "http.hpp"

namespace sandforge::plugin {
namespace detail {

// An inbox that also keeps the head of the answer. Everything of it runs on the client's lane.
class HttpInbox : public Inbox {
 public:
  using Inbox::Inbox;

  static sf_http_events head_events(HttpInbox* inbox) noexcept {
    return {sizeof(sf_http_events), inbox,
            [](void* ctx, const sf_http_response* response) noexcept {
              static_cast<HttpInbox*>(ctx)->on_response(response);
            },
            [](void*, const sf_http_end*) noexcept {}};
  }
  const std::optional<HttpAnswer>& head() const noexcept { return head_; }
  bool upgraded() const noexcept { return upgraded_; }
  // Sets wake when there is a head.
  void wait_head(const std::shared_ptr<Wake>& wake) { waiting_ = wake; }

 private:
  void on_response(const sf_http_response* given) noexcept {
    try {
      const auto response = read_appendable(given);
      HttpAnswer head;
      head.status = response.status;
      for (std::size_t i = 0; i < response.header_count; ++i) {
        head.headers.emplace_back(copy(response.headers[i].name), copy(response.headers[i].value));
      }
      head_ = std::move(head);
      upgraded_ = response.upgraded != 0;
    } catch (...) {
      return cancel();  // without memory for its head an answer is of no use
    }
    if (waiting_) std::exchange(waiting_, nullptr)->set();
  }

  std::optional<HttpAnswer> head_;
  bool upgraded_ = false;
  std::shared_ptr<Wake> waiting_;
};

}  // namespace detail

/*
 * An answer whose body, or whose connection after an upgrade, is read and written as a HostStream:
 * at most 64 KiB wait unread, and dropping it ends the connection.
 *
 *   HttpStream stream = co_await HttpStream::open(client, request, SF_HTTP_UPGRADE);
 *   if (!stream.upgraded()) … co_await stream.rest(…) …
 */
class HttpStream : public HostStream {
 public:
  /*
   * Sends the request and waits for the head of its answer: any status is one. flags: SF_HTTP_* of
   * the request, such as SF_HTTP_UPGRADE. The limit on the length of the answer does not hold here.
   * On the client's lane; the client may go once this has begun. Throws as HttpClient::send.
   */
  static Task<HttpStream> open(const HttpClient& client, HttpRequest request,
                               std::uint32_t flags = 0) {
    return begin(client.lane(), client.get(), std::move(request), flags);
  }

  /*
   * The same for a body of unknown length (SF_HTTP_STREAM_BODY): write_all and shutdown_write
   * first, then answered(). A write that fails may mean that the other end answered early:
   * answered() then has that answer, or throws.
   */
  static HttpStream upload(const HttpClient& client, const HttpRequest& request) {
    const auto inbox = std::make_shared<detail::HttpInbox>(client.lane());
    HttpStream stream(inbox);
    start(*inbox, inbox, client.get(), request, SF_HTTP_STREAM_BODY);
    return stream;
  }
  // Waits for the head, which what follows reads. Throws as open.
  Task<void> answered() { return wait_for_head(http_); }

  std::uint32_t status() const noexcept { return http_->head()->status; }
  std::string_view header(std::string_view name) const noexcept {
    return http_->head()->header(name);
  }
  // Both ways are open. Else it is an ordinary answer, which is only read.
  bool upgraded() const noexcept { return http_->upgraded(); }

  // The rest of an ordinary answer, with its head; Code::no_space beyond `most` bytes.
  Task<HttpAnswer> rest(std::size_t most = 1 << 20) { return read_rest(http_, most); }

 private:
  explicit HttpStream(std::shared_ptr<detail::HttpInbox> inbox)
      : HostStream(inbox), http_(std::move(inbox)) {}

  static Task<HttpStream> begin(Lane lane, sf_http_client* client, HttpRequest request,
                                std::uint32_t flags) {
    const StopToken stop = co_await current_stop();
    stop.throw_if_stopped();
    const auto inbox = std::make_shared<detail::HttpInbox>(lane);
    HttpStream stream(inbox);
    start(*inbox, inbox, client, request, flags);
    co_await wait_for_head(inbox);
    co_return std::move(stream);
  }

  static Task<void> wait_for_head(std::shared_ptr<detail::HttpInbox> inbox) {
    const StopToken stop = co_await current_stop();
    const StopCallback cancel(stop, [inbox] { inbox->cancel(); });
    while (!inbox->head()) {
      const auto wake = std::make_shared<detail::Wake>();
      inbox->wait_head(wake);
      if (!inbox->wait_readable(wake)) {
        stop.throw_if_stopped();
        throw Error(Code::internal, "the host ended a request without an answer or an error");
      }
      co_await wake;
    }
  }

  static void start(detail::HttpInbox& inbox, const std::shared_ptr<detail::Inbox>& kept,
                    sf_http_client* client, const HttpRequest& request, std::uint32_t flags) {
    const auto& service = detail::need(detail::services().http, SF_SERVICE_HTTP);
    const detail::HttpRequestView raw(request, flags);
    const sf_stream_events io = detail::Inbox::events(kept);
    const sf_http_events events = detail::HttpInbox::head_events(&inbox);
    detail::ErrorCatcher errors;
    sf_stream* opened = nullptr;
    const sf_status status =
        service.request(client, raw.get(), &io, &events, &opened, errors.sink());
    if (status != SF_OK) inbox.refused();
    errors.check(status);
    inbox.opened(opened, nullptr);
  }

  static Task<HttpAnswer> read_rest(std::shared_ptr<detail::HttpInbox> inbox, std::size_t most) {
    HttpAnswer answer = *inbox->head();
    for (;;) {
      const std::optional<Output> piece = co_await read_from(inbox);
      if (!piece) co_return answer;
      if (answer.body.size() + piece->data.size() > most) {
        inbox->cancel();
        throw Error(Code::no_space, "the answer is longer than " + std::to_string(most) + " bytes")
            .may_have_started(true);
      }
      answer.body += piece->data;
    }
  }

  std::shared_ptr<detail::HttpInbox> http_;
};

}  // namespace sandforge::plugin
