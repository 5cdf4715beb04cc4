#include "cmd/memory_savings.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/session/memory_setup.h"

namespace dstrain::cmd {
namespace {

using nlohmann::json;

/// A change of a run by which it takes less memory.
struct MemorySaving {
  std::string change;  ///< as the user would make it
  Bytes needs = 0;     ///< memory then
};

/// A run of which one thing is changed at a time. What is to be less: device memory of a rank, or
/// with `node_ranks` what so many take of their machine's.
class Savings {
 public:
  Savings(const TrainSetup& setup, int node_ranks)
      : setup_(setup),
        settings_(setup.settings),
        node_ranks_(node_ranks),
        now_(needed(setup.settings)) {}

  /// With `change` merged into the configuration. Nothing where other options forbid it.
  void try_config(const std::string& name, const json& change) {
    const std::string& given = settings_.ds_config_text;
    json text = given.empty() ? json::object() : json::parse(given, nullptr, true, true);
    text.merge_patch(change);
    try {
      const auto config = config::DsConfig::parse(text.dump(), "");
      config::TrainSettings changed =
          config::resolve_config(setup_.options, config, setup_.context).settings;
      changed.data = settings_.data;
      add(name, changed);
    } catch (const Error&) {
      return;
    }
  }

  void add(const std::string& name, const config::TrainSettings& changed) {
    const Bytes bytes = needed(changed);
    if (bytes < now_) found_.push_back({name, bytes});
  }

  [[nodiscard]] std::vector<MemorySaving> best() {
    constexpr std::size_t most = 3;
    std::ranges::stable_sort(found_, {}, &MemorySaving::needs);
    found_.resize(std::min(found_.size(), most));
    return found_;
  }

 private:
  [[nodiscard]] Bytes needed(config::TrainSettings settings) const {
    const auto ranks = static_cast<int>(setup_.context.world_size);
    const zero::MemoryPlan plan = session::set_up_memory(settings, setup_.model, ranks).plan;
    return node_ranks_ > 0 ? node_ranks_ * plan.machine_total() : plan.total();
  }

  const TrainSetup& setup_;
  const config::TrainSettings& settings_;
  int node_ranks_;
  Bytes now_;
  std::vector<MemorySaving> found_;
};

/// What is held elsewhere than on the device.
void try_offload(const config::TrainSettings& settings, Savings& savings, const json& target) {
  const std::string device = target.at("device");
  const int offloading = device == "nvme" ? 3 : std::max(settings.zero.stage, 1);
  savings.try_config(
      fmt::format("offload_optimizer to {} in stage {}", device, offloading),
      {{"zero_optimization", {{"stage", offloading}, {"offload_optimizer", target}}}});
  savings.try_config(fmt::format("offload_optimizer and offload_param to {} in stage 3", device),
                     {{"zero_optimization",
                       {{"stage", 3}, {"offload_optimizer", target}, {"offload_param", target}}}});
}

/// Best first; at most three. `node_ranks`: as of Savings.
std::vector<MemorySaving> best_savings(const TrainSetup& setup, int node_ranks) {
  const config::TrainSettings& settings = setup.settings;
  Savings savings(setup, node_ranks);
  if (settings.trains && !settings.gradient_checkpointing) {
    config::TrainSettings changed = settings;
    changed.gradient_checkpointing = true;
    savings.add("--gradient_checkpointing", changed);
  }
  if (settings.trains && settings.micro_batch_size > 1) {
    config::TrainSettings changed = settings;
    changed.micro_batch_size /= 2;
    savings.add(fmt::format("a micro batch of {}", changed.micro_batch_size), changed);
  }
  if (!settings.trains && settings.evaluation.batch_size > 1) {
    config::TrainSettings changed = settings;
    changed.evaluation.batch_size = 1;
    savings.add("--per_device_eval_batch_size 1", changed);
  }
  for (int stage = settings.zero.stage + 1; setup.context.world_size > 1 && stage <= 3; ++stage) {
    savings.try_config(fmt::format("ZeRO stage {}", stage),
                       {{"zero_optimization", {{"stage", stage}}}});
  }
  if (node_ranks > 0) {
    try_offload(settings, savings, {{"device", "nvme"}, {"nvme_path", "/local_nvme"}});
  } else {
    try_offload(settings, savings, {{"device", "cpu"}});
  }
  return savings.best();
}

/// `others`: changes that are not tried.
std::string describe(std::vector<MemorySaving> savings,
                     Bytes limit,
                     const config::TrainSettings& settings,
                     const std::string& others) {
  const auto fits = [limit](const MemorySaving& saving) {
    return limit > 0 && saving.needs <= limit;
  };
  const bool one_fits = std::ranges::any_of(savings, fits);
  if (one_fits) std::erase_if(savings, [&](const MemorySaving& each) { return !fits(each); });
  std::string text;
  for (const MemorySaving& saving : savings) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", saving.change,
                        format_bytes(saving.needs));
  }
  const std::string more = others +
                           (settings.zero.stage == 3 ? " or --tiled_linear_in_splits" : "") +
                           (settings.trains ? " (dstrain plan searches)" : "");
  if (one_fits)
    return fmt::format("it would fit with {}; it would also need less with {}", text, more);
  if (text.empty()) return "it would need less with " + more;
  return fmt::format(
      "it would need less with {}{} {}", text,
      limit > 0 ? ", but none of these alone is enough; combine them, or use" : " or", more);
}

}  // namespace

std::string describe_savings(const TrainSetup& setup, Bytes limit) {
  return describe(best_savings(setup, 0), limit, setup.settings, "more ranks");
}

std::string describe_node_savings(const TrainSetup& setup, int ranks, Bytes limit) {
  return describe(best_savings(setup, ranks), limit, setup.settings,
                  ranks > 1 ? "fewer ranks on a machine or more machines" : "more machines");
}

}  // namespace dstrain::cmd
