#pragma once
#include <cstdint>

/// What a plug-in of MPI offers to the program that opens it: plain C, so that the two can be built
/// apart, and so that no program needs MPI to start. All functions return 0 or a code for
/// describe(), and are called by one thread at a time. What `request` stands for is not done before
/// test() says so, and its memory stays until then.
extern "C" {

struct DstrainMpiApi {
  std::int32_t rank;     ///< in MPI_COMM_WORLD
  std::int32_t size;     ///< of MPI_COMM_WORLD
  std::int32_t tag_max;  ///< the largest tag
  /// Start a message of at most 2^31 - 1 bytes in a communicator of our own, and do not wait.
  int (*send)(
      const void* from, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  int (*receive)(void* to, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  /// Start what all ranks of MPI_COMM_WORLD start alike and in one order: to bring rank 0's bytes
  /// to all; to bring each rank's bytes to rank 0, one rank after the other; to learn that all are
  /// there. None of them can be given up.
  int (*broadcast)(void* bytes, std::int32_t count, void** request);
  int (*gather)(const void* from, std::int32_t bytes, void* to, void** request);
  int (*barrier)(void** request);
  /// Whether a message is done; frees the request then. Also drives all others.
  int (*test)(void** request, std::int32_t* done);
  /// Gives a receive up that no message has met. Then test() says that it is done.
  int (*cancel)(void** request);
  /// Forgets a message that is not done, without waiting for it.
  void (*forget)(void** request);
  /// Leaves MPI, if dstrain_mpi_start entered it. All ranks call it, from the thread that entered.
  int (*finish)();
  /// The text of a code, with its final 0.
  void (*describe)(int code, char* text, std::int32_t capacity);
};

/// Enters MPI, unless the program has done so, and fills `api`. The symbol that is looked up; its
/// number changes with the table.
int dstrain_mpi_start_2(DstrainMpiApi* api);
}
