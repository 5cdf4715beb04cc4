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

/// A run of which one thing is changed at a time.
class Savings {
 public:
  Savings(const config::TrainOptions& options,
          const config::Context& context,
          const config::TrainSettings& settings,
          const model::Model& model)
      : options_(options),
        context_(context),
        settings_(settings),
        model_(model),
        now_(needed(settings)) {}

  /// With `change` merged into the configuration. Nothing where other options forbid it.
  void try_config(const std::string& name, const json& change) {
    const std::string& given = settings_.ds_config_text;
    json text = given.empty() ? json::object() : json::parse(given, nullptr, true, true);
    text.merge_patch(change);
    try {
      const auto config = config::DsConfig::parse(text.dump(), "");
      config::TrainSettings changed = config::resolve_config(options_, config, context_).settings;
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
    return set_up_memory(settings, model_, static_cast<int>(context_.world_size)).plan.total();
  }

  const config::TrainOptions& options_;
  const config::Context& context_;
  const config::TrainSettings& settings_;
  const model::Model& model_;
  Bytes now_;
  std::vector<MemorySaving> found_;
};

}  // namespace

std::vector<MemorySaving> best_savings(const config::TrainOptions& options,
                                       const config::Context& context,
                                       const config::TrainSettings& settings,
                                       const model::Model& model) {
  Savings savings(options, context, settings, model);
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
  for (int stage = settings.zero.stage + 1; context.world_size > 1 && stage <= 3; ++stage) {
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

std::string describe(const std::vector<MemorySaving>& savings) {
  std::string text;
  for (const MemorySaving& saving : savings) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", saving.change,
                        format_bytes(saving.needs));
  }
  return text;
}

}  // namespace dstrain::cmd
