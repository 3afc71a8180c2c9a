// A stream over file descriptors, with a thread of its own: fit for tests only.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "../loop.hpp"

namespace sandforge::testing {

// Reads from some descriptors, each a channel, and writes to one. Runs until all readers ended.
class DescriptorStream {
 public:
  struct Reader {
    int descriptor;
    std::uint32_t channel;
  };

  // Shared by the thread, the lane's tasks and the handle.
  struct Core : std::enable_shared_from_this<Core> {
    Lane& lane;
    sf_stream_events events;
    std::vector<Reader> readers;
    int writer;
    std::array<int, 2> wake{};
    std::mutex mutex;
    std::uint64_t credit;
    bool cancelled = false;
    bool released = false;
    bool wants_room = false;
    bool shut = false;
    std::uint64_t delivered = 0;
    std::uint64_t dropped = 0;
    std::function<void()> on_cancel;
    // Called on the thread once all readers ended: what to tell before done.
    std::function<std::function<void()>()> on_end;

    Core(Lane& on, const sf_stream_events& told, std::vector<Reader> from, int to, std::uint64_t w)
        : lane(on), events(told), readers(std::move(from)), writer(to), credit(w) {
      if (::pipe2(wake.data(), O_CLOEXEC | O_NONBLOCK) != 0)
        throw Failed(std::string("no pipe: ") + std::strerror(errno));
      lane.retain();
    }
    ~Core() {
      ::close(wake[0]);
      ::close(wake[1]);
      lane.release();
    }

    void nudge() {
      const char byte = 0;
      if (::write(wake[1], &byte, 1) < 0) return;  // full: it wakes anyway
    }

    void close_writer() {
      const std::lock_guard lock(mutex);
      shut = true;
      if (writer < 0) return;
      const bool reads_too = !readers.empty() && readers.front().descriptor == writer;
      if (reads_too) {
        ::shutdown(writer, SHUT_WR);
      } else {
        ::close(writer);
      }
      writer = -1;
    }

    // Runs it on a thread of its own, which the caller joins.
    static std::thread start(const std::shared_ptr<Core>& core) {
      return std::thread([core, busy = Loop::Outside(core->lane.loop())] { core->run(); });
    }
    void run() {
      std::vector<char> buffer(65536);
      while (!readers.empty()) {
        std::vector<pollfd> polled{{wake[0], POLLIN, 0}};
        std::uint64_t may = 0;
        bool discard = false;
        {
          const std::lock_guard lock(mutex);
          if (cancelled && !on_end) break;
          discard = cancelled || (released && credit == 0);
          may = discard ? buffer.size() : std::min<std::uint64_t>(credit, buffer.size());
          for (const Reader& reader : readers) {
            polled.push_back({may > 0 ? reader.descriptor : -1, POLLIN, 0});
          }
          polled.push_back({wants_room ? writer : -1, POLLOUT, 0});
        }
        if (::poll(polled.data(), polled.size(), -1) < 0) continue;
        while (::read(wake[0], buffer.data(), buffer.size()) > 0) {
        }
        if (polled.back().revents != 0) {
          {
            const std::lock_guard lock(mutex);
            wants_room = false;
          }
          lane.post([me = shared_from_this()] { me->events.on_writable(me->events.ctx); });
        }
        for (std::size_t i = readers.size(); i-- > 0;) {
          if (polled[i + 1].revents == 0) continue;
          const ssize_t n = ::read(readers[i].descriptor, buffer.data(), may);
          if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
          if (n <= 0) {
            const std::lock_guard lock(mutex);
            if (writer == readers[i].descriptor) writer = -1;
            ::close(readers[i].descriptor);
            readers.erase(readers.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
          }
          const auto size = static_cast<std::uint64_t>(n);
          if (discard) {
            dropped += size;
            continue;
          }
          {
            const std::lock_guard lock(mutex);
            credit -= size;
          }
          delivered += size;
          lane.post([me = shared_from_this(), channel = readers[i].channel,
                     data = std::string(buffer.data(), size)] {
            me->events.on_data(me->events.ctx, channel, 0, bytes(data));
          });
          break;  // the credit has changed
        }
      }
      for (const Reader& reader : readers)
        ::close(reader.descriptor);
      const auto before_done = on_end ? on_end() : std::function<void()>();
      {
        const std::lock_guard lock(mutex);
        if (writer >= 0 && (readers.empty() || readers.front().descriptor != writer)) {
          ::close(writer);
        }
        writer = -1;
        on_cancel = nullptr;
        on_end = nullptr;
      }
      lane.post([me = shared_from_this(), before_done] {
        if (before_done) before_done();
        sf_stream_end end{sizeof(sf_stream_end), me->delivered, me->dropped};
        const Failure failure(SF_CANCELLED, "cancelled");
        const sf_error error = failure.view();
        const bool ended_early = me->cancelled && !before_done;
        me->events.done(me->events.ctx, ended_early ? &error : nullptr, &end);
      });
    }
  };

  // The object that is handed out.
  struct Handle : sf_stream {
    std::shared_ptr<Core> core;
  };

  static void bind(Handle& handle, std::shared_ptr<Core> core, bool owned) {
    static const sf_stream_vtbl lent = table([](sf_stream*) noexcept {});
    static const sf_stream_vtbl own = table([](sf_stream* s) noexcept {
      drop(*of(s));
      delete static_cast<Handle*>(s);
    });
    handle.vtbl = owned ? &own : &lent;
    handle.core = std::move(core);
  }

  static void drop(Core& core) {
    {
      const std::lock_guard lock(core.mutex);
      core.released = true;
    }
    core.nudge();
  }

 private:
  static std::shared_ptr<Core>& of(sf_stream* stream) { return static_cast<Handle*>(stream)->core; }

  static sf_stream_vtbl table(void (*release)(sf_stream*) noexcept) {
    return {sizeof(sf_stream_vtbl),
            [](sf_stream* s, std::uint64_t n) noexcept {
              {
                const std::lock_guard lock(of(s)->mutex);
                of(s)->credit += n;
              }
              of(s)->nudge();
            },
            [](sf_stream* s, sf_bytes data, std::uint32_t, std::size_t* accepted,
               const sf_error_sink* err) noexcept -> sf_status {
              Core& core = *of(s);
              const std::lock_guard lock(core.mutex);
              if (core.shut || core.writer < 0) return refuse(err, SF_CONFLICT, "closed");
              const ssize_t n = ::write(core.writer, data.ptr, data.len);
              if (n < 0 && errno != EAGAIN) return refuse(err, SF_CONFLICT, std::strerror(errno));
              *accepted = n < 0 ? 0 : static_cast<std::size_t>(n);
              if (*accepted < data.len) {
                core.wants_room = true;
                core.nudge();
              }
              return SF_OK;
            },
            [](sf_stream* s, const sf_error_sink*) noexcept -> sf_status {
              of(s)->close_writer();
              return SF_OK;
            },
            [](sf_stream* s) noexcept {
              {
                const std::lock_guard lock(of(s)->mutex);
                if (!of(s)->cancelled && of(s)->on_cancel) of(s)->on_cancel();
                of(s)->cancelled = true;
              }
              of(s)->nudge();
            },
            release};
  }
};

}  // namespace sandforge::testing
