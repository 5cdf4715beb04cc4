#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// Reads a file of the kernel, such as /proc/meminfo; none if it cannot be read.
using KernelText = FunctionRef<std::optional<std::string>(const std::string& path)>;

/// The control groups with which a controller limits this process.
struct ControlGroups {
  bool version_1 = false;
  std::vector<std::string> directories;  ///< its own first, then each parent up to the root
};

/// `controller`: "memory", "cpu" or "pids". A directory may not exist: in a container the group's
/// path is often the host's, and its root is the container's group.
ControlGroups control_groups(std::string_view controller, KernelText text);

/// Returns the cores of the smallest CPU quota of the groups; none if there is no quota.
std::optional<double> quota_cores(KernelText text);

/// Limits `cores` to the CPU quotas of this process's groups, rounded up.
int cores_within_quota(int cores);

/// Returns the number of cores that this process may use: its affinity, within those quotas.
int usable_cores();

/// Returns the text of a kernel file of this machine, for use as KernelText in a lambda.
std::optional<std::string> kernel_text(const std::string& path);

}  // namespace dstrain
