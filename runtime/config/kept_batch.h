#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/config/batch_size.h"

namespace dstrain::config {

/// The global batch of an elastic job. It stays the same with fewer ranks, which take more
/// accumulation steps instead.
struct KeptBatch {
  std::int64_t train = 0;
  std::int64_t micro = 0;    ///< of one rank
  bool micro_given = false;  ///< by the user, then fixed; otherwise it may become smaller
};

/// Returns how this many ranks share the batch, with the largest allowed micro batch; nothing if
/// they cannot.
std::optional<Batch> share_kept_batch(const KeptBatch& kept, std::int64_t ranks);

/// Encodes it for DSTRAIN_KEPT_BATCH, which passes it to the ranks: "12 of 6", or "12 up to 6" if
/// smaller micro batches are allowed.
std::string encode_kept_batch(const KeptBatch& kept);
/// Reverses encode_kept_batch(). Fails for other texts.
Result<KeptBatch> decode_kept_batch(std::string_view text);

}  // namespace dstrain::config
