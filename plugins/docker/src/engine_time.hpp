// Points in time as an engine writes them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>

namespace sandforge::docker {

inline constexpr std::int64_t kNanoseconds = 1'000'000'000;

// "2026-01-02T03:04:05.678901234Z", or with "+01:00" at its end, as nanoseconds since the Unix
// epoch; 0: no such text.
inline std::int64_t time_of(const std::string& text) {
  std::tm parts{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  std::int64_t fraction = 0, digits = 0;
  if (*rest == '.')
    for (++rest; *rest >= '0' && *rest <= '9' && digits < 9; ++rest, ++digits)
      fraction = fraction * 10 + (*rest - '0');
  for (; digits < 9; ++digits)
    fraction *= 10;
  std::int64_t seconds = ::timegm(&parts);
  if (*rest == '+' || *rest == '-') {
    char* colon = nullptr;
    const long hours = std::strtol(rest + 1, &colon, 10);
    const long minutes = *colon == ':' ? std::strtol(colon + 1, nullptr, 10) : 0;
    seconds -= (*rest == '+' ? 1 : -1) * (hours * 3600 + minutes * 60);
  }
  return seconds * kNanoseconds + fraction;
}

}  // namespace sandforge::docker
