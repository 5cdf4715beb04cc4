#define CATCH_CONFIG_RUNNER
#include <cstdlib>

#include <catch2/catch.hpp>

#include "tests/support/skip.h"

namespace {

int failures = 0;

class FailureCount : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    if (!stats.assertionResult.isOk()) ++failures;
    return true;
  }
};
CATCH_REGISTER_LISTENER(FailureCount)

}  // namespace

int dstrain::test::failed_assertions() {
  return failures;
}

/// No test sees GPUs of the machine that it runs on, unless it says so.
int main(int argc, char* argv[]) {
  ::setenv("DSTRAIN_GPU_DIRECTORY", "/nonexistent", 0);
  return Catch::Session().run(argc, argv);
}
