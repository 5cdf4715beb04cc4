#include "tests/stand_in/launch_log.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include <dlfcn.h>

namespace dstrain::stand_in {

void log_launch(const void* kernel, std::size_t shared_bytes) {
  static const char* const path = std::getenv("DSTRAIN_STAND_IN_LAUNCHES");
  static std::set<std::pair<const void*, std::size_t>> logged;
  if (path == nullptr || !logged.emplace(kernel, shared_bytes).second) return;
  Dl_info library{};
  ::dladdr(kernel, &library);
  const std::ptrdiff_t place =
      static_cast<const char*>(kernel) - static_cast<const char*>(library.dli_fbase);
  std::ofstream(path, std::ios::app) << place << ' ' << shared_bytes << '\n';
}

}  // namespace dstrain::stand_in
