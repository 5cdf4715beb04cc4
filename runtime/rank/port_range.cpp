#include "runtime/rank/port_range.h"

#include <cstdlib>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/os/socket.h"

namespace dstrain {

Result<PortRange> parse_port_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_number<int>(text.substr(0, dash));
  const auto last = dash == text.npos ? first : parse_number<int>(text.substr(dash + 1));
  if (first && last && *first >= 1 && *first <= *last && *last <= 65535) {
    return PortRange{*first, *last};
  }
  return Failure{fmt::format("must be FIRST-LAST, ports of 1..65535, got \"{}\"", text)};
}

std::string to_string(const PortRange& range) {
  return fmt::format("{}-{}", range.first, range.last);
}

std::optional<PortRange> read_port_range() {
  const char* const text = std::getenv(env::port_range);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const Result<PortRange> range = parse_port_range(text);
  if (!range.ok())
    fail(ErrorCode::usage, "environment variable {}: {}", env::port_range, range.error());
  return range.value();
}

Result<UniqueFd> listen_within(const std::string& host, const std::optional<PortRange>& range) {
  if (!range) return listen_tcp({host, 0});
  for (int port = range->first; port <= range->last; ++port) {
    Result<UniqueFd> listener = listen_tcp({host, port});
    if (listener.ok() || !listener.failure().passing) return listener;
  }
  return Failure{fmt::format("no port of {} is free at {}: widen --port_range ({})",
                             to_string(*range), host, env::port_range)};
}

}  // namespace dstrain
