#include "launcher/plan/hostfile.h"
#include "runtime/base/error.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    for (const auto& [host, slots] : launcher::parse_hostfile(fuzz::as_text(data, size), "input")) {
      DSTRAIN_CHECK(!host.starts_with('-') && slots >= 1 && slots <= launcher::slots_max, "{} {}",
                    host, slots);
    }
  });
}
