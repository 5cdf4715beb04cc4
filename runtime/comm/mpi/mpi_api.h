#pragma once
#include <cstdint>

/// The functions of an MPI plug-in: plain C, so that the plug-in and the program that opens it can
/// be built separately, and so that no program needs MPI to start. All functions return 0 or a code
/// for describe(), and are called by one thread at a time. The operation of a `request` is not done
/// before test() says so, and its memory must stay valid until then.
extern "C" {

struct DstrainMpiApi {
  std::int32_t rank;     ///< in MPI_COMM_WORLD
  std::int32_t size;     ///< of MPI_COMM_WORLD
  std::int32_t tag_max;  ///< the largest tag
  /// Start a message of at most 2^31 - 1 bytes in a communicator of our own, and do not wait.
  int (*send)(
      const void* from, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  int (*receive)(void* to, std::int32_t bytes, std::int32_t peer, std::int32_t tag, void** request);
  /// Start a collective, which all ranks of MPI_COMM_WORLD start in the same order: copy rank 0's
  /// bytes to all; gather each rank's bytes on rank 0, in rank order; wait for all ranks. They
  /// cannot be cancelled.
  int (*broadcast)(void* bytes, std::int32_t count, void** request);
  int (*gather)(const void* from, std::int32_t bytes, void* to, void** request);
  int (*barrier)(void** request);
  /// Whether a message is done; frees the request then. Also makes progress on all others.
  int (*test)(void** request, std::int32_t* done);
  /// Cancels a receive that has no matching message yet. Then test() says that it is done.
  int (*cancel)(void** request);
  /// Forgets a message that is not done, without waiting for it.
  void (*forget)(void** request);
  /// Leaves MPI, if dstrain_mpi_start_2 entered it. All ranks call it, from the thread that
  /// entered.
  int (*finish)();
  /// The text of a code, zero-terminated.
  void (*describe)(int code, char* text, std::int32_t capacity);
};

/// Enters MPI, unless the program has done so, and fills `api`. The program looks up this symbol;
/// its number changes with the table.
int dstrain_mpi_start_2(DstrainMpiApi* api);
}
