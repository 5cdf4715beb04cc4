#include "runtime/session/version.h"

namespace dstrain::session {

const char* version() {
  return DSTRAIN_VERSION;
}

}  // namespace dstrain::session
