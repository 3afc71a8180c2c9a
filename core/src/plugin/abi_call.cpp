#include "plugin/abi_call.hpp"

namespace sandforge::plugin {

std::string describe_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return copy_text(sf_str{e.what(), std::string_view(e.what()).size()}, 1024);
  } catch (...) {
    return "no std::exception";
  }
}

bool is_usable(Plugin& plugin, const sf_op* op, const char* what) {
  if (op != nullptr && op->vtbl != nullptr && SF_HAS_FN(op->vtbl, cancel) &&
      SF_HAS_FN(op->vtbl, release))
    return true;
  plugin.faults.report(Fault::missing_value, std::string(what) + " gave no usable sf_op");
  return false;
}

std::shared_ptr<OpHandle> OpHandle::adopt(Plugin& plugin, sf_op* op, const char* what) {
  return is_usable(plugin, op, what) ? std::make_shared<OpHandle>(plugin, op) : nullptr;
}

void CallBase::started(sf_op* op) {
  auto handle = OpHandle::adopt(plugin_, op, what_);
  bool cancel_now = false;
  {
    const std::lock_guard lock(mutex_);
    op_ = handle;
    cancel_now = cancelled_;
  }
  phase_.store(Phase::running);
  if (cancel_now && handle) handle->cancel();
}

void CallBase::cancel() noexcept {
  std::shared_ptr<OpHandle> handle;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(cancelled_, true)) return;
    handle = op_;
  }
  if (handle) handle->cancel();
}

void CallBase::note_end() noexcept {
  if (phase_.load() == Phase::starting && lane_.is_current())
    plugin_.faults.report(Fault::inside_start, what_);
}

bool CallBase::is_refused() noexcept {
  return phase_.load() == Phase::refused;
}

void CallBase::drop_handle() noexcept {
  std::shared_ptr<OpHandle> handle;
  std::shared_ptr<void> keep;
  const std::lock_guard lock(mutex_);
  handle.swap(op_);
  keep.swap(keep_);
}

void done_void(void* ctx, const sf_error* error) noexcept {
  complete<void>(ctx, error, "done", [](Plugin&) { return Result<void>(); });
}

void done_text(void* ctx, const sf_error* error, sf_str text) noexcept {
  complete<std::string>(ctx, error, "done",
                        [text](Plugin&) { return Result<std::string>(copy_text(text)); });
}

}  // namespace sandforge::plugin
