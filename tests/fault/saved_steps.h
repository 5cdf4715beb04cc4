#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::test {

/// The steps whose checkpoints the run said it had saved: "saved OUTPUT_DIR/checkpoint-N".
std::vector<std::int64_t> acknowledged_steps(const std::string& out);

/// The steps of the checkpoints in `output`, the newest first, each of which must verify.
std::vector<std::int64_t> whole_steps(const std::filesystem::path& output);

}  // namespace dstrain::test
