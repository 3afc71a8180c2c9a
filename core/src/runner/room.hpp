// In the runner: one provider or sandbox of the plugin with its lane and all that was made on it.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugin/abi_lane.hpp"
#include "runner/callee.hpp"

namespace sandforge::runner {

class RunnerPeer;

// Everything on its lane, the destructor too.
class Room final : public Callee, public std::enable_shared_from_this<Room> {
 public:
  Room(std::shared_ptr<RunnerPeer> runner, Id id, std::shared_ptr<Room> parent);
  ~Room() override;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  Id id() const noexcept { return id_; }
  const Lane& its_lane() const noexcept { return lane_; }
  // One call of the host. False: the frame breaks the protocol.
  bool call(const wire::Header& header, std::string_view payload);

  std::shared_ptr<Peer> peer() noexcept override { return peer_; }
  sf_lane* lane() noexcept override { return lane_ref_.get(); }
  bool find(sf_provider*& self, const sf_provider_vtbl*& table, Id) override;
  bool find(sf_sandbox*& self, const sf_sandbox_vtbl*& table, Id) override;
  bool find(sf_process*& self, const sf_process_vtbl*& table, Id target) override;
  bool find(sf_context*&, const sf_context_vtbl*&, Id) override { return false; }
  void* object(const sf_provider*, Id) override { return provider_; }
  void* object(const sf_sandbox*, Id) override { return sandbox_; }
  void* object(const sf_process*, Id target) override;
  void* object(const sf_host*, Id) override { return nullptr; }
  const void* table(std::uint8_t struct_number) override;
  void keep(Id call, sf_op* op, const char* what) override;
  void keep(Id call, sf_process* process, sf_stream* stream) override;
  void keep(Id call, sf_stream* stream) override;
  void prepare(Remote& remote) override;

 private:
  // What a call made, and the input that its stream has not taken yet.
  struct Made {
    sf_op* op = nullptr;
    sf_process* process = nullptr;
    sf_stream* stream = nullptr;
    std::deque<std::pair<std::string, std::uint32_t>> input;
    bool shut = false;    // after the input that waits
    bool closed = false;  // takes no input any more
  };

  bool open(const wire::Header& header, std::string_view payload);
  bool create(const wire::Header& header, std::string_view payload);
  void answer(Id call, const Error& error);
  void answer_extensions(Id call);
  bool stream_call(const wire::Header& header, std::string_view payload);
  void pump(Id id, Made& made);
  void input_over(Id id, Made& made, const Error& error);
  void release(Made& made) noexcept;
  void release(Id id);
  void ended(Id call);

  const std::shared_ptr<RunnerPeer> runner_;
  const std::shared_ptr<Peer> peer_;
  const Id id_;
  std::shared_ptr<Room> parent_;  // a sandbox keeps its provider
  plugin::Plugin& plugin_;
  const Lane lane_;
  const plugin::LaneRef lane_ref_;
  sf_provider* provider_ = nullptr;  // one of the two
  sf_sandbox* sandbox_ = nullptr;
  std::unordered_map<Id, Made> made_;
  std::unordered_map<std::uint8_t, const void*> tables_;
};

// The runner's end of the connection.
class RunnerPeer final : public Peer {
 public:
  RunnerPeer(plugin::Plugin& plugin, Runtime& runtime, std::shared_ptr<Connection> connection);

  // Whether every lane has come to an end of what it ran when it was last looked at.
  bool lanes_move();

  Runtime& runtime() noexcept { return runtime_; }
  // By the reader. False: the frame breaks the protocol.
  bool on_frame(const wire::FrameView& frame);
  void add(std::shared_ptr<Room> room);
  // On the room's lane, of which something else keeps it.
  void drop(Id room);
  // Every object is released; the host is gone.
  void clear();

  wire::Handles* handles() noexcept override;

 private:
  std::shared_ptr<Room> take_or_find(const wire::Header& header, bool take);

  // A lane that is looked at: until it has moved once more after its room was let go of.
  struct Watched {
    Lane lane;
    std::weak_ptr<Room> room;
    std::shared_ptr<std::atomic<bool>> moved;
    bool last = false;
  };

  Runtime& runtime_;
  std::mutex rooms_mutex_;
  std::vector<Watched> watched_;
  std::unordered_map<Id, std::shared_ptr<Room>> rooms_;
};

}  // namespace sandforge::runner
