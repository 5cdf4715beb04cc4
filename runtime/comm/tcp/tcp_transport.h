#pragma once
#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/comm/message/transport.h"
#include "runtime/comm/tcp/tcp_mesh.h"

namespace dstrain::comm {

/// Makes a group over TCP. Bytes move while a rank waits for messages, and otherwise as far as the
/// kernel's buffers reach. No ranks are connected yet. The ranks find each other in the store,
/// which must outlive the group and those split from it. Only ranks that know the job's token are
/// connected; the bytes are not encrypted.
std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpOptions& options);
/// Every rank calls it. Throws as connect_mesh().
std::unique_ptr<Communicator> make_tcp_communicator(Store& store, const TcpOptions& options);

}  // namespace dstrain::comm
