#include "sandforge/posix/fd.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

using namespace sandforge::posix;

TEST_CASE("a descriptor is closed once, by its last owner") {
  int number = -1;
  {
    Fd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = one.get();
    Fd two(std::move(one));
    CHECK_FALSE(one);
    CHECK(two.get() == number);
    one = std::move(two);
    CHECK(one.get() == number);
    CHECK(::fcntl(number, F_GETFD) >= 0);
  }
  CHECK(::fcntl(number, F_GETFD) < 0);
  CHECK(errno == EBADF);
}

TEST_CASE("files are read up to a limit") {
  std::string text;
  CHECK(read_file("/proc/self/stat", text, 5));
  CHECK(text.size() == 5);
  CHECK_FALSE(read_file("/no/such/file", text, 5));
  CHECK(text.empty());
  CHECK(write_file_at(AT_FDCWD, "/dev/null", "text"));
  CHECK_FALSE(write_file_at(AT_FDCWD, "/no/such/file", "text"));
}

TEST_CASE("pipes have the flags that were asked for") {
  for (const PipeEnd end : {PipeEnd::none, PipeEnd::read, PipeEnd::write}) {
    Pipe pipe;
    REQUIRE(make_pipe(pipe, end));
    CHECK(((::fcntl(pipe.read.get(), F_GETFL) & O_NONBLOCK) != 0) == (end == PipeEnd::read));
    CHECK(((::fcntl(pipe.write.get(), F_GETFL) & O_NONBLOCK) != 0) == (end == PipeEnd::write));
    CHECK((::fcntl(pipe.read.get(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((::fcntl(pipe.write.get(), F_GETFD) & FD_CLOEXEC) != 0);
  }
}
