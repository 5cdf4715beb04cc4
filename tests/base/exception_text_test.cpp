#include "runtime/base/exception_text.h"

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

using dstrain::exception_text;

using Catch::Matchers::ContainsSubstring;

TEST_CASE("Exception text: a thread that is not started names the limit", "[base]") {
  CHECK(exception_text(std::runtime_error("plain")) == "plain");
  const std::system_error other(std::make_error_code(std::errc::permission_denied));
  CHECK(exception_text(other) == other.what());
  const std::system_error full(std::make_error_code(std::errc::resource_unavailable_try_again));
  CHECK_THAT(exception_text(full), Catch::Matchers::ContainsSubstring("starts no more threads") &&
                                       Catch::Matchers::ContainsSubstring("ulimit -u"));
}

TEST_CASE("Exception text: JSON errors do not name the library's classes", "[base]") {
  CHECK(exception_text(std::runtime_error(
            "[json.exception.type_error.302] type must be number, but is null")) ==
        "type must be number, but is null");
}

namespace {

/// What the text says in a process that has hardly any address space left.
std::string text_without_space(const std::exception& exception) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{rlim_t{1} << 30, RLIM_INFINITY};
    ::setrlimit(RLIMIT_AS, &limit);
    const rlimit stack{rlim_t{1} << 30, RLIM_INFINITY};
    ::setrlimit(RLIMIT_STACK, &stack);
    const std::string text = exception_text(exception);
    ::_exit(::write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string text(1000, '\0');
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
}

}  // namespace

TEST_CASE("Exception text: exhausted address space is not blamed on the thread limit", "[base]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  dstrain::test::skip("sanitizers need address space without a limit");
#endif
  const std::system_error full(std::make_error_code(std::errc::resource_unavailable_try_again));
  const std::string thread = text_without_space(full);
  CHECK_THAT(thread, ContainsSubstring("ulimit -v, 1.00 GiB, leaves no room"));
  CHECK_THAT(thread, !ContainsSubstring("ulimit -u"));
  CHECK_THAT(text_without_space(std::bad_alloc()),
             ContainsSubstring("out of memory: ulimit -v allows this process 1.00 GiB"));
  CHECK(exception_text(std::bad_alloc()) == "the machine is out of memory");
  CHECK_THAT(text_without_space(std::runtime_error("could not create a primitive")),
             ContainsSubstring("a primitive (perhaps as ulimit -v, 1.00 GiB, leaves no room"));
}
