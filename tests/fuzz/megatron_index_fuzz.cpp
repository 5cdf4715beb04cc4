// The .idx of an indexed Megatron set: in what is accepted documents rise from 0 to the last token.
#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/data/megatron_set.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  return fuzz::refuse_or_accept([&] {
    const data::MegatronIndex index =
        data::parse_megatron_index(std::as_bytes(std::span(bytes, size)), "input");
    const auto& starts = index.document_starts;
    DSTRAIN_CHECK(!starts.empty() && starts.front() == 0 && starts.back() == index.tokens &&
                      std::ranges::is_sorted(starts),
                  "{} starts for {} tokens", starts.size(), index.tokens);
  });
}
