#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// Reads a file in which the kernel says something, such as /proc/meminfo; none when it cannot be
/// read.
using KernelText = FunctionRef<std::optional<std::string>(const std::string& path)>;

/// The control groups by which a controller limits this process.
struct ControlGroups {
  bool version_1 = false;
  std::vector<std::string> directories;  ///< its own first, then each above it up to the root
};

/// `controller`: "memory", "cpu" or "pids". A directory need not be there: within a container the
/// group's path is often the host's, and its root is the container's group.
ControlGroups control_groups(std::string_view controller, KernelText text);

/// Cores of the smallest CPU quota of the groups; none where none is set.
std::optional<double> quota_cores(KernelText text);

/// As many of `cores` as the CPU quotas of this process's groups allow, rounded up.
int cores_within_quota(int cores);

/// The cores that this process may use: its affinity, within those quotas.
int usable_cores();

/// The text of a file of this machine's kernel, which is a KernelText by way of a lambda.
std::optional<std::string> kernel_text(const std::string& path);

}  // namespace dstrain
