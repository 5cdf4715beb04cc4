#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launcher/plan/elastic_plan.h"
#include "runtime/config/elastic_job.h"
#include "runtime/config/train_options.h"

namespace dstrain::cmd {

/// Chooses which hosts of an elastic training work when some are gone.
class ElasticLaunch {
 public:
  /// `all`: the hosts when none is missing. Throws Error{usage} if these hosts or their launcher
  /// cannot be elastic, and Error{config} for a batch that cannot be kept.
  ElasticLaunch(const launcher::ElasticNodes& nodes,
                const launcher::Resources& all,
                const config::TrainOptions& training);

  /// A failure says why the job cannot launch without the absent ones.
  [[nodiscard]] Result<launcher::ElasticPlan> plan(const std::vector<std::string>& absent) const;
  /// The slots and hosts without ranks and why, a line for each cause.
  [[nodiscard]] std::vector<std::string> describe_idle(const launcher::ElasticPlan& plan) const;
  /// The batch that the ranks keep; none when the section "elasticity" decides it.
  [[nodiscard]] const std::optional<config::KeptBatch>& kept_batch() const { return job_.kept; }
  /// Whether the plan's first host, where rank 0 listens, is that of the whole job.
  [[nodiscard]] bool leads(const launcher::Resources& resources) const;

 private:
  launcher::ElasticNodes nodes_;
  launcher::Resources all_;
  config::ElasticJob job_;
};

}  // namespace dstrain::cmd
