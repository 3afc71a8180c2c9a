// Arbitrary bytes of the other side of a runner's socket: frames must be found or refused, and what
// a decoder accepts must encode to something that it accepts as the same.
//
// fuzz-libs: sandforge::wire_runner
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "sandforge/wire/runner/calls.hpp"
#include "sandforge/wire/runner/frame.hpp"

namespace {

using namespace sandforge::wire::runner;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class S>
void fuzz_struct(std::string_view bytes) {
  Arena arena;
  Reader in(bytes, arena);
  const S value = in.read<S>();
  if (!in.whole()) return;
  Writer first;
  first.value(value);
  Reader again(first.out, arena);
  const S back = again.read<S>();
  require(again.whole());
  Writer second;
  second.value(back);
  require(first.out == second.out);
}

// Records that come from a plugin, and those that a runner gets from its host.
void fuzz_record(std::uint8_t which, std::string_view bytes) {
  switch (which % 14) {
    case 0:
      return fuzz_struct<sf_error>(bytes);
    case 1:
      return fuzz_struct<sf_command>(bytes);
    case 2:
      return fuzz_struct<sf_process_info>(bytes);
    case 3:
      return fuzz_struct<sf_start_result>(bytes);
    case 4:
      return fuzz_struct<sf_sandbox_info>(bytes);
    case 5:
      return fuzz_struct<sf_context_fields>(bytes);
    case 6:
      return fuzz_struct<sf_start_request>(bytes);
    case 7:
      return fuzz_struct<sf_describe_result>(bytes);
    case 8:
      return fuzz_struct<sf_template_result>(bytes);
    case 9:
      return fuzz_struct<sf_file_info>(bytes);
    case 10:
      return fuzz_struct<sf_log_field>(bytes);
    case 11:
      return fuzz_struct<sf_build>(bytes);
    case 12:
      return fuzz_struct<sf_checkpoint>(bytes);
    default:
      return fuzz_struct<sf_repository_access>(bytes);
  }
}

// Callbacks with arrays and with optional records.
void fuzz_calls(std::string_view bytes) {
  Arena arena;
  std::tuple<const sf_error*, const sf_process_info*, std::size_t, std::size_t> list{};
  Reader in(bytes, arena);
  read_call(in, list);
  if (in.whole()) {
    Writer out;
    write_call(out, list);
    require(!out.out.empty());
  }
  std::tuple<std::uint32_t, sf_str, const sf_log_field*, std::size_t, std::size_t> record{};
  Reader log(bytes, arena);
  read_call(log, record);
  if (log.whole()) require(std::get<3>(record) <= kMaxElements);
}

void fuzz_frames(std::string_view bytes) {
  FrameBuffer buffer;
  while (!bytes.empty()) {
    const std::size_t piece = std::min<std::size_t>(bytes.size(), 1 + (bytes.size() * 7) % 97);
    std::memcpy(buffer.room(piece), bytes.data(), piece);
    buffer.added(piece);
    bytes.remove_prefix(piece);
    FrameView frame;
    ParseResult result;
    while ((result = buffer.next(frame)) == ParseResult::frame) {
      require(frame.payload.size() == frame.header.length && frame.header.length <= kMaxPayload);
      fuzz_record(static_cast<std::uint8_t>(frame.header.method), frame.payload);
    }
    if (result == ParseResult::malformed) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0xFF) {
    fuzz_frames(rest);
  } else if (data[0] == 0xFE) {
    fuzz_calls(rest);
  } else {
    fuzz_record(data[0], rest);
  }
  return 0;
}
