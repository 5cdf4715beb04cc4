#include "runtime/backend/backend.h"

#include <fmt/format.h>

#include "runtime/comm/staged_communicator.h"
#include "runtime/device/locked_memory.h"

namespace dstrain {

std::unique_ptr<MemoryResource> Backend::pinned(MemoryResource& host) {
  return std::make_unique<LockedMemory>(host);
}

std::string Backend::tune_products(StreamView /*stream*/, Bytes /*room*/) {
  return "";
}

std::string Backend::use_algorithms(const std::string& /*text*/, StreamView /*stream*/) {
  return fmt::format("the device is {}, which has none to choose between", name_of(device_.kind));
}

std::unique_ptr<StreamClock> Backend::make_stream_clock(const Clock& /*host*/) {
  return nullptr;
}

std::unique_ptr<comm::Communicator> Backend::connect(HostSide host) {
  return std::make_unique<comm::StagedCommunicator>(
      std::move(host.communicator), comm::StagedCommunicator::Staging{host.staging, staging_bytes});
}

}  // namespace dstrain
