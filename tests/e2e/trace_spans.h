#pragma once
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dstrain::test {

/// Spans of one lane of one rank of a Chrome trace, in order of their beginning, longest first.
using TraceSpans = std::vector<nlohmann::json>;

/// By rank and lane, which are process and thread of the trace.
std::map<std::pair<int, int>, TraceSpans> spans_by_thread(const nlohmann::json& trace);

/// Of the lane of that name; none, where the trace has no such lane.
TraceSpans spans_of(const nlohmann::json& trace, int rank, const std::string& lane);

/// Whether every span lies within the ones that are open when it begins.
bool nested(const TraceSpans& spans);

/// How many are of that activity.
std::int64_t count(const TraceSpans& spans, const std::string& activity);

/// In microseconds.
double end_of(const nlohmann::json& span);
/// What of the ends and beginnings the file leaves out, in microseconds.
inline constexpr double trace_rounding = 0.002;

}  // namespace dstrain::test
