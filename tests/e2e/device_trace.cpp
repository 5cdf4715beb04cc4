#include "tests/e2e/device_trace.h"

#include <algorithm>
#include <set>

#include "tests/e2e/trace_spans.h"
#include "tests/support/catch.h"

namespace dstrain::test {

using nlohmann::json;

namespace {

const std::set<std::string> work{"forward", "recompute", "backward", "norm", "update"};

bool within(const json& span, const json& whole) {
  return span.at("ts").get<double>() >= whole.at("ts").get<double>() - trace_rounding &&
         end_of(span) <= end_of(whole) + trace_rounding;
}

/// The work of the device in a step, in seconds, without the waits that it encloses.
double work_seconds(const TraceSpans& compute, const json& step) {
  double microseconds = 0;
  const json* open = nullptr;
  for (const json& span : compute) {
    if (!within(span, step)) continue;
    if (work.contains(span.at("cat").get<std::string>())) {
      microseconds += span.at("dur").get<double>();
      open = &span;
    } else if (span.at("cat") == "wait" && open != nullptr && within(span, *open)) {
      microseconds -= span.at("dur").get<double>();
    }
  }
  return microseconds / 1e6;
}

void check_step(const TraceSpans& compute, const json& step, const json& sums, bool host_works) {
  const double seconds = sums.at("seconds");
  const double computed = sums.at("compute_seconds");
  const double communicated = sums.at("communication_seconds");
  const double exposed = sums.at("exposed_communication_seconds");
  CHECK(seconds == Catch::Approx(step.at("dur").get<double>() / 1e6).margin(1e-8));
  if (host_works) {
    CHECK(computed >= work_seconds(compute, step) - 1e-6);
  } else {
    CHECK(computed == Catch::Approx(work_seconds(compute, step)).margin(1e-6));
  }
  CHECK(computed > 0);
  CHECK(communicated > 0);
  CHECK(exposed <= communicated);
  CHECK(computed + exposed <= seconds + 1e-9);
}

void check_rank(const json& trace, int rank, int steps) {
  const TraceSpans compute = spans_of(trace, rank, "compute");
  const TraceSpans host = spans_of(trace, rank, "host");
  CHECK(count(compute, "step") == steps);
  CHECK(count(compute, "optimizer_step") == steps);
  CHECK(count(compute, "backward") > count(compute, "forward"));  // the head has no forward
  CHECK(count(compute, "exchange") == 0);
  CHECK(count(spans_of(trace, rank, "communication"), "exchange") == 0);
  CHECK(count(host, "exchange") >= steps);
  CHECK(count(host, "wait") >= 2 * steps);  // for tokens, and for what is decided on the step
  TraceSpans in_order;
  std::ranges::copy_if(compute, std::back_inserter(in_order),
                       [](const json& span) { return span.at("cat") == "step"; });
  for (const json& span : compute) {
    if (span.at("cat") == "wait" || span.at("cat") == "step") continue;
    CAPTURE(span.dump());
    CHECK(std::ranges::any_of(in_order, [&](const json& step) { return within(span, step); }));
  }
  const json& sums = trace.at("metadata").at("ranks").at(static_cast<std::size_t>(rank));
  CHECK(sums.at("steps") == steps);
  CHECK(sums.at("device_clock_error_seconds") > 0);
  REQUIRE(std::ssize(in_order) == std::ssize(sums.at("per_step")));
  const bool host_works = count(host, "update") + count(host, "norm") > 0;
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const json& of_step = sums.at("per_step").at(i);
    CHECK(in_order[i].at("name") == "step " + of_step.at("step").dump());
    check_step(compute, in_order[i], of_step, host_works);
  }
}

}  // namespace

void check_device_trace(const json& trace, const DeviceTrace& expected) {
  for (const auto& [thread, spans] : spans_by_thread(trace)) {
    CAPTURE(thread.first, thread.second);
    CHECK(nested(spans));
  }
  for (int rank = 0; rank < expected.ranks; ++rank) {
    CAPTURE(rank);
    check_rank(trace, rank, expected.steps);
  }
}

}  // namespace dstrain::test
