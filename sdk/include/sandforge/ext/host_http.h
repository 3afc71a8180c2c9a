/* Host service: HTTP/1.1 and WebSocket client over tcp, TLS and unix sockets. */
#ifndef SANDFORGE_EXT_HOST_HTTP_H
#define SANDFORGE_EXT_HOST_HTTP_H

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_SERVICE_HTTP "sandforge.host.http/1"

/* How far a request had come when it ended; SF_ERROR_MAY_HAVE_STARTED follows from it. */
#define SF_HTTP_NOT_CONNECTED 0u
#define SF_HTTP_NOT_SENT 1u
#define SF_HTTP_MAYBE_SENT 2u
#define SF_HTTP_HEAD 3u
#define SF_HTTP_BODY 4u

typedef struct sf_http_header { /* FROZEN */
  sf_bytes name;
  sf_bytes value;
} sf_http_header;

typedef struct sf_http_client sf_http_client;

/* Where requests go, and how. APPENDABLE */
typedef struct sf_http_client_options {
  size_t struct_size;
  sf_str base_url;        /* http, https, or unix:///path for a unix socket */
  sf_str ca_pem;          /* empty: the system's */
  sf_str client_cert_pem; /* secret; empty: none */
  sf_str client_key_pem;  /* secret */
  uint64_t connect_timeout_ms;
  uint64_t user_timeout_ms; /* unacknowledged bytes end the connection after this; 0: system's */
  uint64_t keepalive_ms;    /* TCP keepalive idle time; 0: off */
  uint32_t max_connections;
  uint32_t reserved;
  /*
   * http://[USER:PASSWORD@]HOST:PORT, percent-encoded; secret; empty: none. An https base goes
   * through it by CONNECT, an http base by requests that name the whole URL. Not for unix sockets.
   */
  sf_str proxy_url;
} sf_http_client_options;

#define SF_HTTP_FRESH_CONNECTION 1u /* for what must not run twice */
/*
 * After a 101, or a 200 that has neither a length nor chunks, the stream carries the raw connection
 * both ways. Anything else is an ordinary answer. Until then write accepts nothing; on_writable
 * comes after on_response.
 */
#define SF_HTTP_UPGRADE 2u
/*
 * A GET without a body. After the handshake the stream carries messages (SF_DATA_*); until then
 * write accepts nothing, and on_writable comes after on_response. shutdown_write closes with code
 * 1000: messages come until the other end has closed, too. cancel drops the connection. A refused
 * handshake is an ordinary answer.
 */
#define SF_HTTP_WEBSOCKET 4u
/* The body is what is written to the stream: chunked, unless headers has a Content-Length. */
#define SF_HTTP_STREAM_BODY 8u

typedef struct sf_http_request { /* APPENDABLE */
  size_t struct_size;
  sf_str method;
  sf_str target; /* path and query, percent-encoded */
  const sf_http_header* headers;
  size_t header_count;
  sf_bytes body; /* unless SF_HTTP_STREAM_BODY */
  uint32_t flags;
  uint32_t reserved;
  uint64_t timeout_ms;      /* to the response head; 0: none */
  uint64_t idle_timeout_ms; /* between bytes; 0: none */
  /*
   * WebSocket: a ping after so long without a byte; nothing for as long again ends the connection.
   * 0: none
   */
  uint64_t ping_ms;
  uint64_t window;           /* first credit of the response */
  sf_str subprotocols;       /* WebSocket, comma separated */
  uint64_t total_timeout_ms; /* from the call to done; 0: none */
  uint64_t close_timeout_ms; /* WebSocket: for the answer to a close; 0: 5000 */
} sf_http_request;

typedef struct sf_http_response { /* APPENDABLE */
  size_t struct_size;
  uint32_t status;
  uint32_t upgraded; /* 1: the stream carries the upgraded connection */
  const sf_http_header* headers;
  size_t header_count;
  sf_str subprotocol;
} sf_http_response;

typedef struct sf_http_end { /* APPENDABLE */
  size_t struct_size;
  uint32_t phase;      /* SF_HTTP_* phase */
  uint32_t close_code; /* WebSocket; 0: none */
  sf_str close_reason;
} sf_http_end;

typedef struct sf_http_events { /* APPENDABLE */
  size_t struct_size;
  void* ctx;
  /* The head, before any on_data; at most once, informational answers left out. [callback] */
  void (*on_response)(void* ctx, const sf_http_response* response) SF_NOEXCEPT;
  /* Just before the stream's done. [callback] */
  void (*on_end)(void* ctx, const sf_http_end* end) SF_NOEXCEPT;
} sf_http_events;

typedef struct sf_http_service { /* APPENDABLE */
  size_t struct_size;
  /* A client with its pool of connections, bound to a lane. No I/O. [any] */
  sf_status (*client_create)(sf_host* host, sf_lane* lane, const sf_http_client_options* options,
                             sf_http_client** client, const sf_error_sink* err) SF_NOEXCEPT;
  /* After it, running requests go on to their end. [lane] */
  void (*client_release)(sf_http_client* client) SF_NOEXCEPT;
  /*
   * One request. Any status is an answer, no error, and no redirect is followed. Replayed only
   * while its phase is not_connected or not_sent. [lane]
   */
  sf_status (*request)(sf_http_client* client, const sf_http_request* request,
                       const sf_stream_events* io, const sf_http_events* events, sf_stream** stream,
                       const sf_error_sink* err) SF_NOEXCEPT;
} sf_http_service;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SANDFORGE_EXT_HOST_HTTP_H */
