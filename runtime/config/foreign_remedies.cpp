#include "runtime/config/foreign_remedies.h"

#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/number.h"
#include "runtime/config/choice.h"

namespace dstrain::config {
namespace {

/// Held-out data as a part of the training file, in percent. Empty unless both parts have some.
std::string split_remedy(double percent) {
  constexpr double whole = 100;
  if (!(percent > 0 && percent < whole)) return {};
  const double rounded = std::round(percent * 1e6) / 1e6;  // of 0.1 * 100
  return fmt::format(", or --split {},{},0", whole - rounded, rounded);
}

std::string held_out(const std::string& split, const TrainOptions& options) {
  const std::string& typed =
      options.split.typed() ? options.split.typed_as : options.validation_file.typed_as;
  return typed.empty() ? fmt::format("give --validation_file FILE{}", split)
                       : fmt::format("{} names the held-out data already", typed);
}

}  // namespace

std::string tell_data_sets(const std::string& /*value*/, const TrainOptions& options) {
  return options.train_file.typed()
             ? fmt::format("data sets are not downloaded; {} names the data already",
                           options.train_file.typed_as)
             : "data sets are not downloaded; give --train_file FILE";
}

std::string tell_split_of_percentage(const std::string& value, const TrainOptions& options) {
  return held_out(split_remedy(parse_number<double>(value).value_or(0)), options);
}

std::string tell_split_of_size(const std::string& value, const TrainOptions& options) {
  const double size = parse_number<double>(value).value_or(0);
  if (size > 0 && size < 1) return held_out(split_remedy(size * 100), options);
  return held_out(", or a part of the data, as in --split 95,5,0", options);
}

std::string tell_data_split(const std::string& value, const TrainOptions& /*options*/) {
  const std::vector<double> weights = split_weights(value);
  std::string part;
  if (!weights.empty() && weights[0] > 0 && weights[1] + weights[2] > 0) {
    part = fmt::format(", or give --split {},0,{} to train on the first stage's part", weights[0],
                       weights[1] + weights[2]);
  }
  return fmt::format(
      "the stages of DeepSpeed-Chat do not share a file here; leave it out to train on all of it{}",
      part);
}

std::string cosine_section(double ratio) {
  return fmt::format(
      R"("scheduler": {{"type": "WarmupCosineLR", "params": {{"cos_min_ratio": {:.6g}, )"
      R"("total_num_steps": "auto", "warmup_num_steps": "auto", "warmup_type": "linear"}}}})",
      ratio);
}

std::string tell_scheduler_kwargs(const std::string& value, const TrainOptions& options) {
  const auto kwargs = nlohmann::json::parse(value, nullptr, false);
  const auto number = [&](const char* key) -> std::optional<double> {
    if (!kwargs.is_object() || !kwargs.contains(key) || !kwargs[key].is_number()) return {};
    return kwargs[key].get<double>();
  };
  std::optional<double> ratio = number("min_lr_rate");
  const std::optional<double> lowest = number("min_lr");
  if (!ratio && lowest && options.learning_rate.value > 0) {
    ratio = *lowest / options.learning_rate.value;
  }
  if (!ratio) {
    return "not implemented; the types of scheduler.type in the configuration have parameters";
  }
  return fmt::format(
      "for a cosine that ends there, leave out --lr_scheduler_type too and put into the "
      "configuration {}",
      cosine_section(*ratio));
}

std::string tell_finetuning_type(const std::string& value, const TrainOptions& /*options*/) {
  const std::string type = lower_case(value);
  return fmt::format("{} not implemented; all parameters are trained", type == "lora" ? "LoRA is"
                                                                       : type == "freeze"
                                                                           ? "frozen layers are"
                                                                           : "that is");
}

}  // namespace dstrain::config
