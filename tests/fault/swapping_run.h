#pragma once
#include <filesystem>
#include <string>

#include "tests/e2e/resumable_run.h"

namespace dstrain::test {

/// Two ranks that sum gradients over micro batches and keep optimizer states and all shards in
/// `disk`, through few and small buffers. `early`: from the second step on they are updated beside
/// backward.
ResumableRun swapping_run(const std::filesystem::path& disk, bool early = false);
/// The same run that swaps nothing.
ResumableRun plain_run();

/// The process of a rank that runs its program by now; 0: there is none.
pid_t rank_pid(const Launch& launch, int rank, const std::string& program = "dstraind");

/// Of the run whose output directory this is: see results_of().
std::vector<std::string> results_in(const std::filesystem::path& output);

int count_in(const std::string& text, const std::string& part);

}  // namespace dstrain::test
