#include "runtime/config/native_types.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "runtime/base/suggest.h"
#include "runtime/config/choice.h"
#include "runtime/config/schedule_settings.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "runtime/rules/registry.h"

namespace dstrain::config {
namespace {

constexpr std::string_view adam_params =
    "lr|betas|eps|weight_decay|bias_correction|adam_w_mode|torch_adam|amsgrad|set_grad_none|"
    "fp32_optimizer_states|fused|foreach";

/// One of DeepSpeed's optimizers. It is built if an update rule has its name.
constexpr NativeType optimizer(std::string_view name, std::string_view params) {
  return {name, rules::has_type(name), params};
}

constexpr std::array optimizers{
    optimizer("Adam", adam_params),
    optimizer("AdamW", adam_params),
    optimizer("Lamb",
              "lr|betas|eps|eps_inside_sqrt|weight_decay|bias_correction|max_coeff|min_coeff|"
              "amsgrad|set_grad_none|fp32_optimizer_states"),
    optimizer("OneBitAdam", "lr|betas|eps|weight_decay|freeze_step|cuda_aware|comm_backend_name"),
    optimizer("OneBitLamb",
              "lr|betas|eps|weight_decay|freeze_step|max_coeff|min_coeff|coeff_beta|factor_max|"
              "factor_min|factor_threshold|cuda_aware|comm_backend_name"),
    optimizer("ZeroOneAdam",
              "lr|betas|eps|weight_decay|var_freeze_step|var_update_scaler|local_step_scaler|"
              "local_step_clipper|cuda_aware|comm_backend_name"),
    optimizer("Adagrad", "lr|eps|weight_decay"),
    optimizer("Lion", "lr|betas|weight_decay|set_grad_none|fp32_optimizer_states"),
    optimizer("Muon", "lr|momentum|ns_method|muon_lr|adam_lr|weight_decay|betas|eps"),
    optimizer("MuAdam", "lr|betas|eps|weight_decay"),
    optimizer("MuAdamW", "lr|betas|eps|weight_decay"),
    optimizer("MuSGD", "lr|momentum|weight_decay"),
};

constexpr std::array schedulers{
    NativeType{WarmupLr::name, true,
               "warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|last_batch_iteration"},
    NativeType{WarmupDecayLr::name, true,
               "warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|total_num_steps|"
               "last_batch_iteration",
               "total_num_steps"},
    NativeType{WarmupCosineLr::name, true,
               "warmup_num_steps|warmup_type|total_num_steps|warmup_min_ratio|cos_min_ratio|"
               "last_batch_iteration",
               "total_num_steps"},
    NativeType{LrRangeTest::name, true,
               "lr_range_test_min_lr|lr_range_test_step_size|lr_range_test_step_rate|"
               "lr_range_test_staircase|last_batch_iteration"},
    NativeType{OneCycle::name, true,
               "cycle_min_lr|cycle_max_lr|decay_lr_rate|cycle_first_step_size|"
               "cycle_second_step_size|cycle_first_stair_count|cycle_second_stair_count|"
               "decay_step_size|cycle_momentum|cycle_min_mom|cycle_max_mom|decay_mom_rate|"
               "last_batch_iteration",
               "cycle_min_lr|cycle_max_lr"},
};

constexpr std::array<std::string_view, 12> torch_optimizer_names{
    "SGD",  "RMSprop", "Adadelta",   "Adamax", "NAdam",     "RAdam",
    "ASGD", "LBFGS",   "SparseAdam", "Rprop",  "Adafactor", "Adagrad"};

constexpr std::array<std::string_view, 11> torch_scheduler_names{
    "StepLR",   "MultiStepLR", "ExponentialLR", "CosineAnnealingLR",
    "LambdaLR", "ConstantLR",  "LinearLR",      "ReduceLROnPlateau",
    "CyclicLR", "OneCycleLR",  "PolynomialLR"};

}  // namespace

std::span<const NativeType> optimizer_types() {
  return optimizers;
}
std::span<const NativeType> scheduler_types() {
  return schedulers;
}
std::span<const std::string_view> torch_optimizers() {
  return torch_optimizer_names;
}
std::span<const std::string_view> torch_schedulers() {
  return torch_scheduler_names;
}

namespace {

/// The common part of optimizers and schedulers.
struct Family {
  std::string_view section;
  std::span<const NativeType> natives;
  std::span<const std::string_view> from_torch;
};

const NativeType* find_type(const Family& family, const std::string& name) {
  const auto found = std::find_if(family.natives.begin(), family.natives.end(),
                                  [&](const NativeType& type) { return type.name == name; });
  return found == family.natives.end() ? nullptr : &*found;
}

/// "Adam, AdamW, Lamb or Lion"
std::string built_names(const Family& family) {
  std::vector<std::string_view> built;
  for (const NativeType& type : family.natives) {
    if (type.built) built.push_back(type.name);
  }
  const std::string_view last = built.back();
  built.pop_back();
  return fmt::format("{} or {}", fmt::join(built, ", "), last);
}

std::string why_not(const Family& family, const std::string& name) {
  const NativeType* const type = find_type(family, name);
  const bool torch = std::find(family.from_torch.begin(), family.from_torch.end(), name) !=
                     family.from_torch.end();
  if (type != nullptr || torch) {
    return fmt::format("\"{}\" is not implemented; use {}", name, built_names(family));
  }
  if (lower_case(name).find("cpu") != std::string::npos) {
    return fmt::format("unknown type \"{}\"; use {}, where it runs is chosen elsewhere", name,
                       built_names(family));
  }
  // Handles "torch.optim.AdamW" and the Trainer's names for AdamW.
  const std::string tail = name.substr(name.rfind('.') + 1);
  const auto named = [&](const NativeType& native) {
    return native.built && lower_case(native.name) == lower_case(tail);
  };
  const auto other = std::ranges::find_if(family.natives, named);
  const bool trainers = family.section == "optimizer" &&
                        !spelled_word(name, split_choices(find_flag("optim")->choices)).empty();
  if (trainers || other != family.natives.end()) {
    return fmt::format("unknown type \"{}\"; did you mean \"{}\"?", name,
                       trainers ? "AdamW" : other->name);
  }
  std::vector<std::string_view> names(family.from_torch.begin(), family.from_torch.end());
  for (const NativeType& native : family.natives) names.insert(names.begin(), native.name);
  const std::string likely = suggest(name, names);
  if (likely.empty()) {
    return fmt::format("unknown type \"{}\"; use {}", name, built_names(family));
  }
  const NativeType* const meant = find_type(family, likely);
  const bool built = meant != nullptr && meant->built;
  return fmt::format("unknown type \"{}\"; did you mean \"{}\"?{}", name, likely,
                     built ? "" : " " + why_not(family, likely));
}

/// Returns the built types of the family that have this parameter.
std::string owners(const Family& family, std::string_view param) {
  std::string names;
  for (const NativeType& type : family.natives) {
    const auto params = split_choices(type.params);
    if (!type.built || std::find(params.begin(), params.end(), param) == params.end()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", type.name);
  }
  return names;
}

void check_params(const Family& family,
                  const NativeType& type,
                  const CheckedValues& values,
                  Problems& problems) {
  const std::string prefix = fmt::format("{}.params.", family.section);
  const auto params = split_choices(type.params);
  for (auto at = values.lower_bound(prefix); at != values.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    const std::string_view name = std::string_view(at->first).substr(prefix.size());
    const Key* const key = find_key(at->first);
    const bool reported = key->status == KeyStatus::unread || key->status == KeyStatus::refused;
    if (reported || std::find(params.begin(), params.end(), name) != params.end()) continue;
    const std::string others = owners(family, name);
    problems.add(at->second.position, at->first,
                 fmt::format("{} has no such parameter; {}", type.name,
                             others.empty() ? "leave it out" : others + " has"));
  }
}

void check_required(const Family& family,
                    const NativeType& type,
                    const CheckedValues& values,
                    Problems& problems) {
  const std::string section = fmt::format("{}.params", family.section);
  const auto params = values.find(section);
  const auto given = params == values.end() ? values.find(family.section) : params;
  for (const std::string_view param : split_choices(type.required)) {
    const std::string path = fmt::format("{}.{}", section, param);
    if (values.find(path) != values.end()) continue;
    const bool automatic = find_key(path)->automatic;
    problems.add(given->second.position, path,
                 fmt::format("is missing; {} needs it: give a number{}", type.name,
                             automatic ? ", or \"auto\" for that of the run" : ""));
  }
}

void check_family(const Family& family, const CheckedValues& values, Problems& problems) {
  const auto section = values.find(family.section);
  if (section == values.end() || !section->second.is(JsonValue::Kind::object)) return;
  const std::string path = fmt::format("{}.type", family.section);
  const auto given = values.find(path);
  if (given == values.end()) {
    const std::string prefix = fmt::format("{}.", family.section);
    const bool empty = std::ranges::none_of(
        values, [&](const auto& value) { return value.first.starts_with(prefix); });
    if (empty) return;  // for DeepSpeed, {} means "not set"
    problems.add(section->second.position, path,
                 fmt::format("is missing; set it to {}", built_names(family)));
    return;
  }
  if (!given->second.is(JsonValue::Kind::string)) return;  // its type was reported already
  const NativeType* const type = find_type(family, given->second.text);
  if (type == nullptr || !type->built) {
    problems.add(given->second.position, path, why_not(family, given->second.text));
    return;
  }
  check_params(family, *type, values, problems);
  check_required(family, *type, values, problems);
}

void check_betas(const CheckedValues& values, Problems& problems) {
  constexpr std::string_view path = "optimizer.params.betas";
  const auto given = values.find(path);
  if (given == values.end() || !given->second.is(JsonValue::Kind::array)) return;
  const auto& betas = given->second.elements;
  const bool right =
      betas.size() == 2 && std::all_of(betas.begin(), betas.end(), [](const auto& b) {
        return b.is(JsonValue::Kind::number) && b.number >= 0 && b.number < 1;
      });
  if (!right) problems.add(given->second.position, path, "must be two numbers in [0, 1)");
}

void check_torch_adam(const CheckedValues& values, Problems& problems) {
  const auto torch = values.find("optimizer.params.torch_adam");
  const auto correction = values.find("optimizer.params.bias_correction");
  if (torch == values.end() || !torch->second.boolean || correction == values.end()) return;
  problems.add(correction->second.position, correction->first,
               "torch's Adam has no such parameter; leave out torch_adam");
}

const std::array<Family, 2>& families() {
  static const std::array<Family, 2> both{
      Family{"optimizer", optimizer_types(), torch_optimizers()},
      Family{"scheduler", scheduler_types(), torch_schedulers()}};
  return both;
}

}  // namespace

bool names_unbuilt_type(std::string_view section, const JsonValue& object) {
  const auto* const family = std::ranges::find(families(), section, &Family::section);
  const auto type = std::ranges::find(object.members, "type", &JsonMember::key);
  if (family == families().end() || type == object.members.end()) return false;
  const std::string name = lower_case(type->value.text);
  const auto named = [&](std::string_view other) {
    return lower_case(other) == name;
  };
  const auto native = std::ranges::find_if(family->natives, named, &NativeType::name);
  return native != family->natives.end() ? !native->built
                                         : std::ranges::any_of(family->from_torch, named);
}

std::string instead_of_type(std::string_view section, const std::string& word) {
  const Family& family = *std::ranges::find(families(), section, &Family::section);
  const bool schedules = section == "scheduler";
  const std::vector<std::string_view> options =
      split_choices(find_flag(schedules ? "lr_scheduler_type" : "optim")->choices);
  if (lower_case(word) == "auto") {
    return fmt::format("; leave it out: --{} chooses it",
                       schedules ? "lr_scheduler_type" : "optim");
  }
  const std::string_view known = canonical_word(*find_key(fmt::format("{}.type", section)), word);
  const NativeType* const type = find_type(family, std::string(known.empty() ? word : known));
  if (type != nullptr && type->built) {
    std::string params;
    for (const std::string_view param : split_choices(type->required)) {
      const bool automatic = find_key(fmt::format("{}.params.{}", section, param))->automatic;
      params += fmt::format("{}\"{}\": {}", params.empty() ? "" : ", ", param,
                            automatic ? "\"auto\"" : "NUMBER");
    }
    return fmt::format("; write {{\"type\": \"{}\"{}}}", type->name,
                       params.empty() ? "" : fmt::format(", \"params\": {{{}}}", params));
  }
  if (type == nullptr && !spelled_word(word, options).empty()) {
    return fmt::format("; leave it out and type {} {}",
                       schedules ? "--lr_scheduler_type" : "--optim", spelled_word(word, options));
  }
  return fmt::format("; its \"type\" is named in an object: {}", why_not(family, word));
}

void check_types(const CheckedValues& values, Problems& problems) {
  for (const Family& family : families()) check_family(family, values, problems);
  check_betas(values, problems);
  check_torch_adam(values, problems);
}

}  // namespace dstrain::config
