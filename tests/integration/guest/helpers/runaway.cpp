// A program that is hard to catch, and gives up by itself: for tests of how trees are ended.
//
//   runaway flee FILE HOPS   moves to a new process in a new session, over and over, HOPS times,
//                            then writes FILE: nobody has caught it. Many hops fit into one look
//                            through /proc, but not so many that the machine runs out of pids.
//                            Writes FILE.up when it begins: such a look may not see it.
//   runaway bomb FILE COUNT  starts processes that start processes, COUNT in all, each of which
//                            then waits, then writes FILE.
//   runaway headless FILE 1  ends its first thread, while another goes on; writes FILE before.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

namespace {

void write_marker(const char* path) {
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0) ::close(fd);
}

int flee(const char* path, int hops) {
  write_marker((std::string(path) + ".up").c_str());
  for (int hop = 0; hop < hops; ++hop) {
    const pid_t child = ::fork();
    if (child > 0) ::_exit(0);
    if (child == 0) ::setsid();
    ::usleep(200);
  }
  write_marker(path);
  return 0;
}

int bomb(const char* path, int count) {
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& made = *new (shared) std::atomic<int>(0);
  while (made.fetch_add(1) < count) {
    // Goes on beside its children: their number doubles each time.
    if (::fork() == 0) ::setsid();
    ::usleep(20000);
  }
  write_marker(path);
  ::pause();
  return 0;
}

int headless(const char* path) {
  std::thread([] {
    for (;;)
      ::pause();
  }).detach();
  write_marker(path);
  ::pthread_exit(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int number = std::atoi(argv[3]);
  if (std::strcmp(argv[1], "headless") == 0) return headless(argv[2]);
  return std::strcmp(argv[1], "flee") == 0 ? flee(argv[2], number) : bomb(argv[2], number);
}
