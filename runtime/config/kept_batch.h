#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/config/batch_size.h"

namespace dstrain::config {

/// The global batch of an elastic job, which stays what it is when fewer ranks do it: they take
/// more accumulation steps instead.
struct KeptBatch {
  std::int64_t train = 0;
  std::int64_t micro = 0;    ///< of a rank
  bool micro_given = false;  ///< by the user: no other will do; else smaller ones will, too
};

/// How so many ranks do it, with the largest micro batch that they may; none when they cannot.
std::optional<Batch> share_kept_batch(const KeptBatch& kept, std::int64_t ranks);

/// As text for DSTRAIN_KEPT_BATCH, by which ranks learn of it: "12 of 6", or "12 up to 6" when
/// smaller micro batches will do.
std::string encode_kept_batch(const KeptBatch& kept);
/// The reverse; a failure for what is none.
Result<KeptBatch> decode_kept_batch(std::string_view text);

}  // namespace dstrain::config
