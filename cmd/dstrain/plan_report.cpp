#include "cmd/dstrain/plan_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/ops/library_memory.h"
#include "runtime/session/offload_setup.h"

namespace dstrain::cmd {
namespace {

constexpr const char* checkpointing_option = "--gradient_checkpointing";

/// A size in a column: 123 MiB, nothing for 0.
std::string cell(Bytes bytes) {
  return bytes == 0 ? "" : format_bytes(bytes);
}

/// The value by which rows are ranked.
std::string cost_cell(const zero::PlanRow& row, const zero::PlanRow& first) {
  if (predicts_time(row.memory.device)) return fmt::format("{:>6.3f}", row.cost / first.cost);
  return fmt::format("{:>11}", format_bytes(static_cast<Bytes>(row.cost)));
}

std::string heading(DeviceKind device) {
  const std::string cost = predicts_time(device) ? "  time" : "      moved";
  const std::string blank(cost.size(), ' ');
  std::string lines = fmt::format("{:>3} {}  {:<5} {:<15} {:<13} {:<4}  {}\n", "", blank, "ZeRO",
                                  "offload of", "gradient", "", "memory of each rank");
  lines += fmt::format("{:>3} {}  {:<5} {:<9} {:<5} {:<13} {:<4}  {:<6}", "", cost, "stage",
                       "optimizer", "param", "checkpointing", "lean", "where");
  for (const char* category : memory_category_names) lines += fmt::format(" {:>11}", category);
  return lines + fmt::format(" {:>11}\n", "total");
}

std::string tier_cells(const zero::MemoryPlan& memory, MemoryTier tier) {
  std::string line = fmt::format("{:<6}", memory_tier_names.at(static_cast<std::size_t>(tier)));
  for (const Bytes bytes : memory.bytes.at(static_cast<std::size_t>(tier))) {
    line += fmt::format(" {:>11}", cell(bytes));
  }
  return line + fmt::format(" {:>11}\n", format_bytes(memory.total(tier)));
}

/// A choice's lines: one for each tier that it uses.
std::string row_lines(const zero::PlanRow& row, std::size_t place, const zero::PlanRow& first) {
  const zero::PlanChoice& choice = row.choice;
  std::string text = fmt::format(
      "{:>3} {}  {:<5} {:<9} {:<5} {:<13} {:<4}  ", place, cost_cell(row, first), choice.stage,
      session::offload_device(choice.optimizer), session::offload_device(choice.parameters),
      choice.checkpointing ? "yes" : "-", choice.lean ? "yes" : "-");
  const std::string indent(text.size(), ' ');
  text += tier_cells(row.memory, MemoryTier::device);
  for (const MemoryTier tier : {MemoryTier::host, MemoryTier::pinned, MemoryTier::nvme}) {
    if (row.memory.total(tier) > 0) text += indent + tier_cells(row.memory, tier);
  }
  return text;
}

std::string legend(DeviceKind device) {
  std::string text = fmt::format("\nPlanned for {}. ", name_of(device));
  text += predicts_time(device)
              ? "time: predicted step time, as a multiple of the fastest.\n"
              : "moved: what a rank sends, copies and swaps in a step. The first moves the\n"
                "fewest bytes, and need not be the fastest: no such device has been measured.\n";
  text +=
      "offload of: where optimizer states and parameters are kept; none is on the device.\n"
      "pinned: host memory that is locked. The host's buffers are for saving";
  if (!shares_host_memory(device)) text += " and for copies";
  return text + fmt::format(
                    ".\nlean: stage 3 without persistent parameters and overlap.\nLibraries take "
                    "more: {}.\n",
                    ops::library_memory(device));
}

nlohmann::ordered_json memory_json(const zero::MemoryPlan& memory) {
  nlohmann::ordered_json json;
  for (std::size_t tier = 0; tier < memory_tier_names.size(); ++tier) {
    for (std::size_t i = 0; i < memory_category_names.size(); ++i) {
      json[memory_tier_names.at(tier)][memory_category_names.at(i)] = memory.bytes.at(tier).at(i);
    }
  }
  return json;
}

nlohmann::ordered_json total_json(const zero::MemoryPlan& memory) {
  nlohmann::ordered_json json;
  for (std::size_t tier = 0; tier < memory_tier_names.size(); ++tier) {
    json[memory_tier_names.at(tier)] = memory.total(static_cast<MemoryTier>(tier));
  }
  return json;
}

}  // namespace

void add_memory(nlohmann::ordered_json& json, const zero::MemoryPlan& memory) {
  json["memory"] = memory_json(memory);
  json["total"] = total_json(memory);
  json["outside_plan"] = ops::library_memory(memory.device);
}

std::string plan_table(const PlanSetup& setup, const std::vector<zero::PlanRow>& rows) {
  const DeviceKind device = rows.front().memory.device;
  std::string text = heading(device);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += row_lines(rows[i], i + 1, rows.front());
  }
  text += legend(device) + "\nThe configuration of the first";
  if (rows.front().choice.checkpointing) {
    text += fmt::format(", which also needs {} on the command line", checkpointing_option);
  }
  return text + fmt::format(":\n{}\n", setup.ds_config(rows.front().choice));
}

std::string plan_json(const PlanSetup& setup, const std::vector<zero::PlanRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const zero::PlanRow& row : rows) {
    nlohmann::ordered_json one;
    one["stage"] = row.choice.stage;
    one["offload_optimizer"] = session::offload_device(row.choice.optimizer);
    one["offload_param"] = session::offload_device(row.choice.parameters);
    one["gradient_checkpointing"] = row.choice.checkpointing;
    if (predicts_time(row.memory.device)) {
      one["relative_step_time"] = row.cost / rows.front().cost;
    } else {
      one["moved_bytes"] = static_cast<Bytes>(row.cost);
    }
    one["device"] = name_of(row.memory.device);
    add_memory(one, row.memory);
    one["ds_config"] = nlohmann::ordered_json::parse(setup.ds_config(row.choice));
    one["training_options"] = nlohmann::ordered_json::array();
    if (row.choice.checkpointing) one["training_options"].push_back(checkpointing_option);
    list.push_back(one);
  }
  return list.dump(2);
}

}  // namespace dstrain::cmd
