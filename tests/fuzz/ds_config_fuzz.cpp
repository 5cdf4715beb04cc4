// ds_config.json, and what it amounts to.
#include "runtime/config/ds_config.h"
#include "runtime/config/resolve.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

/// The tables of keys and options are made once, and are no input's memory.
[[maybe_unused]] const std::size_t known_names =
    config::all_keys().size() + config::train_flags().size();

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const auto parsed = config::DsConfig::parse(fuzz::as_text(data, size), "input");
    config::report_json(config::resolve_config({}, parsed, {.world_size = 2, .hidden = 8}));
  });
}
