#pragma once
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/message/transport.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  double timeout_seconds = 600;  ///< of joining, at least 5, and of each later wait
  std::string name = "world";    ///< keeps the groups that use one store apart
  /// The own address, at which the other ranks reach this one: local_address_towards(MASTER_ADDR).
  std::string address = "127.0.0.1";
};

/// A group over TCP: each pair of ranks has a connection, and a thread of gloo's moves the bytes.
/// The ranks find each other in the store, which must outlive the group and those split from it.
/// The connections themselves are neither encrypted nor authenticated: use them in a network that
/// you trust. Makes the process ignore SIGPIPE, unless it handles it. Every rank calls it. Throws
/// Error{config} in a build without gloo.
std::unique_ptr<Transport> make_gloo_transport(Store& store, const GlooOptions& options);
std::unique_ptr<Communicator> make_gloo_communicator(Store& store, const GlooOptions& options);

/// Whether this build has gloo.
bool has_gloo();

}  // namespace dstrain::comm
