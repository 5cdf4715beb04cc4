#include "runtime/comm/make_communicator.h"

#include "runtime/comm/rendezvous.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/store/tcp_store.h"

namespace dstrain::comm {

World join_world(const WorkerEnv& worker) {
  if (worker.world_size == 1) return {nullptr, make_self_communicator()};
  if (worker.local_world_size != worker.world_size) {
    fail(ErrorCode::config,
         "WORLD_SIZE is {}, LOCAL_WORLD_SIZE {}: communication between nodes is not built yet, "
         "start all ranks on one node",
         worker.world_size, worker.local_world_size);
  }
  TcpStore::Options options{.endpoint = {worker.master_addr, worker.master_port},
                            .token = worker.token,
                            .timeout_seconds = worker.timeout_seconds};
  std::unique_ptr<TcpStore> store = worker.rank == 0 ? TcpStore::serve(std::move(options))
                                                     : TcpStore::connect(std::move(options));
  wait_for_all(*store, {.rank = worker.rank,
                        .world_size = worker.world_size,
                        .timeout_seconds = worker.timeout_seconds,
                        .place = to_string(store->endpoint())});
  auto communicator = make_shm_communicator(
      *store,
      {.rank = worker.rank, .size = worker.world_size, .timeout_seconds = worker.timeout_seconds});
  return {std::move(store), std::move(communicator)};
}

}  // namespace dstrain::comm
