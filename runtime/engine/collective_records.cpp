#include "runtime/engine/collective_records.h"

namespace dstrain::engine {
namespace {

using comm::Operation;
using profile::Activity;

Activity activity_of(Operation operation) {
  switch (operation) {
    case Operation::all_gather:
      return Activity::all_gather;
    case Operation::reduce_scatter:
      return Activity::reduce_scatter;
    case Operation::all_reduce:
      return Activity::all_reduce;
    case Operation::all_to_all:
      return Activity::all_to_all;
    case Operation::broadcast:
      return Activity::broadcast;
    case Operation::send:
      return Activity::send;
    case Operation::receive:
      return Activity::receive;
    default:
      fail(ErrorCode::internal, "{} is no collective of tensors", comm::name_of(operation));
  }
}

Bytes bytes_of(const comm::Call& call) {
  return call.numel * size_of(call.dtype);
}

}  // namespace

void CollectiveRecords::begin(const comm::Call& call) {
  if (timeline_ != nullptr) begin_ = timeline_->now();
  if (progress_ == nullptr) return;
  progress_->begin_operation({.name = comm::name_of(call.operation),
                              .numel = call.numel,
                              .dtype = name_of(call.dtype),
                              .peer = comm::has_peer(call.operation) ? call.peer : -1});
}

void CollectiveRecords::end(const comm::Call& call) {
  if (progress_ != nullptr) progress_->end_operation();
  if (timeline_ == nullptr || timeline_->has_device()) return;
  timeline_->record(profile::Lane::communication,
                    {begin_, timeline_->now(), bytes_of(call), activity_of(call.operation)});
}

void CollectiveRecords::launch(const comm::Call& call, StreamView stream) {
  if (timeline_ == nullptr) return;
  timeline_->open_range(activity_of(call.operation), bytes_of(call));
  if (timeline_->times(stream)) launch_ = timeline_->begin_on(stream);
}

void CollectiveRecords::launched(const comm::Call& call, StreamView stream) {
  if (timeline_ == nullptr) return;
  timeline_->close_range();
  if (!timeline_->times(stream)) return;
  timeline_->end_on(stream, profile::Lane::communication,
                    {activity_of(call.operation), bytes_of(call), launch_});
}

}  // namespace dstrain::engine
