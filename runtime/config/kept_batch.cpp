#include "runtime/config/kept_batch.h"

#include <array>

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace dstrain::config {
namespace {

constexpr std::string_view exactly = " of ";
constexpr std::string_view at_most = " up to ";

}  // namespace

std::optional<Batch> share_kept_batch(const KeptBatch& kept, std::int64_t ranks) {
  if (kept.train % ranks != 0) return std::nullopt;
  const std::int64_t each = kept.train / ranks;
  if (kept.micro_given && each % kept.micro != 0) return std::nullopt;
  const std::int64_t micro = largest_divisor(each, kept.micro);
  return Batch{kept.train, micro, each / micro};
}

std::string encode_kept_batch(const KeptBatch& kept) {
  return fmt::format("{}{}{}", kept.train, kept.micro_given ? exactly : at_most, kept.micro);
}

Result<KeptBatch> decode_kept_batch(std::string_view text) {
  for (const std::string_view word : {exactly, at_most}) {
    const std::size_t at = text.find(word);
    if (at == text.npos) continue;
    const auto train = parse_number<std::int64_t>(text.substr(0, at));
    const auto micro = parse_number<std::int64_t>(text.substr(at + word.size()));
    if (!train || !micro || *micro < 1 || *train < *micro) continue;
    return KeptBatch{*train, *micro, word == exactly};
  }
  return Failure{fmt::format("\"{}\" is not a batch of an elastic job", text)};
}

}  // namespace dstrain::config
