#include "launcher/protocol/rank_look.h"

#include <algorithm>
#include <array>

#include "launcher/protocol/wire.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t look_bytes = 100;  // of a rank, at least

template <std::size_t size>
void get_text(WireReader& in, std::array<char, size>& text) {
  const std::string_view bytes = in.string();
  std::copy_n(bytes.begin(), std::min(bytes.size(), size), text.begin());
}

void put(WireWriter& out, const ComputeState& state) {
  out.u64(state.changes);
  out.i64(state.step);
  out.i64(state.since_ns);
  out.i32(state.unit);
  out.i32(state.thread);
  out.u8(static_cast<std::uint8_t>(state.phase));
  out.u8(static_cast<std::uint8_t>(state.work));
}

void get(WireReader& in, ComputeState& state) {
  state.changes = in.u64();
  state.step = in.i64();
  state.since_ns = in.i64();
  state.unit = in.i32();
  state.thread = in.i32();
  state.phase = static_cast<RunPhase>(in.u8());
  state.work = static_cast<Work>(in.u8());
}

void put(WireWriter& out, const CollectiveState& state) {
  out.u64(state.sequence);
  out.i64(state.since_ns);
  out.i64(state.numel);
  out.string(text_of(state.operation));
  out.string(text_of(state.dtype));
  out.i32(state.peer);
  out.i32(state.thread);
  out.u8(state.inside);
}

void get(WireReader& in, CollectiveState& state) {
  state.sequence = in.u64();
  state.since_ns = in.i64();
  state.numel = in.i64();
  get_text(in, state.operation);
  get_text(in, state.dtype);
  state.peer = in.i32();
  state.thread = in.i32();
  state.inside = in.u8();
}

void put(WireWriter& out, const SaveState& state) {
  out.u64(state.changes);
  out.i64(state.since_ns);
  out.i32(state.thread);
  out.u8(state.busy);
}

void get(WireReader& in, SaveState& state) {
  state.changes = in.u64();
  state.since_ns = in.i64();
  state.thread = in.i32();
  state.busy = in.u8();
}

}  // namespace

std::string encode_look(const AgentLook& look) {
  WireWriter out;
  out.i64(look.now_ns);
  out.u32(static_cast<std::uint32_t>(look.seconds * 1000));
  out.count(look.ranks.size());
  for (const RankLook& rank : look.ranks) {
    out.i32(rank.rank);
    out.u8(static_cast<std::uint8_t>(rank.state));
    out.u8(static_cast<std::uint8_t>(rank.save_state));
    put(out, rank.progress.compute);
    put(out, rank.progress.collective);
    put(out, rank.progress.save);
  }
  return out.take();
}

AgentLook decode_look(std::string_view payload) {
  WireReader in(payload);
  AgentLook look;
  look.now_ns = in.i64();
  look.seconds = in.u32() / 1000.0;
  look.ranks.resize(in.count(look_bytes));
  for (RankLook& rank : look.ranks) {
    rank.rank = in.i32();
    rank.state = static_cast<char>(in.u8());
    rank.save_state = static_cast<char>(in.u8());
    get(in, rank.progress.compute);
    get(in, rank.progress.collective);
    get(in, rank.progress.save);
  }
  in.finish();
  return look;
}

std::string encode_stacks(const Stacks& stacks) {
  WireWriter out;
  out.u32(stacks.request);
  out.string(stacks.text);
  return out.take();
}

Stacks decode_stacks(std::string_view payload) {
  WireReader in(payload);
  Stacks stacks;
  stacks.request = in.u32();
  stacks.text = in.string();
  in.finish();
  return stacks;
}

}  // namespace dstrain::launcher
