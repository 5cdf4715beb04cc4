#define CATCH_CONFIG_RUNNER
#include <cstdlib>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace {

int failures = 0;

using Listener = Catch::EventListenerBase;

class FailureCount : public Listener {
 public:
  using Listener::Listener;
  /// Returns what the base does: nothing in Catch2 3, a flag in 2.13.
  auto assertionEnded(const Catch::AssertionStats& stats)
      -> decltype(Listener::assertionEnded(stats)) override {
    if (!stats.assertionResult.isOk()) ++failures;
    return Listener::assertionEnded(stats);
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
