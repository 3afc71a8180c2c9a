// Asio completion tokens for sandboxes and processes.
//
//   Result<StartedInfo> info = co_await async_start(*sandbox, boost::asio::use_awaitable);
//   std::future<Result<SandboxInfo>> r = async_info(*sandbox, boost::asio::use_future);
//
// The completion signature is void(Result<T>): errors are values, nothing is thrown. The handler
// runs on its associated executor, which it keeps busy until then; without one, on the sandbox's
// lane. Emitting the handler's cancellation slot ends the command of an exec or a wait, with its
// whole tree, as options.stop does. Thread rule: any thread; a slot is emitted on the executor of
// its handler.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>
#include <optional>

#include "sandforge/sandbox.hpp"

namespace sandforge {
namespace detail {

// Brings the result to the handler's executor, and keeps that from running out of work before.
template <class T, class Inner>
class OnItsExecutor {
 public:
  explicit OnItsExecutor(Inner handler) : handler_(std::move(handler)) {
    using boost::asio::execution::outstanding_work;
    const auto executor = boost::asio::get_associated_executor(handler_, Nowhere());
    if constexpr (!std::is_same_v<std::decay_t<decltype(executor)>, Nowhere>)
      executor_.emplace(boost::asio::prefer(executor, outstanding_work.tracked));
  }

  void operator()(Result<T> result) {
    if (!executor_) return std::move(handler_)(std::move(result));
    const auto executor = std::move(*executor_);
    boost::asio::dispatch(executor,
                          [handler = std::move(handler_), result = std::move(result)]() mutable {
                            std::move(handler)(std::move(result));
                          });
  }

 private:
  // What a handler without an executor of its own reports.
  struct Nowhere : boost::asio::system_executor {};

  Inner handler_;
  std::optional<boost::asio::any_io_executor> executor_;
};

template <class T, class Token, class Start>
auto initiate(Token&& token, Start start) {
  return boost::asio::async_initiate<Token, void(Result<T>)>(
      [start = std::move(start)](auto handler) mutable {
        using Inner = std::decay_t<decltype(handler)>;
        start(Handler<T>(OnItsExecutor<T, Inner>(std::move(handler))));
      },
      token);
}

// Cancellation of the handler, and a stop of the caller's own, end in one token.
class JoinedStop {
 public:
  template <class Slot>
  static std::stop_token join(const Slot& slot, std::stop_token own) {
    if (!slot.is_connected()) return own;
    auto joined = std::make_shared<JoinedStop>(std::move(own));
    auto token = joined->source_.get_token();
    Slot(slot).assign([joined](boost::asio::cancellation_type) { joined->source_.request_stop(); });
    return token;
  }
  explicit JoinedStop(std::stop_token own) : forward_(std::move(own), Forward{source_}) {}

 private:
  struct Forward {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  std::stop_callback<Forward> forward_;
};

// As initiate, for what takes options with a stop token.
template <class T, class Token, class Options, class Start>
auto initiate_stoppable(Token&& token, Options options, Start start) {
  return boost::asio::async_initiate<Token, void(Result<T>)>(
      [start = std::move(start), options = std::move(options)](auto handler) mutable {
        using Inner = std::decay_t<decltype(handler)>;
        options.stop = JoinedStop::join(boost::asio::get_associated_cancellation_slot(handler),
                                        std::move(options.stop));
        start(std::move(options), Handler<T>(OnItsExecutor<T, Inner>(std::move(handler))));
      },
      token);
}

}  // namespace detail

// As the functions of the same name of Sandbox and Process, which say what they do and which errors
// they give. The sandbox and the process are kept until the handler was called.

template <class Token>
auto async_start(Sandbox& sandbox, Token&& token) {
  return detail::initiate<StartedInfo>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this()](auto done) { self->async_start(std::move(done)); });
}

template <class Token>
auto async_stop(Sandbox& sandbox, Token&& token) {
  return detail::initiate<void>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this()](auto done) { self->async_stop(std::move(done)); });
}

template <class Token>
auto async_destroy(Sandbox& sandbox, Token&& token) {
  return detail::initiate<void>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this()](auto done) { self->async_destroy(std::move(done)); });
}

template <class Token>
auto async_info(Sandbox& sandbox, Token&& token) {
  return detail::initiate<SandboxInfo>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this()](auto done) { self->async_info(std::move(done)); });
}

template <class Token>
auto async_instructions(Sandbox& sandbox, Token&& token) {
  return detail::initiate<std::string>(std::forward<Token>(token),
                                       [self = sandbox.shared_from_this()](auto done) {
                                         self->async_instructions(std::move(done));
                                       });
}

template <class Token>
auto async_execute_command(Sandbox& sandbox, std::string command, std::vector<std::string> args,
                           ExecOptions options, Token&& token) {
  return detail::initiate_stoppable<CommandResult>(
      std::forward<Token>(token), std::move(options),
      [self = sandbox.shared_from_this(), command = std::move(command), args = std::move(args)](
          ExecOptions with, auto done) mutable {
        self->async_execute_command(std::move(command), std::move(args), std::move(with),
                                    std::move(done));
      });
}

template <class Token>
auto async_exec(Sandbox& sandbox, std::vector<std::string> argv, ExecOptions options,
                Token&& token) {
  return detail::initiate_stoppable<CommandResult>(
      std::forward<Token>(token), std::move(options),
      [self = sandbox.shared_from_this(), argv = std::move(argv)](ExecOptions with,
                                                                  auto done) mutable {
        self->async_exec(std::move(argv), std::move(with), std::move(done));
      });
}

template <class Token>
auto async_spawn(Sandbox& sandbox, Command command, SpawnOptions options, Token&& token) {
  return detail::initiate<std::shared_ptr<Process>>(
      std::forward<Token>(token), [self = sandbox.shared_from_this(), command = std::move(command),
                                   options = std::move(options)](auto done) mutable {
        self->async_spawn(std::move(command), std::move(options), std::move(done));
      });
}

template <class Token>
auto async_list_processes(Sandbox& sandbox, Token&& token) {
  return detail::initiate<std::vector<ProcessInfo>>(std::forward<Token>(token),
                                                    [self = sandbox.shared_from_this()](auto done) {
                                                      self->async_list_processes(std::move(done));
                                                    });
}

template <class Token>
auto async_get_process(Sandbox& sandbox, ProcessId id, Token&& token) {
  return detail::initiate<std::shared_ptr<Process>>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this(), id = std::move(id)](auto done) mutable {
        self->async_get_process(std::move(id), std::move(done));
      });
}

template <class Token>
auto async_kill_process(Sandbox& sandbox, ProcessId id, Token&& token) {
  return detail::initiate<bool>(
      std::forward<Token>(token),
      [self = sandbox.shared_from_this(), id = std::move(id)](auto done) mutable {
        self->async_kill_process(std::move(id), std::move(done));
      });
}

template <class Token>
auto async_wait(std::shared_ptr<Process> process, WaitOptions options, Token&& token) {
  return detail::initiate_stoppable<CommandResult>(
      std::forward<Token>(token), std::move(options),
      [process = std::move(process)](WaitOptions with, auto done) {
        process->async_wait(std::move(with), std::move(done));
      });
}

template <class Token>
auto async_write(std::shared_ptr<Process> process, std::string data, Token&& token) {
  return detail::initiate<void>(
      std::forward<Token>(token),
      [process = std::move(process), data = std::move(data)](auto done) mutable {
        process->async_write(std::move(data), std::move(done));
      });
}

template <class Token>
auto async_close_stdin(std::shared_ptr<Process> process, Token&& token) {
  return detail::initiate<void>(
      std::forward<Token>(token),
      [process = std::move(process)](auto done) { process->async_close_stdin(std::move(done)); });
}

template <class Token>
auto async_kill(std::shared_ptr<Process> process, Token&& token) {
  return detail::initiate<bool>(
      std::forward<Token>(token),
      [process = std::move(process)](auto done) { process->async_kill(std::move(done)); });
}

template <class Token>
auto async_signal(std::shared_ptr<Process> process, int signal, bool tree, Token&& token) {
  return detail::initiate<void>(std::forward<Token>(token),
                                [process = std::move(process), signal, tree](auto done) {
                                  process->async_signal(signal, tree, std::move(done));
                                });
}

template <class Token>
auto async_resize(std::shared_ptr<Process> process, std::uint32_t cols, std::uint32_t rows,
                  Token&& token) {
  return detail::initiate<void>(std::forward<Token>(token),
                                [process = std::move(process), cols, rows](auto done) {
                                  process->async_resize(cols, rows, std::move(done));
                                });
}

}  // namespace sandforge
