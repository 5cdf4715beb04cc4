#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"

namespace dstrain {

namespace env {
/// Set from --port_range.
inline constexpr const char* port_range = "DSTRAIN_PORT_RANGE";
}  // namespace env

/// The ports at which a job's processes may listen, such as those that a firewall admits.
struct PortRange {
  int first = 1;
  int last = 65535;
};

/// Parses "40000-40099"; the other function is the inverse.
Result<PortRange> parse_port_range(std::string_view text);
std::string to_string(const PortRange& range);

/// Reads DSTRAIN_PORT_RANGE; none if it is not set. Throws Error{usage}.
std::optional<PortRange> read_port_range();

/// Listens as listen_tcp(), at the first free port of the range; without a range at a port that the
/// kernel chooses.
Result<UniqueFd> listen_within(const std::string& host, const std::optional<PortRange>& range);

}  // namespace dstrain
