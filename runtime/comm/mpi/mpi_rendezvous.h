#pragma once
#include <optional>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/comm/mpi/mpi_library.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {

/// The address where the ranks of a job meet, and the token that proves that they belong to it.
struct RendezvousAddress {
  Endpoint endpoint;
  std::string token;
  UniqueFd listener;  ///< rank 0's, which listens at the endpoint; none on other ranks
};

/// The values from the environment; they are not changed.
struct GivenRendezvous {
  std::optional<std::string> address;  ///< MASTER_ADDR
  std::optional<int> port;             ///< MASTER_PORT
  std::optional<std::string> token;    ///< DSTRAIN_TOKEN
  [[nodiscard]] bool complete() const { return address && port && token; }
};

/// Makes the ranks that MPI has started agree where to meet. Rank 0 of MPI_COMM_WORLD listens, with
/// a random token, on loopback if all of them share its network, else at one of its addresses that
/// the others can connect to. All ranks call it; two gathers and two broadcasts. Throws
/// Error{config} if a rank has a setting that rank 0 has not, Error{comm} if no address works,
/// Error{timeout}.
RendezvousAddress share_rendezvous(MpiLibrary& mpi, const GivenRendezvous& given);

}  // namespace dstrain::comm
