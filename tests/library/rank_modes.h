#pragma once
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <dstrain/dstrain.h>

/// PROGRAM MODE CONFIG TEXT OUTPUT: a rank that uses the library in one of several ways.
struct Arguments {
  std::string mode;
  std::string config;
  std::string text;
  std::string output;
};

using Modes = std::vector<std::pair<std::string, void (*)(dstrain::Rank&, const Arguments&)>>;

/// Runs the mode that the arguments name. Returns the exit status.
inline int run_mode(int argc, char** argv, const Modes& modes) {
  if (argc != 5) return 2;
  const Arguments arguments{argv[1], argv[2], argv[3], argv[4]};
  try {
    dstrain::Rank rank;
    for (const auto& [name, run] : modes) {
      if (name == arguments.mode) run(rank, arguments);
    }
    return 0;
  } catch (const dstrain::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.code() == dstrain::ErrorCode::config ? 2 : 1;
  }
}

inline void print(const dstrain::Rank& rank, const dstrain::StepResult& result) {
  if (rank.rank() != 0) return;
  std::printf("step %lld loss %.17g norm %.17g\n", static_cast<long long>(result.step), result.loss,
              result.gradient_norm);
  std::fflush(stdout);  // the rank may be killed with another
}
