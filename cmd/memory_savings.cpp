#include "cmd/memory_savings.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/memory_setup.h"
#include "runtime/base/error.h"

namespace dstrain::cmd {
namespace {

using nlohmann::json;

/// A change of a run by which it takes less device memory.
struct MemorySaving {
  std::string change;  ///< as the user would make it
  Bytes needs = 0;     ///< device memory of a rank then
};

/// A run of which one thing is changed at a time.
class Savings {
 public:
  explicit Savings(const TrainSetup& setup)
      : setup_(setup), settings_(setup.settings), now_(needed(setup.settings)) {}

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
    return set_up_memory(settings, setup_.model, ranks).plan.total();
  }

  const TrainSetup& setup_;
  const config::TrainSettings& settings_;
  Bytes now_;
  std::vector<MemorySaving> found_;
};

/// Best first; at most three.
std::vector<MemorySaving> best_savings(const TrainSetup& setup) {
  const config::TrainSettings& settings = setup.settings;
  Savings savings(setup);
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
  for (int stage = settings.zero.stage + 1; setup.context.world_size > 1 && stage <= 3; ++stage) {
    savings.try_config(fmt::format("ZeRO stage {}", stage),
                       {{"zero_optimization", {{"stage", stage}}}});
  }
  const json host{{"device", "cpu"}};
  const int offloading = std::max(settings.zero.stage, 1);
  savings.try_config(fmt::format("offload_optimizer to cpu in stage {}", offloading),
                     {{"zero_optimization", {{"stage", offloading}, {"offload_optimizer", host}}}});
  savings.try_config("offload_optimizer and offload_param to cpu in stage 3",
                     {{"zero_optimization",
                       {{"stage", 3}, {"offload_optimizer", host}, {"offload_param", host}}}});
  return savings.best();
}

}  // namespace

std::string describe_savings(const TrainSetup& setup) {
  std::string text = "it would need less with ";
  for (const MemorySaving& saving : best_savings(setup)) {
    text += fmt::format("{} ({}), ", saving.change, format_bytes(saving.needs));
  }
  return text + "more ranks or --tiled_linear_in_splits (dstrain plan searches)";
}

}  // namespace dstrain::cmd
