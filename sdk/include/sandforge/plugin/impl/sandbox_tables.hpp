// The tables of functions behind the parts of a sandbox. Each function looks its part up, keeps the
// sandbox while it runs, and lives behind the fence of operate().
#pragma once

namespace sandforge::plugin::detail {

template <class Style>
const sf_processes_ext& processes_table() {
  using Its = SandboxPart<BasicProcesses<Style>>;
  static const sf_processes_ext table = {
      sizeof(sf_processes_ext),
      [](sf_sandbox* self, sf_process_list_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::processes);
          operate<Style, std::vector<ProcessInfo>>(
              part.lane(), op, [part](StopToken stop) { return part->list(stop); },
              [done](const sf_error* e, std::vector<ProcessInfo>* list) {
                if (e != nullptr)
                  return done.done(done.ctx, e, nullptr, 0, sizeof(sf_process_info));
                std::vector<sf_exit> exits;
                exits.reserve(list->size());
                std::vector<sf_process_info> raw;
                for (const ProcessInfo& p : *list) {
                  if (p.exit) exits.push_back(p.exit->raw());
                  const std::uint32_t flags =
                      (p.detached ? SF_PROCESS_DETACHED : 0) | (p.stray ? SF_PROCESS_STRAY : 0);
                  raw.push_back({sizeof(sf_process_info), to_str(p.id), p.pid, to_bytes(p.command),
                                 to_str(p.tag), p.exit ? 0U : 1U, flags,
                                 p.exit ? &exits.back() : nullptr, p.first, p.next});
                }
                done.done(done.ctx, nullptr, raw.data(), raw.size(), sizeof(sf_process_info));
              });
        });
      },
      [](sf_sandbox* self, sf_str id, sf_cursor from, std::uint64_t window,
         const sf_stream_events* io, const sf_process_events* events, sf_process** process,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::processes);
          Attach call(part.lane(), view(id), from, window, io, events);
          take_process(call, process, std::chrono::milliseconds(0), [&] { part->attach(call); });
        });
      },
      [](sf_sandbox* self, sf_str id, std::int32_t number, std::uint32_t scope, sf_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::processes);
          operate_void<Style>(
              part.lane(), done, op, [part, id = copy(id), number, scope](StopToken stop) {
                return part->signal(id, number, static_cast<SignalScope>(scope), stop);
              });
        });
      },
      [](sf_sandbox* self, sf_str id, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::processes);
          operate_void<Style>(part.lane(), done, op, [part, id = copy(id)](StopToken stop) {
            return part->forget(id, stop);
          });
        });
      }};
  return table;
}

template <class Style>
sf_lifetime_ext make_lifetime_table(bool can_pause) {
  using Its = SandboxPart<BasicLifetime<Style>>;
  using Time = typename BasicLifetime<Style>::Time;
  sf_lifetime_ext table = {
      sizeof(sf_lifetime_ext),
      [](sf_sandbox* self, sf_lifetime_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::lifetime);
          operate<Style, Time>(
              part.lane(), op, [part](StopToken stop) { return part->time_left(stop); },
              [done](const sf_error* e, Time* time) {
                const bool limited = e == nullptr && *time;
                done.done(done.ctx, e,
                          limited ? static_cast<std::uint64_t>((*time)->count()) : SF_NONE);
              });
        });
      },
      [](sf_sandbox* self, std::uint64_t ttl, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::lifetime);
          Time time;
          if (ttl != SF_NONE) time = std::chrono::milliseconds(static_cast<std::int64_t>(ttl));
          operate_void<Style>(part.lane(), done, op, [part, time](StopToken stop) {
            return part->set_time_left(time, stop);
          });
        });
      },
      [](sf_sandbox* self, sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::lifetime);
          operate_void<Style>(part.lane(), done, op,
                              [part](StopToken stop) { return part->keep_alive(stop); });
        });
      },
      nullptr,
      nullptr};
  if (!can_pause) return table;
  table.pause = [](sf_sandbox* self, sf_completion done, sf_op** op,
                   const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::lifetime);
      operate_void<Style>(part.lane(), done, op,
                          [part](StopToken stop) { return part->pause(stop); });
    });
  };
  table.resume = [](sf_sandbox* self, sf_completion done, sf_op** op,
                    const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::lifetime);
      operate_void<Style>(part.lane(), done, op,
                          [part](StopToken stop) { return part->resume(stop); });
    });
  };
  return table;
}

template <class Style>
const sf_lifetime_ext* lifetime_table(const BasicLifetime<Style>& part) {
  static const sf_lifetime_ext pausing = make_lifetime_table<Style>(true);
  static const sf_lifetime_ext plain = make_lifetime_table<Style>(false);
  return part.can_pause() ? &pausing : &plain;
}

inline void tell_checkpoints(const sf_checkpoint_completion& done, const sf_error* e,
                             const Checkpoint* first, std::size_t count) {
  std::vector<std::string> warnings;  // as JSON; the structs point into it
  std::vector<sf_checkpoint> raw;
  warnings.reserve(count);
  for (std::size_t i = 0; e == nullptr && i < count; ++i) {
    warnings.push_back(string_array(first[i].warnings));
    raw.push_back({sizeof(sf_checkpoint), to_str(first[i].name), first[i].created_at,
                   first[i].bytes.value_or(SF_NONE), to_str(warnings.back())});
  }
  done.done(done.ctx, e, raw.data(), raw.size(), sizeof(sf_checkpoint));
}

template <class Style>
const sf_snapshot_ext& snapshot_table() {
  using Its = SandboxPart<BasicSnapshots<Style>>;
  static const sf_snapshot_ext table = {
      sizeof(sf_snapshot_ext),
      [](sf_sandbox* self, sf_str name, sf_checkpoint_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::snapshots);
          operate<Style, std::optional<Checkpoint>>(
              part.lane(), op,
              [part, name = copy(name)](StopToken stop) { return part->create(name, stop); },
              [done](const sf_error* e, std::optional<Checkpoint>* one) {
                const bool captured = e == nullptr && *one;
                tell_checkpoints(done, e, captured ? &**one : nullptr, captured ? 1 : 0);
              });
        });
      },
      [](sf_sandbox* self, sf_checkpoint_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::snapshots);
          operate<Style, std::vector<Checkpoint>>(
              part.lane(), op, [part](StopToken stop) { return part->list(stop); },
              [done](const sf_error* e, std::vector<Checkpoint>* all) {
                tell_checkpoints(done, e, e == nullptr ? all->data() : nullptr,
                                 e == nullptr ? all->size() : 0);
              });
        });
      },
      [](sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::snapshots);
          operate_void<Style>(part.lane(), done, op, [part, name = copy(name)](StopToken stop) {
            return part->remove(name, stop);
          });
        });
      },
      [](sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::snapshots);
          operate_void<Style>(part.lane(), done, op, [part, name = copy(name)](StopToken stop) {
            return part->start_from(name, stop);
          });
        });
      }};
  return table;
}

template <class Style>
sf_ports_ext make_ports_table(bool can_dial) {
  using Its = SandboxPart<BasicPorts<Style>>;
  sf_ports_ext table = {
      sizeof(sf_ports_ext),
      [](sf_sandbox* self, std::uint32_t port, sf_text_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::ports);
          operate<Style, std::optional<std::string>>(
              part.lane(), op, [part, port](StopToken stop) { return part->url(port, stop); },
              [done](const sf_error* e, std::optional<std::string>* url) {
                done.done(done.ctx, e, e == nullptr ? maybe_str(*url) : sf_str{nullptr, 0});
              });
        });
      },
      nullptr};
  if (!can_dial) return table;
  table.dial = [](sf_sandbox* self, std::uint32_t port, std::uint64_t window,
                  const sf_stream_events* events, sf_stream** stream,
                  const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::ports);
      open_stream<Style>(part.lane(), window, events, stream,
                         [part, port](Io& io) { return part->dial(port, io); });
    });
  };
  return table;
}

template <class Style>
const sf_ports_ext* ports_table(const BasicPorts<Style>& part) {
  static const sf_ports_ext dialing = make_ports_table<Style>(true);
  static const sf_ports_ext plain = make_ports_table<Style>(false);
  return part.can_dial() ? &dialing : &plain;
}

template <class Style>
const sf_metrics_ext& metrics_table() {
  static const sf_metrics_ext table = {
      sizeof(sf_metrics_ext), [](sf_sandbox* self, sf_metrics_completion done, sf_op** op,
                                 const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const SandboxPart<BasicMetrics<Style>> part(self, Part::metrics);
          operate<Style, Metrics>(
              part.lane(), op, [part](StopToken stop) { return part->read(stop); },
              [done](const sf_error* e, Metrics* m) {
                if (e != nullptr) return done.done(done.ctx, e, nullptr);
                const auto number = [](const Metrics::Number& n) { return n.value_or(SF_NONE); };
                const sf_metrics raw{sizeof raw,
                                     m->at,
                                     number(m->cpu_time_ms),
                                     number(m->cpu_millis),
                                     number(m->memory_bytes),
                                     number(m->memory_limit_bytes),
                                     number(m->disk_bytes),
                                     number(m->disk_limit_bytes),
                                     number(m->network_in_bytes),
                                     number(m->network_out_bytes),
                                     number(m->process_count)};
                done.done(done.ctx, nullptr, &raw);
              });
        });
      }};
  return table;
}

// A process that was delegated is the host's own: it has no terminal of ours.
inline const sf_pty_ext& pty_table() {
  static const sf_pty_ext table = {
      sizeof(sf_pty_ext), [](sf_process* process, std::uint32_t cols, std::uint32_t rows,
                             sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          Channel* channel = Channel::of(process);
          const ResizeHandler handler = channel == nullptr ? nullptr : channel->resize_handler();
          if (!handler) throw Error(Code::unsupported, "this process has no terminal");
          Reply reply(channel->lane(), done);
          reply.give(op);
          handler(cols, rows, std::move(reply));
        });
      }};
  return table;
}

}  // namespace sandforge::plugin::detail
