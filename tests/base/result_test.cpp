#include "runtime/base/result.h"

#include <memory>
#include <string>

#include "tests/support/catch.h"

namespace dstrain {

TEST_CASE("Result: holds a value", "[base][result]") {
  const Result<int> result = 7;
  CHECK(result.ok());
  CHECK(result.value() == 7);
}

TEST_CASE("Result: holds the reason for having no value", "[base][result]") {
  const Result<int> result = Failure{"line 3: no number"};
  CHECK_FALSE(result.ok());
  CHECK(result.error() == "line 3: no number");
}

TEST_CASE("Result: a string value is no failure", "[base][result]") {
  const Result<std::string> result = std::string("text");
  CHECK(result.ok());
}

TEST_CASE("Result: a value can be move-only", "[base][result]") {
  const Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  CHECK(*result.value() == 5);
}

TEST_CASE("Result: reading the value of a failure is a bug that names the reason",
          "[base][result]") {
  const Result<int> result = Failure{"line 3: no number"};
  CHECK_THROWS_WITH(result.value(), Catch::Matchers::ContainsSubstring("line 3: no number"));
  try {
    (void)result.value();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::internal);
  }
}

TEST_CASE("Check: a failure shows place condition and message", "[base][check]") {
  const auto check = [](int numel) {
    DSTRAIN_CHECK(numel == 3, "numel {} of {}", numel, 3);
  };
  CHECK_NOTHROW(check(3));
  CHECK_THROWS_WITH(
      check(4), Catch::Matchers::ContainsSubstring("result_test.cpp:") &&
                    Catch::Matchers::ContainsSubstring("check failed: numel == 3: numel 4 of 3"));
}

TEST_CASE("Error: an errno is spelled out after what was tried", "[base][error]") {
  CHECK_THROWS_WITH(fail_errno(EACCES, "open /secret"), "open /secret: Permission denied");
}

}  // namespace dstrain
