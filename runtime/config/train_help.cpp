#include <fmt/format.h>

#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"

namespace dstrain::config {
namespace {

constexpr std::string_view head =
    "Usage: dstrain [launch options] train [options]\n"
    "\n"
    "Trains a language model. Options have the names and the defaults (in parentheses) of Hugging\n"
    "Face's TrainingArguments; dashes and underscores are the same in them. A value given here\n"
    "and in the configuration must agree, or be \"auto\" there.\n";

constexpr std::string_view tail =
    "\n"
    "Booleans may carry true, false, 1 or 0. The last of a repeated option counts. Several files\n"
    "are a mixture: with weights, as in --train_file 0.7 A 0.3 B, or without, each sample once an\n"
    "epoch. Schedules are constant, constant_with_warmup, linear, cosine, polynomial and\n"
    "inverse_sqrt, as Hugging Face computes them; a scheduler in the configuration takes their\n"
    "place. linear goes up in the warmup and down to 0 at the last step.\n"
    "Gradients are clipped at the configuration's gradient_clipping, else at --max_grad_norm.\n"
    "`dstrain config show FILE` tells what a configuration and the options amount to.\n";

constexpr std::size_t width = 98;

/// With many aliases on several lines.
std::string spelled(const FlagRow& row) {
  std::string text = fmt::format("--{}", row.name);
  std::size_t line = 0;
  for (const std::string_view alias : split_choices(row.aliases)) {
    text += ",";
    if (text.size() - line + alias.size() + row.value.size() + 4 > width) {
      line = text.size();
      text += "\n   ";
    }
    text += fmt::format(" --{}", alias);
  }
  if (!row.value.empty()) {
    text += row.value_optional ? fmt::format(" [{}]", row.value) : fmt::format(" {}", row.value);
  }
  return text;
}

/// All names of a status, in lines.
std::string name_list(FlagStatus status) {
  std::string text;
  std::size_t column = width;
  for (const FlagRow& row : foreign_flags()) {
    if (row.status != status) continue;
    if (column + row.name.size() + 3 > width) {
      text += text.empty() ? " " : "\n ";
      column = 1;
    }
    text += fmt::format(" --{}", row.name);
    column += row.name.size() + 3;
  }
  return text + "\n";
}

}  // namespace

std::string help_text() {
  std::string text(head);
  std::string_view group;
  for (const FlagRow& row : implemented_flags()) {
    if (row.group != group) text += fmt::format("\n{}\n", row.group);
    group = row.group;
    constexpr std::size_t column = 34;
    const std::string names = spelled(row);
    const std::string pad(names.size() < column ? column - names.size() : 0, ' ');
    const std::string gap = pad.empty() ? fmt::format("\n  {:{}}", "", column) : pad;
    text += fmt::format("  {}{} {}\n", names, gap, row.help);
  }
  text += "\nAccepted from other programs' commands without effect; a warning says why\n";
  text += name_list(FlagStatus::hint);
  text += "\nRefused with the reason, unless their value turns them off\n";
  text += name_list(FlagStatus::refused);
  text += tail;
  return text;
}

}  // namespace dstrain::config
