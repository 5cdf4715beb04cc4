#pragma once
#include <string>
#include <vector>

#include "runtime/config/train_options.h"
#include "runtime/model/model.h"
#include "zero/plan_search.h"

namespace dstrain::cmd {

/// How much of the weights' placement and of the cache fits into a budget: for each placement and
/// context, the largest batch.
class InferencePlan {
 public:
  struct Row {
    zero::PlanChoice choice;
    std::int64_t context = 0;  ///< tokens of a text, with its prompt
    std::int64_t batch = 0;    ///< texts of a rank at a time; 0: not one fits
    zero::MemoryPlan memory;   ///< of that batch, or of one text
    Bytes cache = 0;           ///< the part of it for keys and values
  };
  /// `tiers`: where weights may be. Throws Error{usage, config, input}.
  InferencePlan(config::TrainOptions options,
                int world,
                DeviceKind device,
                std::span<const MemoryTier> tiers);

  /// The rows that fit, of the placement that moves least first. Throws Error{out_of_memory} if
  /// there are none.
  [[nodiscard]] std::vector<Row> rows(const zero::PlanBudget& budget) const;
  [[nodiscard]] std::string table(const std::vector<Row>& rows) const;
  /// A list of {stage, offload_param, context, batch_size, cache, device, memory, total,
  /// outside_plan, ds_config}.
  [[nodiscard]] std::string json(const std::vector<Row>& rows) const;

 private:
  [[nodiscard]] Row row_of(const zero::PlanChoice& choice,
                           std::int64_t context,
                           std::int64_t batch) const;
  [[nodiscard]] Row largest(const zero::PlanChoice& choice,
                            std::int64_t context,
                            const zero::PlanBudget& budget) const;
  [[nodiscard]] std::string ds_config(const zero::PlanChoice& choice) const;

  config::TrainOptions options_;
  int world_;
  model::Model model_;
  std::vector<zero::PlanChoice> choices_;
};

}  // namespace dstrain::cmd
