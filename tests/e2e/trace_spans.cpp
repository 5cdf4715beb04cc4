#include "tests/e2e/trace_spans.h"

#include <algorithm>

namespace dstrain::test {

using nlohmann::json;

std::map<std::pair<int, int>, TraceSpans> spans_by_thread(const json& trace) {
  std::map<std::pair<int, int>, TraceSpans> threads;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") threads[{event.at("pid"), event.at("tid")}].push_back(event);
  }
  for (auto& [thread, spans] : threads) {
    std::stable_sort(spans.begin(), spans.end(), [](const json& a, const json& b) {
      const double begin_a = a.at("ts");
      const double begin_b = b.at("ts");
      return begin_a < begin_b || (begin_a == begin_b && a.at("dur") > b.at("dur"));
    });
  }
  return threads;
}

TraceSpans spans_of(const json& trace, int rank, const std::string& lane) {
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name" && event.at("pid") == rank &&
        event.at("args").at("name") == lane) {
      return spans_by_thread(trace)[{rank, event.at("tid")}];
    }
  }
  return {};
}

double end_of(const json& span) {
  return span.at("ts").get<double>() + span.at("dur").get<double>();
}

bool nested(const TraceSpans& spans) {
  std::vector<double> open;
  for (const json& span : spans) {
    const double begin = span.at("ts");
    const double end = end_of(span);
    while (!open.empty() && open.back() <= begin + trace_rounding) open.pop_back();
    if (!open.empty() && end > open.back() + trace_rounding) return false;
    open.push_back(end);
  }
  return true;
}

std::int64_t count(const TraceSpans& spans, const std::string& activity) {
  return std::ranges::count_if(spans, [&](const json& span) { return span.at("cat") == activity; });
}

}  // namespace dstrain::test
