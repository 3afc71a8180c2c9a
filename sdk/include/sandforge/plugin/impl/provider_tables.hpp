// The tables of functions behind the parts of a provider.
#pragma once

namespace sandforge::plugin::detail {

template <class Style>
const sf_template_ext& template_table() {
  static const sf_template_ext table = {
      sizeof(sf_template_ext),
      [](sf_provider* self, const sf_template_request* request, sf_template_completion done,
         sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const ProviderPart<BasicTemplates<Style>> part(self, Part::templates);
          const auto r = read_appendable(request);
          const Context context(r.context, part.lane());
          const Settings settings = Settings::parse(view(r.settings));
          operate<Style, ResolvedTemplate>(
              part.lane(), op,
              [part, context, settings](StopToken stop) {
                return part->resolve(context, settings, stop);
              },
              [done](const sf_error* e, ResolvedTemplate* t) {
                if (e != nullptr) return done.done(done.ctx, e, nullptr);
                const std::string warnings = string_array(t->warnings);
                const sf_template_result raw{sizeof raw, maybe_str(t->document),
                                             to_str(t->identity), to_str(t->family),
                                             to_str(warnings)};
                done.done(done.ctx, nullptr, &raw);
              });
        });
      }};
  return table;
}

inline void tell_builds(const sf_build_completion& done, const sf_error* e, const Build* first,
                        std::size_t count) {
  std::vector<sf_build> raw;
  for (std::size_t i = 0; e == nullptr && i < count; ++i) {
    const Build& b = first[i];
    const std::uint64_t retry =
        b.retry_after ? static_cast<std::uint64_t>(b.retry_after->count()) : SF_NONE;
    raw.push_back({sizeof(sf_build), static_cast<std::uint32_t>(b.status), 0, to_str(b.build_id),
                   to_str(b.template_id), b.started_at, b.finished_at, to_str(b.error), retry});
  }
  done.done(done.ctx, e, raw.data(), raw.size(), sizeof(sf_build));
}

template <class Style>
struct BuildsTable {
  using Its = ProviderPart<BasicBuilds<Style>>;

  static sf_status start(sf_provider* self, const sf_build_request* request,
                         sf_build_completion done, sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::builds);
      operate<Style, Build>(
          part.lane(), op,
          [part, r = BuildRequest(part.lane(), *request)](StopToken stop) {
            return part->start(r, stop);
          },
          [done](const sf_error* e, Build* build) { tell_builds(done, e, build, 1); });
    });
  }
  static sf_status get(sf_provider* self, const sf_build_request* request, sf_build_completion done,
                       sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::builds);
      operate<Style, Build>(
          part.lane(), op,
          [part, r = BuildRequest(part.lane(), *request)](StopToken stop) {
            return part->get(r, stop);
          },
          [done](const sf_error* e, Build* build) { tell_builds(done, e, build, 1); });
    });
  }
  static sf_status list(sf_provider* self, const sf_build_request* request,
                        sf_build_completion done, sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::builds);
      operate<Style, std::vector<Build>>(
          part.lane(), op,
          [part, r = BuildRequest(part.lane(), *request)](StopToken stop) {
            return part->list(r, stop);
          },
          [done](const sf_error* e, std::vector<Build>* all) {
            tell_builds(done, e, e == nullptr ? all->data() : nullptr,
                        e == nullptr ? all->size() : 0);
          });
    });
  }
  static sf_status logs(sf_provider* self, const sf_build_request* request, std::uint64_t cursor,
                        std::uint64_t window, const sf_stream_events* events, sf_stream** stream,
                        const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::builds);
      open_stream<Style>(part.lane(), window, events, stream,
                         [part, r = BuildRequest(part.lane(), *request), cursor](Io& io) {
                           return part->logs(r, cursor, io);
                         });
    });
  }
  static sf_status cancel(sf_provider* self, const sf_build_request* request, sf_completion done,
                          sf_op** op, const sf_error_sink* err) noexcept {
    return fence(err, [&] {
      const Its part(self, Part::builds);
      operate_void<Style>(part.lane(), done, op,
                          [part, r = BuildRequest(part.lane(), *request)](StopToken stop) {
                            return part->cancel(r, stop);
                          });
    });
  }
  static sf_builds_ext make(unsigned can) {
    return {sizeof(sf_builds_ext),
            start,
            get,
            (can & 1) != 0 ? list : nullptr,
            (can & 2) != 0 ? logs : nullptr,
            (can & 4) != 0 ? cancel : nullptr};
  }
};

template <class Style>
const sf_builds_ext* builds_table(const BasicBuilds<Style>& part) {
  using Table = BuildsTable<Style>;
  static const sf_builds_ext tables[8] = {Table::make(0), Table::make(1), Table::make(2),
                                          Table::make(3), Table::make(4), Table::make(5),
                                          Table::make(6), Table::make(7)};
  return &tables[(part.can_list() ? 1 : 0) + (part.can_log() ? 2 : 0) +
                 (part.can_cancel() ? 4 : 0)];
}

inline void tell_leftovers(const sf_sweep_completion& done, const sf_error* e,
                           const std::vector<Leftover>* all) {
  std::vector<sf_leftover> raw;
  if (e == nullptr)
    for (const Leftover& one : *all)
      raw.push_back({sizeof(sf_leftover), to_str(one.kind), to_str(one.id), to_str(one.reason),
                     one.created_at, one.bytes.value_or(SF_NONE), to_str(one.error)});
  done.done(done.ctx, e, raw.data(), raw.size(), sizeof(sf_leftover));
}

template <class Style>
sf_status do_sweep(sf_provider* self, std::uint32_t flags, sf_sweep_completion done, sf_op** op,
                   const sf_error_sink* err) noexcept {
  return fence(err, [&] {
    const ProviderPart<BasicDirectory<Style>> part(self, Part::directory);
    operate<Style, std::vector<Leftover>>(
        part.lane(), op,
        [part, remove = (flags & SF_SWEEP_REMOVE) != 0](StopToken stop) {
          return part->sweep(remove, stop);
        },
        [done](const sf_error* e, std::vector<Leftover>* all) { tell_leftovers(done, e, all); });
  });
}

template <class Style>
const sf_directory_ext& directory_table(const BasicDirectory<Style>& of) {
  using Its = ProviderPart<BasicDirectory<Style>>;
  static const sf_directory_ext plain = {
      sizeof(sf_directory_ext),
      [](sf_provider* self, sf_str labels, sf_str page, std::uint32_t limit,
         sf_directory_completion done, sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::directory);
          operate<Style, DirectoryPage>(
              part.lane(), op,
              [part, wanted = Document::parse(view(labels)), page = copy(page),
               limit](StopToken stop) { return part->find(wanted, page, limit, stop); },
              [done](const sf_error* e, DirectoryPage* found) {
                std::vector<sf_directory_entry> raw;
                std::deque<std::string> labels_of;
                const std::string next = e == nullptr ? found->next : std::string();
                if (e == nullptr) {
                  for (const DirectoryEntry& d : found->entries) {
                    labels_of.push_back(json::write(json::Value(d.labels)));
                    raw.push_back({sizeof(sf_directory_entry), to_str(d.sandbox_id),
                                   maybe_str(d.session_id), static_cast<std::uint32_t>(d.state),
                                   d.own ? SF_DIRECTORY_OWN : 0, d.created_at,
                                   to_str(labels_of.back())});
                  }
                }
                done.done(done.ctx, e, raw.data(), raw.size(), sizeof(sf_directory_entry),
                          to_str(next));
              });
        });
      },
      [](sf_provider* self, sf_str id, sf_completion done, sf_op** op,
         const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const Its part(self, Part::directory);
          operate_void<Style>(part.lane(), done, op, [part, id = copy(id)](StopToken stop) {
            return part->remove(id, stop);
          });
        });
      },
      nullptr};
  static const sf_directory_ext sweeping = {sizeof(sf_directory_ext), plain.find, plain.remove,
                                            do_sweep<Style>};
  return of.can_sweep() ? sweeping : plain;
}

template <class Style>
const sf_health_ext& health_table() {
  static const sf_health_ext table = {
      sizeof(sf_health_ext),
      [](sf_provider* self, sf_completion done, sf_op** op, const sf_error_sink* err) noexcept {
        return fence(err, [&] {
          const ProviderPart<BasicHealth<Style>> part(self, Part::health);
          operate_void<Style>(part.lane(), done, op,
                              [part](StopToken stop) { return part->check(stop); });
        });
      }};
  return table;
}

}  // namespace sandforge::plugin::detail
