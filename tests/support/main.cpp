#define CATCH_CONFIG_RUNNER
#include <cstdlib>

#include <catch2/catch.hpp>

/// No test sees GPUs of the machine that it runs on, unless it says so.
int main(int argc, char* argv[]) {
  ::setenv("DSTRAIN_GPU_DIRECTORY", "/nonexistent", 0);
  return Catch::Session().run(argc, argv);
}
