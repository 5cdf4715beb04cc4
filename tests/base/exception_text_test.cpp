#include "runtime/base/exception_text.h"

#include <stdexcept>
#include <system_error>

#include "tests/support/catch.h"

using dstrain::exception_text;

TEST_CASE("Exception text: a thread that is not started names the limit", "[base]") {
  CHECK(exception_text(std::runtime_error("plain")) == "plain");
  const std::system_error other(std::make_error_code(std::errc::permission_denied));
  CHECK(exception_text(other) == other.what());
  const std::system_error full(std::make_error_code(std::errc::resource_unavailable_try_again));
  CHECK_THAT(exception_text(full), Catch::Matchers::ContainsSubstring("starts no more threads") &&
                                       Catch::Matchers::ContainsSubstring("ulimit -u"));
}

TEST_CASE("Exception text: no class of the JSON library is in it", "[base]") {
  CHECK(exception_text(std::runtime_error(
            "[json.exception.type_error.302] type must be number, but is null")) ==
        "type must be number, but is null");
}
