#include "runtime/engine/profile_report.h"

#include <array>
#include <string>
#include <vector>

#include "runtime/profile/chrome_trace.h"

namespace dstrain::engine {
namespace {

using profile::RankProfile;

/// What precedes a rank's spans and steps.
struct Header {
  std::array<std::int64_t, profile::lane_count> spans{};
  std::int64_t steps = 0;
  std::int64_t spans_lost = 0;
  profile::StepTimes total;
};

RankProfile own_profile(const profile::Timeline& timeline) {
  RankProfile own;
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    own.lanes.at(lane) = timeline.spans(static_cast<profile::Lane>(lane));
    own.spans_lost += timeline.spans_lost(static_cast<profile::Lane>(lane));
  }
  own.steps = timeline.steps().kept();
  own.total = timeline.total();
  return own;
}

template <class T>
TensorView bytes_of(std::vector<T>& values) {
  return {values.data(), DType::u8, {static_cast<std::int64_t>(values.size() * sizeof(T))}};
}

void send_profile(RankProfile own, comm::Communicator& communicator, StreamView stream) {
  std::vector<Header> header(1);
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    header[0].spans.at(lane) = static_cast<std::int64_t>(own.lanes.at(lane).size());
  }
  header[0].steps = static_cast<std::int64_t>(own.steps.size());
  header[0].spans_lost = own.spans_lost;
  header[0].total = own.total;
  communicator.send(bytes_of(header), 0, stream);
  for (auto& spans : own.lanes) communicator.send(bytes_of(spans), 0, stream);
  communicator.send(bytes_of(own.steps), 0, stream);
  stream.synchronize();
}

RankProfile receive_profile(int rank, comm::Communicator& communicator, StreamView stream) {
  std::vector<Header> header(1);
  communicator.receive(bytes_of(header), rank, stream);
  stream.synchronize();
  RankProfile profile;
  profile.total = header[0].total;
  profile.spans_lost = header[0].spans_lost;
  for (std::size_t lane = 0; lane < profile::lane_count; ++lane) {
    profile.lanes.at(lane).resize(static_cast<std::size_t>(header[0].spans.at(lane)));
    communicator.receive(bytes_of(profile.lanes.at(lane)), rank, stream);
  }
  profile.steps.resize(static_cast<std::size_t>(header[0].steps));
  communicator.receive(bytes_of(profile.steps), rank, stream);
  stream.synchronize();
  return profile;
}

}  // namespace

void write_profile(const profile::Timeline& timeline,
                   const model::Model& model,
                   comm::Communicator& communicator,
                   const std::filesystem::path& path,
                   StreamView stream) {
  if (communicator.rank() != 0) {
    send_profile(own_profile(timeline), communicator, stream);
    return;
  }
  std::vector<std::string> units;
  for (const auto& unit : model.units) units.push_back(unit->spec().name);
  profile::ChromeTrace trace(path, std::move(units));
  trace.add_rank(0, own_profile(timeline));
  for (int rank = 1; rank < communicator.size(); ++rank) {
    trace.add_rank(rank, receive_profile(rank, communicator, stream));
  }
  trace.finish();
}

}  // namespace dstrain::engine
