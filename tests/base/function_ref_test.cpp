#include "runtime/base/function_ref.h"

#include <memory>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

int apply(FunctionRef<int(int)> function, int argument) {
  return function(argument);
}

}  // namespace

TEST_CASE("FunctionRef: calls lambdas with their state", "[base][function_ref]") {
  int calls = 0;
  CHECK(apply([&calls](int x) { return ++calls, x + 1; }, 4) == 5);
  CHECK(calls == 1);
}

TEST_CASE("FunctionRef: calls const and non-copyable callables in place", "[base][function_ref]") {
  const auto owner = [held = std::make_unique<int>(3)](int x) {
    return *held * x;
  };
  CHECK(apply(owner, 5) == 15);
}

TEST_CASE("FunctionRef: a copy refers to the same callable", "[base][function_ref]") {
  int sum = 0;
  auto add = [&sum](int x) {
    return sum += x;
  };
  const FunctionRef<int(int)> first(add);
  const FunctionRef<int(int)> second = first;
  first(1);
  second(2);
  CHECK(sum == 3);
}

}  // namespace dstrain
