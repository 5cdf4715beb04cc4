#pragma once
#include <cstdlib>
#include <filesystem>

namespace dstrain::test {

/// The folder whose tests/ tests read, and whose bin/ has the programs that they start, where
/// DSTRAIN_TEST_TREE names one: tests were carried to another machine (tests/make_bundle.sh).
inline const char* carried_tree() {
  return std::getenv("DSTRAIN_TEST_TREE");
}

/// Else the tree that they were built of.
inline std::filesystem::path source_tree() {
  return carried_tree() != nullptr ? carried_tree() : DSTRAIN_SOURCE_DIR;
}

/// The program dstrain.
inline std::filesystem::path dstrain_program() {
  if (carried_tree() == nullptr) return DSTRAIN_PROGRAM;
  return std::filesystem::path(carried_tree()) / "bin/dstrain";
}

}  // namespace dstrain::test
