#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"

namespace dstrain {

namespace env {
/// As --port_range.
inline constexpr const char* port_range = "DSTRAIN_PORT_RANGE";
}  // namespace env

/// The ports at which a job's processes may listen, as a firewall lets pass.
struct PortRange {
  int first = 1;
  int last = 65535;
};

/// "40000-40099", and of a PortRange that text.
Result<PortRange> parse_port_range(std::string_view text);
std::string to_string(const PortRange& range);

/// DSTRAIN_PORT_RANGE; none where it is not set. Throws Error{usage}.
std::optional<PortRange> read_port_range();

/// As listen_tcp(), at the first port of the range that is free; without a range at any that the
/// kernel chooses.
Result<UniqueFd> listen_within(const std::string& host, const std::optional<PortRange>& range);

}  // namespace dstrain
