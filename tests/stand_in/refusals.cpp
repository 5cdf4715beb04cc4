#include "tests/stand_in/refusals.h"

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

namespace dstrain::stand_in {
namespace {

constexpr std::string_view broken = "cudaErrorIllegalAddress";

struct Refusal {
  Refusal() {
    const char* const given = std::getenv("DSTRAIN_STAND_IN_REFUSES");
    const char* const rank = std::getenv("RANK");
    const char* const of_rank = std::getenv("DSTRAIN_STAND_IN_REFUSES_RANK");
    const bool other = of_rank != nullptr && (rank == nullptr || std::string_view(rank) != of_rank);
    if (given == nullptr || other) return;
    std::istringstream words(given);
    int number = 0;
    std::string preposition;
    words >> function >> number >> preposition >> first;
    left = number;
    counting = first.empty();
  }
  std::string function;
  std::atomic<int> left = 0;  ///< calls until the one that fails
  std::string first;          ///< the function whose call begins the count
  std::atomic<bool> counting = false;
};

Refusal& refusal() {
  static Refusal one;
  return one;
}

}  // namespace

bool refuses(const char* function) {
  Refusal& r = refusal();
  if (r.function == broken) return r.left.load() <= 0;
  if (r.first == function) r.counting = true;
  if (!r.counting) return false;
  return r.function == function && r.left.fetch_sub(1) == 1;
}

void count_kernel() {
  if (refusal().function == broken) refusal().left.fetch_sub(1);
}

}  // namespace dstrain::stand_in
