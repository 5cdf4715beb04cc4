#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "launcher/plan/options.h"
#include "runtime/base/units.h"

namespace dstrain::launcher {

/// Launch options as typed whose values need more than a conversion: check_options() makes
/// LaunchOptions of them.
struct RawOptions {
  int num_nodes = -1;
  int num_gpus = -1;
  int node_rank = -1;
  std::string ssh_command;
  std::string launcher_args;
  std::optional<std::string> port_range;
  bool no_ssh_check = false;  ///< every connection is a check
  std::optional<std::string> device_memory;
  std::optional<std::string> host_memory;
  std::optional<std::string> core_list;
  bool quiet = false;
  std::optional<int> max_restarts;
  bool elastic_training = false;
  int min_elastic_nodes = -1;
  int max_elastic_nodes = -1;
};

/// The words that a launch option takes, "--device"; empty: others, too, or none.
std::span<const std::string_view> launch_option_choices(std::string_view option);

/// Checks the values and combinations of options, and stores the raw ones in `options`. Throws
/// Error{usage} that names the option and what to do.
void check_options(LaunchOptions& options, const RawOptions& raw);

/// Parses "2GiB", the value of a memory option. Throws Error{usage} that names the option.
Bytes parse_budget(const char* option, const std::string& text);

}  // namespace dstrain::launcher
