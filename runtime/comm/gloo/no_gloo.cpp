#include "runtime/base/error.h"
#include "runtime/comm/gloo/gloo_transport.h"

/// A build without gloo.
namespace dstrain::comm {

std::unique_ptr<Transport> make_gloo_transport(Store& /*store*/, const GlooOptions& /*options*/) {
  fail(ErrorCode::config,
       "this build has no gloo, which carries communication between nodes: install libgloo-dev, "
       "configure and build again");
}

std::unique_ptr<Communicator> make_gloo_communicator(Store& store, const GlooOptions& options) {
  make_gloo_transport(store, options);
  return nullptr;
}

bool has_gloo() {
  return false;
}

}  // namespace dstrain::comm
