// The memory of units with smaller shapes than that of their plan.
#include <filesystem>
#include <map>

#include "runtime/model/loss_unit.h"
#include "runtime/model/recorded_unit.h"
#include "tests/engine/decoder_families.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using model::BatchShape;

/// Bytes of each buffer of a unit's forward, but inputs and outputs.
std::vector<Bytes> own_bytes(const model::UnitRecord& record,
                             const model::UnitPlan& plan,
                             BatchShape shape) {
  using Content = model::UnitBuffer::Content;
  std::vector<Bytes> bytes;
  for (const model::UnitBuffer& buffer : plan.buffers) {
    const bool saved = buffer.kind == model::UnitBuffer::Kind::saved;
    const bool works =
        buffer.kind == model::UnitBuffer::Kind::workspace && buffer.first < plan.forward_steps;
    if (!saved && !works) continue;
    const std::int64_t numel = model::shape_of(record, buffer, shape).numel();
    const DType dtype = buffer.content == Content::value  ? record.value(buffer.owner).dtype
                        : buffer.content == Content::kept ? DType::f32
                                                          : DType::u8;
    bytes.push_back(numel * size_of(dtype));
  }
  return bytes;
}

/// The same of any unit; one that computes the loss has a row for each sequence.
std::vector<Bytes> own_bytes(const model::Unit& unit, BatchShape shape) {
  if (const auto* const loss = dynamic_cast<const model::LossUnit*>(&unit)) {
    return own_bytes(loss->record(), loss->steps(), {1, shape.sequences});
  }
  const auto& recorded = dynamic_cast<const model::RecordedUnit&>(unit);
  return own_bytes(recorded.record(), recorded.steps(), shape);
}

/// "" if no buffer of any unit is larger for `less` than for `more`, which has room for it.
std::string growth(const model::Model& model, BatchShape less, BatchShape more) {
  for (const auto& unit : model.units) {
    const std::vector<Bytes> some = own_bytes(*unit, less);
    const std::vector<Bytes> all = own_bytes(*unit, more);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (some[i] <= all[i]) continue;
      return fmt::format(
          "{}: buffer {} has {} bytes for {} sequences of {} and {}, and {} for {} "
          "of {} and {}",
          unit->spec().name, i, some[i], less.sequences, less.tokens, less.source, all[i],
          more.sequences, more.tokens, more.source);
    }
  }
  return "";
}

/// Looks at the shapes for which a decoder with `positions` has plans.
void check_rooms(const model::Model& model, std::int64_t positions, std::int64_t most) {
  std::vector<std::string> found;
  const auto look = [&](BatchShape less, BatchShape more) {
    std::string problem = growth(model, less, more);
    if (!problem.empty()) found.push_back(std::move(problem));
  };
  for (std::int64_t slots = 1; slots <= 40; ++slots) {
    for (std::int64_t some = 1; some <= slots; ++some) {
      look({some, 1, 0, positions}, {slots, 1, 0, positions});
    }
  }
  for (std::int64_t tokens = 1; tokens <= most; ++tokens) {
    for (const std::int64_t room :
         {tokens <= 16 ? std::int64_t{16} : round_up(tokens, 64), tokens + 1, most}) {
      if (model.pairs) {
        look({1, 1, tokens, 0}, {1, 1, std::max(room, tokens), 0});
        continue;
      }
      for (const std::int64_t context : {std::int64_t{0}, positions}) {
        look({1, tokens, 0, context}, {1, std::max(room, tokens), 0, context});
      }
    }
  }
  found.resize(std::min<std::size_t>(found.size(), 3));
  CHECK(found == std::vector<std::string>());
}

}  // namespace

TEST_CASE("Decoder: a smaller shape fits into each buffer of a plan for every family", "[engine]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t in_splits = GENERATE(1, 3);
  for (const fs::path& folder : test::golden_families()) {
    CAPTURE(folder.filename().string(), name_of(dtype), in_splits);
    const model::Model model =
        test::golden_model(folder, "", {.dtype = dtype, .in_splits = in_splits});
    check_rooms(model, 64, 64);
  }
}

TEST_CASE("Decoder: a smaller shape fits into each buffer of a plan for wide models", "[engine]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  struct Row {
    const char* folder;
    const char* overrides;
  };
  const Row row = GENERATE(
      values<Row>({{"model", "n_embd=1280,n_head=20,n_layer=1,n_positions=600"},
                   {"families/llama3",
                    "hidden_size=2048,intermediate_size=5632,num_hidden_layers=1,"
                    "num_attention_heads=32,num_key_value_heads=4,vocab_size=32000"},
                   {"families/mistral",
                    "hidden_size=4096,intermediate_size=11008,num_hidden_layers=1,head_dim=128,"
                    "num_attention_heads=32,num_key_value_heads=1,sliding_window=100"}}));
  CAPTURE(row.folder, name_of(dtype));
  const fs::path golden = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  check_rooms(test::golden_model(golden / row.folder, row.overrides, {.dtype = dtype}), 600, 512);
}

}  // namespace dstrain
