#include "runtime/profile/chrome_trace.h"

#include <cerrno>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/os/shared_place.h"

namespace dstrain::profile {
namespace {

constexpr double microseconds = 1e6;  // Chrome's unit

/// Names the unit of a span's detail; empty: nothing to show.
std::string_view detail_name(Activity activity) {
  const bool moves = activity >= Activity::read && activity <= Activity::copy;
  if (moves || (activity >= Activity::all_gather && activity <= Activity::receive)) return "bytes";
  if (activity == Activity::update) return "segment";
  return {};
}

nlohmann::ordered_json sums(const StepTimes& times) {
  return {{"seconds", times.seconds},
          {"compute_seconds", times.compute},
          {"communication_seconds", times.communication},
          {"exposed_communication_seconds", times.exposed},
          {"disk_read_seconds", times.reading},
          {"disk_write_seconds", times.writing},
          {"early_update_seconds", times.early_updates},
          {"optimizer_step",
           {{"seconds", times.optimizer.seconds},
            {"update_seconds", times.optimizer.update},
            {"disk_read_seconds", times.optimizer.reading},
            {"disk_write_seconds", times.optimizer.writing}}}};
}

std::string metadata_of(int rank, const RankProfile& profile) {
  nlohmann::ordered_json object{{"rank", rank}, {"steps", profile.total.step}};
  object.update(sums(profile.total));
  object["spans_lost"] = profile.spans_lost;
  if (profile.clock_error_seconds) {
    object["device_clock_error_seconds"] = *profile.clock_error_seconds;
  }
  object["per_step"] = nlohmann::ordered_json::array();
  for (const StepTimes& step : profile.steps) {
    nlohmann::ordered_json row{{"step", step.step}};
    row.update(sums(step));
    object["per_step"].push_back(std::move(row));
  }
  return object.dump();
}

std::string name_event(std::string_view what, int rank, std::size_t lane, const std::string& name) {
  return nlohmann::ordered_json{
      {"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", lane}, {"args", {{"name", name}}}}
      .dump();
}

}  // namespace

ChromeTrace::ChromeTrace(std::filesystem::path path, std::vector<std::string> units)
    : path_(std::move(path)), units_(std::move(units)) {
  const UniqueFd opened = open_to_append(path_, Content::drop);
  file_.open(fmt::format("/proc/self/fd/{}", opened.get()));
  if (!file_) fail_errno(errno, "create " + path_.string());
  file_ << R"({"displayTimeUnit":"ms","traceEvents":[)";
}

void ChromeTrace::add_event(const std::string& json) {
  file_ << (first_event_ ? "\n" : ",\n") << json;
  first_event_ = false;
}

void ChromeTrace::add_rank(int rank, const RankProfile& profile) {
  add_event(name_event("process_name", rank, 0, fmt::format("rank {}", rank)));
  const std::size_t lanes = profile.clock_error_seconds ? lane_count : host_lane_count;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    add_event(name_event("thread_name", rank, lane, std::string(lane_names.at(lane))));
    for (const Span& span : profile.lanes.at(lane)) {
      const std::string_view detail = detail_name(span.activity);
      const std::string arguments =
          detail.empty() ? "" : fmt::format(R"(,"args":{{"{}":{}}})", detail, span.detail);
      add_event(fmt::format(
          R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}{}}})",
          nlohmann::json(label(span.activity, span.detail, units_)).dump(), name_of(span.activity),
          rank, lane, span.begin * microseconds, span.seconds() * microseconds, arguments));
    }
  }
  for (const GpuSample& sample : profile.gpu_samples) {
    nlohmann::ordered_json values;  // only what the GPU reports
    if (sample.watts) values["watts"] = std::round(*sample.watts * 10) / 10;
    if (sample.busy_percent) values["busy_percent"] = *sample.busy_percent;
    if (values.empty()) continue;
    add_event(fmt::format(R"({{"ph":"C","name":"GPU","pid":{},"ts":{:.3f},"args":{}}})", rank,
                          sample.at * microseconds, values.dump()));
  }
  ranks_.push_back(metadata_of(rank, profile));
}

void ChromeTrace::finish() {
  file_ << fmt::format("\n],\"metadata\":{{\"ranks\":[\n{}\n]}}}}\n", fmt::join(ranks_, ",\n"));
  file_.close();
  if (!file_) fail_errno(errno, "write " + path_.string());
}

}  // namespace dstrain::profile
