#pragma once
#include <string>

#include "runtime/comm/store.h"

namespace dstrain::comm {

struct Rendezvous {
  int rank = 0;
  int world_size = 1;
  double timeout_seconds = 600;
  std::string place = "the store";  ///< for messages: "127.0.0.1:29500"
};

/// Returns once all ranks have called it with the same store; once per store. Throws Error{timeout}
/// that names the ranks that have not arrived, Error{comm} when two call with the same rank,
/// Error{config} on all when two disagree about `world_size`.
void wait_for_all(Store& store, const Rendezvous& rendezvous);

}  // namespace dstrain::comm
