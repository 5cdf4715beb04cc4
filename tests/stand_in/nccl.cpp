// The NCCL functions that the plug-in calls, between processes of one host. A communicator does not
// block: an operation is in progress until the second time that its state is queried, and until
// then the communicator refuses other calls.
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/stand_in/nccl_rank.h"
#include "tests/stand_in/refusals.h"
#include "tests/stand_in/streams.h"

using dstrain::stand_in::make_segment;
using dstrain::stand_in::map_segment;
using dstrain::stand_in::Message;
using dstrain::stand_in::NcclRank;
using dstrain::stand_in::queue_of;
using dstrain::stand_in::refuses;

/// NCCL's state of a rank. Its mutex guards all but `rank`.
struct ncclComm {
  std::shared_ptr<NcclRank> rank;
  std::thread joins;
  std::mutex mutex;
  bool joined = false;
  std::function<void()> launch;  ///< not yet on the stream
  int looks = 0;
};

namespace {

using Run = std::function<void(NcclRank&)>;

/// A thread's calls between ncclGroupStart and ncclGroupEnd.
struct Group {
  bool open = false;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> messages{};
};
Group& group() {
  static thread_local Group one;
  return one;
}

ncclResult_t launch(ncclComm_t comm, cudaStream_t stream, Run run) {
  const std::lock_guard lock(comm->mutex);
  if (!comm->joined || comm->launch) return ncclInvalidUsage;
  comm->looks = 0;
  comm->launch = [rank = comm->rank, stream, run = std::move(run)] {
    queue_of(stream).give_work([rank, run] { run(*rank); });
  };
  return ncclInProgress;
}

ncclResult_t launch_messages(ncclComm_t comm, cudaStream_t stream, std::vector<Message> messages) {
  return launch(comm, stream,
                [messages = std::move(messages)](NcclRank& rank) { rank.exchange(messages); });
}

ncclResult_t message(Message own, ncclComm_t comm, cudaStream_t stream) {
  Group& g = group();
  if (!g.open) return launch_messages(comm, stream, {own});
  g.comm = comm;
  g.stream = stream;
  g.messages.push_back(own);
  return ncclSuccess;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
      return 8;
  }
  return 0;
}

const std::byte* bytes(const void* address) {
  return static_cast<const std::byte*>(address);
}
std::byte* bytes(void* address) {
  return static_cast<std::byte*>(address);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (refuses(__func__)) return ncclSystemError;
  *version = 22809;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage ? "invalid usage" : "unhandled system error";
}
const char* ncclGetLastError(ncclComm_t /*comm*/) {
  return "refused by the stand-in";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (refuses(__func__)) return ncclSystemError;
  const std::string name = make_segment();
  *id = {};
  name.copy(id->internal, sizeof(id->internal) - 1);
  return name.empty() ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(
    ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (refuses(__func__)) return ncclSystemError;
  auto* const segment = map_segment(id.internal);
  if (segment == nullptr || config->blocking != 0) return ncclInvalidUsage;
  *comm = new ncclComm;
  (*comm)->rank = std::make_shared<NcclRank>(*segment, rank, size);
  (*comm)->joins = std::thread([own = *comm] {
    own->rank->barrier();
    const std::lock_guard lock(own->mutex);
    own->joined = true;
  });
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (refuses(__func__)) return ncclSystemError;
  const std::lock_guard lock(comm->mutex);
  const bool busy = !comm->joined || (comm->launch && ++comm->looks < 2);
  *state = busy ? ncclInProgress : ncclSuccess;
  if (!busy && comm->launch) std::exchange(comm->launch, nullptr)();
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t /*comm*/) {
  return refuses(__func__) ? ncclSystemError : ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const bool refused = refuses(__func__);
  comm->joins.join();
  delete comm;
  return refused ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const bool refused = refuses(__func__);
  comm->rank->abort();
  comm->joins.join();
  delete comm;
  return refused ? ncclSystemError : ncclSuccess;
}
ncclResult_t ncclAllGather(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           ncclComm_t comm,
                           cudaStream_t stream) {
  if (refuses(__func__)) return ncclSystemError;
  return launch(comm, stream, [=](NcclRank& rank) {
    rank.all_gather(bytes(from), bytes(to), count * size_of(type));
  });
}
ncclResult_t ncclReduceScatter(const void* from,
                               void* to,
                               std::size_t count,
                               ncclDataType_t type,
                               ncclRedOp_t /*op*/,
                               ncclComm_t comm,
                               cudaStream_t stream) {
  if (refuses(__func__)) return ncclSystemError;
  return launch(comm, stream, [=](NcclRank& rank) {
    rank.reduce_scatter(bytes(from), bytes(to), count * size_of(type), type);
  });
}
ncclResult_t ncclBroadcast(const void* from,
                           void* to,
                           std::size_t count,
                           ncclDataType_t type,
                           int root,
                           ncclComm_t comm,
                           cudaStream_t stream) {
  if (refuses(__func__)) return ncclSystemError;
  return launch(comm, stream, [=](NcclRank& rank) {
    rank.broadcast(bytes(from), bytes(to), count * size_of(type), root);
  });
}
ncclResult_t ncclSend(const void* from,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  if (refuses(__func__)) return ncclSystemError;
  auto* const data = const_cast<std::byte*>(bytes(from));  // only read
  return message({Message::Way::send, peer, data, count * size_of(type)}, comm, stream);
}
ncclResult_t ncclRecv(void* to,
                      std::size_t count,
                      ncclDataType_t type,
                      int peer,
                      ncclComm_t comm,
                      cudaStream_t stream) {
  if (refuses(__func__)) return ncclSystemError;
  return message({Message::Way::receive, peer, bytes(to), count * size_of(type)}, comm, stream);
}
ncclResult_t ncclGroupStart() {
  if (refuses(__func__)) return ncclSystemError;
  group() = {.open = true};
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (refuses(__func__)) return ncclSystemError;
  const Group ended = std::exchange(group(), Group{});
  return launch_messages(ended.comm, ended.stream, ended.messages);
}

}  // extern "C"
