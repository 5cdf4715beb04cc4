#pragma once
#include <cstdint>

/// What libdstrain_mpi.so offers to the program that opens it: plain C, so that the two can be
/// built apart, and so that no program needs MPI to start. All functions return 0 or a code for
/// describe(), and are called by one thread at a time.
extern "C" {

struct DstrainMpiApi {
  std::int32_t rank;     ///< in MPI_COMM_WORLD
  std::int32_t size;     ///< of MPI_COMM_WORLD
  std::int32_t tag_max;  ///< the largest tag
  /// Start a message of at most 2^31 - 1 bytes in a communicator of our own, and do not wait.
  int (*send)(
      const void* from, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  /// `peer` -1: from anyone.
  int (*receive)(void* to, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  /// Whether a message is done; frees the request then. Also drives all others.
  int (*test)(void** request, std::int32_t* done);
  /// Gives a receive up that no message has met. Then test() says that it is done.
  int (*cancel)(void** request);
  /// Forgets a request that is not done, without waiting for it.
  void (*forget)(void** request);
  /// Leaves MPI, if dstrain_mpi_start entered it. All ranks call it.
  int (*finish)();
  /// The text of a code, with its final 0.
  void (*describe)(int code, char* text, std::int32_t capacity);
};

/// Enters MPI, unless the program has done so, and fills `api`. The symbol that is looked up; its
/// number changes with the table.
int dstrain_mpi_start_1(DstrainMpiApi* api);
}
