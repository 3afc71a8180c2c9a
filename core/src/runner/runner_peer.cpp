#include <utility>

#include "runner/context_proxy.hpp"
#include "runner/room.hpp"

namespace sandforge::runner {
namespace {

// Outside a call: contexts can be named, none come in.
class NamesOnly final : public wire::Handles {
 public:
  void write(wire::Writer& out, sf_context* context) override {
    out.value<std::uint64_t>(context == nullptr ? 0 : ContextProxy::of(context).id());
  }
  sf_context* read_context(wire::Reader& in) override {
    in.fail();
    return nullptr;
  }
  sf_lane* lane() override { return nullptr; }
};

bool releases_root(const wire::Header& header) {
  return header.method == wire::method_of(&sf_sandbox_vtbl::release) ||
         header.method == wire::method_of(&sf_provider_vtbl::release);
}

}  // namespace

RunnerPeer::RunnerPeer(plugin::Plugin& plugin, Runtime& runtime,
                       std::shared_ptr<Connection> connection)
    : Peer(plugin, std::move(connection), 1, {}), runtime_(runtime) {}

wire::Handles* RunnerPeer::handles() noexcept {
  static NamesOnly names;
  return &names;
}

void RunnerPeer::add(std::shared_ptr<Room> room) {
  const std::lock_guard lock(rooms_mutex_);
  const Id id = room->id();
  watched_.push_back({room->its_lane(), room, std::make_shared<std::atomic<bool>>(true)});
  rooms_.emplace(id, std::move(room));
}

void RunnerPeer::drop(Id room) {
  const std::lock_guard lock(rooms_mutex_);
  rooms_.erase(room);
}

std::shared_ptr<Room> RunnerPeer::take_or_find(const wire::Header& header, bool take) {
  const std::lock_guard lock(rooms_mutex_);
  const auto found = rooms_.find(header.lane);
  if (found == rooms_.end()) return nullptr;
  auto room = found->second;
  if (take) rooms_.erase(found);
  return room;
}

bool RunnerPeer::on_frame(const wire::FrameView& frame) {
  const wire::Header& header = frame.header;
  if (header.kind == wire::Kind::event) return on_event(frame);
  if (header.kind != wire::Kind::call) return false;
  if (header.method == wire::method_of(&sf_plugin::open))
    add(std::make_shared<Room>(std::static_pointer_cast<RunnerPeer>(shared_from_this()),
                               header.lane, nullptr));
  const bool last = releases_root(header);
  auto room = take_or_find(header, last);
  if (!room) return true;  // its create failed
  const Lane lane = room->its_lane();
  if (last) {
    lane.post([room = std::move(room)]() mutable { room.reset(); });
    return true;
  }
  lane.post([self = shared_from_this(), room = std::move(room), header,
             payload = std::string(frame.payload)]() mutable {
    if (!room->call(header, payload)) self->connection().close(kBroken);
  });
  return true;
}

bool RunnerPeer::lanes_move() {
  const std::lock_guard lock(rooms_mutex_);
  for (Watched& each : watched_)
    if (!each.moved->load()) return false;
  std::erase_if(watched_, [](const Watched& each) { return each.last; });
  for (Watched& each : watched_) {
    each.last = each.room.expired();
    each.moved->store(false);
    each.lane.post([moved = each.moved] { moved->store(true); });
  }
  return true;
}

void RunnerPeer::clear() {
  std::unordered_map<Id, std::shared_ptr<Room>> rooms;
  {
    const std::lock_guard lock(rooms_mutex_);
    rooms.swap(rooms_);
  }
  for (auto& [id, room] : rooms) {
    const Lane lane = room->its_lane();
    lane.post([room = std::move(room)]() mutable { room.reset(); });
  }
}

}  // namespace sandforge::runner
