#include "cmd/dstrain/elastic_launch.h"

#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace dstrain::cmd {
namespace {

void check_resources(const launcher::ElasticNodes& nodes, const launcher::Resources& all) {
  if (all.task_launcher) {
    fail(ErrorCode::usage,
         "an elastic job: {} ends the tasks of all hosts when one is lost; pass --launcher ssh, "
         "which starts each host separately",
         all.launcher());
  }
  const std::int64_t hosts = std::ssize(all.plan.hosts());
  if (nodes.min > hosts) {
    fail(ErrorCode::usage, "--min_elastic_nodes {}: the job has only {}; add hosts (-H FILE)",
         nodes.min, counted(hosts, "host"));
  }
}

}  // namespace

ElasticLaunch::ElasticLaunch(const launcher::ElasticNodes& nodes,
                             const launcher::Resources& all,
                             const config::TrainOptions& training)
    : nodes_(nodes), all_(all) {
  check_resources(nodes_, all_);
  job_ = config::elastic_job(training, launcher::whole_ranks(all_, nodes_));
}

Result<launcher::ElasticPlan> ElasticLaunch::plan(const std::vector<std::string>& absent) const {
  return launcher::plan_elastic(
      all_, nodes_, absent, [this](std::int64_t available) { return job_.most_ranks(available); });
}

std::vector<std::string> ElasticLaunch::describe_idle(const launcher::ElasticPlan& plan) const {
  return launcher::describe_idle(plan, nodes_);
}

bool ElasticLaunch::leads(const launcher::Resources& resources) const {
  return resources.plan.hosts().front().host == all_.plan.hosts().front().host;
}

}  // namespace dstrain::cmd
