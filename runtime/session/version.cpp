#include "runtime/session/version.h"

#include <cstdlib>

#include "runtime/base/environment.h"

namespace dstrain::session {

const char* version() {
  return DSTRAIN_VERSION;
}

void require_launcher(std::string_view program, std::string_view own) {
  const char* const launcher = std::getenv(env::launcher_version);
  if (launcher == nullptr || own == launcher) return;
  fail(ErrorCode::config, "{} is version {}, and the dstrain that started it is {}; {}", program,
       own, launcher, one_version);
}

}  // namespace dstrain::session
