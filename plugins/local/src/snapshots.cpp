#include "snapshots.hpp"

#include <utility>
#include <vector>

#include "sandbox_object.hpp"
#include "sandforge/ext/snapshot.h"

namespace sandforge::local {
namespace {

struct FlagOp {
  sf_op base;
  std::shared_ptr<CancelFlag> flag;
};

const sf_op_vtbl kFlagOp = {
    sizeof(sf_op_vtbl),
    [](sf_op* self) noexcept { reinterpret_cast<FlagOp*>(self)->flag->store(true); },
    [](sf_op* self) noexcept { delete reinterpret_cast<FlagOp*>(self); },
};

void tell(const sf_checkpoint_completion& done, const Failure& failure) {
  with_error(failure, [&](const sf_error* error) {
    done.done(done.ctx, error, nullptr, 0, sizeof(sf_checkpoint));
  });
}

void tell(const sf_checkpoint_completion& done, const std::vector<CheckpointInfo>& all) {
  std::vector<std::string> texts;
  std::vector<sf_checkpoint> raw;
  texts.reserve(all.size());
  raw.reserve(all.size());
  for (const auto& one : all) {
    json::Array warnings;
    for (const auto& warning : one.warnings)
      warnings.emplace_back(warning);
    texts.push_back(json::write(json::Value(std::move(warnings))));
    raw.push_back(
        {sizeof(sf_checkpoint), as_str(one.name), one.created_at, one.bytes, as_str(texts.back())});
  }
  done.done(done.ctx, nullptr, raw.data(), raw.size(), sizeof(sf_checkpoint));
}

sf_status bad_name(const sf_error_sink* err) {
  return report(err, Failure{SF_INVALID,
                             "local.checkpoint_name",
                             "the name of a checkpoint is empty or holds a NUL",
                             {},
                             0,
                             false});
}

bool usable(sf_str name) noexcept {
  return !view(name).empty() && view(name).find('\0') == std::string_view::npos;
}

const sf_snapshot_ext kSnapshots = {
    sizeof(sf_snapshot_ext),
    [](sf_sandbox* self, sf_str name, sf_checkpoint_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        if (!view(name).empty() && !usable(name)) return bad_name(err);
        auto flag = SandboxObject::of(self).capture(std::string(view(name)), done);
        if (op != nullptr) *op = flag_op(std::move(flag));
        return sf_status{SF_OK};
      });
    },
    [](sf_sandbox* self, sf_checkpoint_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        SandboxObject::of(self).list_checkpoints(done);
        if (op != nullptr) *op = no_op();
        return sf_status{SF_OK};
      });
    },
    [](sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        if (!usable(name)) return bad_name(err);
        SandboxObject::of(self).remove_checkpoint(std::string(view(name)), done);
        if (op != nullptr) *op = no_op();
        return sf_status{SF_OK};
      });
    },
    [](sf_sandbox* self, sf_str name, sf_completion done, sf_op** op,
       const sf_error_sink* err) noexcept {
      return fenced(err, [&] {
        if (!usable(name)) return bad_name(err);
        SandboxObject::of(self).start_from(std::string(view(name)), done);
        if (op != nullptr) *op = no_op();
        return sf_status{SF_OK};
      });
    },
};

}  // namespace

const void* snapshot_extension() {
  return &kSnapshots;
}

sf_op* flag_op(std::shared_ptr<CancelFlag> flag) {
  return &(new FlagOp{{&kFlagOp}, std::move(flag)})->base;
}

std::shared_ptr<CancelFlag> SandboxObject::capture(std::string name,
                                                   sf_checkpoint_completion done) {
  auto cancelled = std::make_shared<CancelFlag>(false);
  if (name.empty()) name = boot_.own.value_or("");
  if (name.empty()) {
    post(lane_.get(), [done] { tell(done, std::vector<CheckpointInfo>()); });
    return cancelled;
  }
  // A link that was lost a moment ago does not mean that the session does not run.
  with_link(Guest::if_running,
            [self = shared_from_this(), name = std::move(name), cancelled, done](
                const Failure* failure, const std::shared_ptr<GuestLink>& link, LinkFacts) {
              if (failure != nullptr) return tell(done, *failure);
              if (link == nullptr) return tell(done, std::vector<CheckpointInfo>());
              self->capture_running(name, cancelled, done);
            });
  return cancelled;
}

void SandboxObject::capture_running(const std::string& name,
                                    const std::shared_ptr<CancelFlag>& cancelled,
                                    sf_checkpoint_completion done) {
  struct Made {
    std::optional<Failure> failure;
    std::vector<CheckpointInfo> one{1};
  };
  auto made = std::make_shared<Made>();
  run_blocking([place = place_, name, cancelled,
                made] { made->failure = local::capture(place, name, *cancelled, made->one[0]); },
               [made, done](const Failure* refused) {
                 if (refused == nullptr && made->failure) refused = &*made->failure;
                 if (refused != nullptr) return tell(done, *refused);
                 tell(done, made->one);
               });
}

void SandboxObject::list_checkpoints(sf_checkpoint_completion done) {
  struct Found {
    std::optional<Failure> failure;
    std::vector<CheckpointInfo> all;
  };
  auto found = std::make_shared<Found>();
  run_blocking(
      [root = place_.root, found] { found->failure = local::list_checkpoints(root, found->all); },
      [found, done](const Failure* refused) {
        if (refused == nullptr && found->failure) refused = &*found->failure;
        if (refused != nullptr) return tell(done, *refused);
        tell(done, found->all);
      });
}

void SandboxObject::remove_checkpoint(std::string name, sf_completion done) {
  auto result = std::make_shared<std::optional<Failure>>();
  run_blocking([root = place_.root, name = std::move(name),
                result] { *result = local::remove_checkpoint(root, name); },
               [result, done](const Failure* refused) {
                 if (refused == nullptr && *result) refused = &**result;
                 complete(done, refused);
               });
}

void SandboxObject::start_from(std::string name, sf_completion done) {
  auto result = std::make_shared<std::optional<Failure>>();
  run_blocking([root = place_.root, name, result] { *result = find_checkpoint(root, name); },
               [self = shared_from_this(), name, result, done](const Failure* refused) {
                 if (refused == nullptr && *result) refused = &**result;
                 if (refused == nullptr) self->boot_.wanted = name;
                 complete(done, refused);
               });
}

}  // namespace sandforge::local
