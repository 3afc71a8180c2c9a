#include "sandforge/guest_link/abi_glue.hpp"

#include <cerrno>
#include <cstring>

namespace sandforge::guest_link {

Failure system_failure(int error_number, std::string_view what, std::string_view path) {
  Failure failure;
  failure.error_number = error_number;
  failure.path = path;
  failure.message =
      std::string(what) + " " + std::string(path) + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      failure.code = SF_NO_SPACE;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      failure.code = SF_FORBIDDEN;
      break;
    case ENOENT:
      failure.code = SF_NOT_FOUND;
      break;
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EEXIST:
      failure.code = SF_INVALID;
      break;
    default:
      failure.code = SF_INTERNAL;
  }
  failure.reason = "file_system";
  return failure;
}

void with_error(const Failure& failure, const std::function<void(const sf_error*)>& use) {
  json::Object details;
  if (!failure.reason.empty()) details.set("reason", failure.reason);
  if (!failure.path.empty()) details.set("path", failure.path);
  if (!failure.pointer.empty()) details.set("pointer", failure.pointer);
  if (failure.error_number != 0) details.set("errno", failure.error_number);
  const std::string text = json::write(details);
  sf_error error{};
  error.struct_size = sizeof error;
  error.code = failure.code;
  error.flags = failure.may_have_started ? SF_ERROR_MAY_HAVE_STARTED : 0;
  error.message = as_str(failure.message);
  error.details = as_str(text);
  error.retry_after_ms = SF_NONE;
  use(&error);
}

sf_error_sink message_into(Failure& failure) noexcept {
  return {&failure, [](void* ctx, const sf_error* error) noexcept {
            static_cast<Failure*>(ctx)->message = std::string(view(error->message));
          }};
}

sf_status report(const sf_error_sink* sink, const Failure& failure) noexcept {
  try {
    if (sink != nullptr)
      with_error(failure, [&](const sf_error* error) { sink->report(sink->ctx, error); });
  } catch (...) {  // no memory for the text: the code alone must do
  }
  return failure.code;
}

void complete(const sf_completion& done, const Failure* failure) noexcept {
  if (failure == nullptr) return done.done(done.ctx, nullptr);
  bool told = false;
  try {
    with_error(*failure, [&](const sf_error* error) {
      told = true;
      done.done(done.ctx, error);
    });
  } catch (...) {
    sf_error bare{};
    bare.struct_size = sizeof bare;
    bare.code = failure->code;
    bare.retry_after_ms = SF_NONE;
    if (!told) done.done(done.ctx, &bare);
  }
}

sf_op* no_op() noexcept {
  static const sf_op_vtbl vtbl = {sizeof(sf_op_vtbl), [](sf_op*) noexcept {},
                                  [](sf_op*) noexcept {}};
  static sf_op op{&vtbl};
  return &op;
}

void post(sf_lane* lane, std::function<void()> work) {
  auto box = std::make_unique<std::function<void()>>(std::move(work));
  lane->vtbl->post(
      lane,
      [](void* ctx) noexcept {
        const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(ctx));
        (*own)();
      },
      box.release());
}

}  // namespace sandforge::guest_link
