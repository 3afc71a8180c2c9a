// A vfork that does not share memory, as that of sanitizers and emulators.
#include <unistd.h>

pid_t vfork() noexcept {
  return ::fork();
}
