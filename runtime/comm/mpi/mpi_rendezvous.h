#pragma once
#include <optional>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/comm/mpi/mpi_library.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {

/// Where the ranks of a job meet, and what proves that they belong together.
struct RendezvousAddress {
  Endpoint endpoint;
  std::string token;
  UniqueFd listener;  ///< rank 0's, which listens at the endpoint; none elsewhere
};

/// What the environment says of it: stays as given.
struct GivenRendezvous {
  std::optional<std::string> address;  ///< MASTER_ADDR
  std::optional<int> port;             ///< MASTER_PORT
  std::optional<std::string> token;    ///< DSTRAIN_TOKEN
  [[nodiscard]] bool complete() const { return address && port && token; }
};

/// Ranks that MPI has started tell each other where to meet: rank 0 of MPI_COMM_WORLD listens, with
/// a random token, on loopback where all of them share its network, else at that of its addresses
/// that the others can connect to. All ranks call it; two gathers and two broadcasts. Throws
/// Error{config} when a rank was given something that rank 0 was not, Error{comm} when no address
/// will do, Error{timeout}.
RendezvousAddress share_rendezvous(MpiLibrary& mpi, const GivenRendezvous& given);

}  // namespace dstrain::comm
