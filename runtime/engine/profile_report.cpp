#include "runtime/engine/profile_report.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/profile/chrome_trace.h"

namespace dstrain::engine {
namespace {

using profile::RankProfile;

/// The header of a rank's spans and steps.
struct Header {
  std::array<std::int64_t, profile::lane_count> spans{};
  std::int64_t steps = 0;
  std::int64_t gpu_samples = 0;
  std::int64_t spans_lost = 0;
  profile::StepTimes total;
  std::optional<double> clock_error_seconds;
};

RankProfile own_profile(const profile::Timeline& timeline) {
  RankProfile own;
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    own.lanes.at(lane) = timeline.spans(static_cast<profile::Lane>(lane));
    own.spans_lost += timeline.spans_lost(static_cast<profile::Lane>(lane));
  }
  own.steps = timeline.steps().kept();
  own.gpu_samples = timeline.gpu_samples().kept();
  own.total = timeline.total();
  own.clock_error_seconds = timeline.clock_error_seconds();
  return own;
}

template <class T>
void append(std::string& text, const T* values, std::size_t count) {
  text.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

template <class T>
void take(std::string_view& text, T* values, std::size_t count) {
  text.copy(reinterpret_cast<char*>(values), count * sizeof(T));
  text.remove_prefix(count * sizeof(T));
}

std::string encode(const RankProfile& profile) {
  Header header{.steps = std::ssize(profile.steps),
                .gpu_samples = std::ssize(profile.gpu_samples),
                .spans_lost = profile.spans_lost,
                .total = profile.total,
                .clock_error_seconds = profile.clock_error_seconds};
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    header.spans.at(lane) = std::ssize(profile.lanes.at(lane));
  }
  std::string text;
  append(text, &header, 1);
  for (const auto& spans : profile.lanes) append(text, spans.data(), spans.size());
  append(text, profile.steps.data(), profile.steps.size());
  append(text, profile.gpu_samples.data(), profile.gpu_samples.size());
  return text;
}

RankProfile decode(std::string_view text) {
  Header header;
  take(text, &header, 1);
  RankProfile profile;
  profile.total = header.total;
  profile.spans_lost = header.spans_lost;
  profile.clock_error_seconds = header.clock_error_seconds;
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    auto& spans = profile.lanes.at(lane);
    spans.resize(static_cast<std::size_t>(header.spans.at(lane)));
    take(text, spans.data(), spans.size());
  }
  profile.steps.resize(static_cast<std::size_t>(header.steps));
  take(text, profile.steps.data(), profile.steps.size());
  profile.gpu_samples.resize(static_cast<std::size_t>(header.gpu_samples));
  take(text, profile.gpu_samples.data(), profile.gpu_samples.size());
  return profile;
}

/// Sends the profile of `rank` to rank 0.
std::string tell_profile(const profile::Timeline& timeline, int rank, comm::ControlGroup& control) {
  return control.broadcast(control.rank() == rank ? encode(own_profile(timeline)) : "", rank);
}

}  // namespace

std::vector<std::string> unit_names(const model::Model& model) {
  std::vector<std::string> names;
  for (const auto& unit : model.units) names.push_back(unit->spec().name);
  return names;
}

void write_profile(profile::Timeline& timeline,
                   const model::Model& model,
                   comm::ControlGroup& control,
                   const std::filesystem::path& path) {
  timeline.catch_up();
  std::optional<profile::ChromeTrace> trace;
  if (control.rank() == 0) {
    trace.emplace(path, unit_names(model));
    trace->add_rank(0, own_profile(timeline));
  }
  for (int rank = 1; rank < control.size(); ++rank) {
    const std::string told = tell_profile(timeline, rank, control);
    if (trace) trace->add_rank(rank, decode(told));
  }
  if (trace) trace->finish();
}

}  // namespace dstrain::engine
