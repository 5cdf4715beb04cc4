// How a rank leaves MPI, with an MPI of the test's own.
#include <memory>
#include <thread>

#include "runtime/comm/mpi/mpi_library.h"
#include "runtime/os/plug_in.h"
#include "runtime/rank/worker_env.h"
#include "tests/comm/fake_mpi.h"
#include "tests/support/catch.h"
#include "tests/support/variable.h"

using namespace dstrain;
using test::FakeMpi;

namespace {

/// A rank in MPI, and the MPI that it is in.
struct Entered {
  explicit Entered(double timeout_seconds)
      : mpi(std::make_unique<comm::MpiLibrary>(comm::MpiStart{
            .kind = MpiKind::openmpi, .size = 2, .timeout_seconds = timeout_seconds})) {
    const PlugIn plug_in{comm::mpi_plugin_name(MpiKind::openmpi)};
    void* const symbol =
        plug_in_symbol(plug_in, open_plug_in(plug_in).value(), test::fake_mpi_symbol);
    fake = reinterpret_cast<FakeMpi* (*)()>(symbol)();
  }

  test::Variable folder{env::plug_in_path, DSTRAIN_FAKE_MPI};
  std::unique_ptr<comm::MpiLibrary> mpi;
  FakeMpi* fake = nullptr;
};

}  // namespace

TEST_CASE("MpiLibrary: a rank that is done waits for those that still use MPI", "[comm]") {
  Entered rank(600);
  std::thread leaving([&] { rank.mpi.reset(); });
  while (!rank.fake->at_barrier && !rank.fake->finished) std::this_thread::yield();
  const bool left_early = rank.fake->finished;
  rank.fake->other_leaves = true;
  leaving.join();
  CHECK_FALSE(left_early);
  CHECK(rank.fake->finished);
  CHECK_FALSE(rank.fake->left_alone);
}

TEST_CASE("MpiLibrary: a rank whose peers do not follow ends without MPI_Finalize", "[comm]") {
  Entered rank(0.01);
  rank.mpi.reset();  // MPI_Finalize would wait for the other rank
  CHECK(rank.fake->at_barrier);
  CHECK_FALSE(rank.fake->finished);
}
