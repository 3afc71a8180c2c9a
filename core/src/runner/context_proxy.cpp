#include "runner/context_proxy.hpp"

#include "runner/caller.hpp"

namespace sandforge::runner {

ContextProxy::ContextProxy(std::shared_ptr<Peer> peer, Id id, sf_context_fields fields,
                           const std::string& sandbox_id)
    : peer_(std::move(peer)), id_(id) {
  static const sf_context_vtbl table = {
      sizeof(sf_context_vtbl),
      [](sf_context* self) noexcept {
        of(self).references_.fetch_add(1, std::memory_order_relaxed);
      },
      &ContextProxy::release,
      [](sf_context* self) noexcept -> const sf_context_fields* { return &of(self).fields_; },
      &Call<&sf_context_vtbl::repository_access>::call,
      &Call<&sf_context_vtbl::resolve_head>::call};
  vtbl = &table;
  if (!sandbox_id.empty()) fields.sandbox_id = {sandbox_id.data(), sandbox_id.size()};
  // A copy that lives as long as this: written, and read from the bytes that we keep.
  wire::Writer out;
  out.value(fields);
  bytes_ = std::move(out.out);
  wire::Reader in(bytes_, arena_);
  in.value(fields_);
}

ContextProxy::~ContextProxy() {
  peer_->send(wire::Kind::call, wire::method_of(&sf_context_vtbl::release), 0, id_, 0, {});
}

void ContextProxy::release(sf_context* self) noexcept {
  if (of(self).references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &of(self);
}

Result<Route> route_of(sf_context* self, Method) {
  return Route{ContextProxy::of(self).peer(), 0, ContextProxy::of(self).id()};
}

RoomHandles::~RoomHandles() {
  for (sf_context* context : borrowed_)
    ContextProxy::release(context);
}

void RoomHandles::write(wire::Writer& out, sf_context* context) {
  out.value<std::uint64_t>(context == nullptr ? 0 : ContextProxy::of(context).id());
}

sf_context* RoomHandles::read_context(wire::Reader& in) {
  const auto id = in.read<std::uint64_t>();
  if (id == 0 || !in.ok()) return nullptr;
  const auto fields = in.read<sf_context_fields>();
  if (!in.ok()) return nullptr;
  return borrowed_.emplace_back(new ContextProxy(peer_, id, fields, sandbox_id_));
}

}  // namespace sandforge::runner
