// Texts of a generator: the same whatever a slot held before.
#include "runtime/engine/generator.h"

#include "runtime/comm/control/shared_control_group.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/model/hf_import.h"
#include "tests/engine/decoder_families.h"
#include "tests/support/catch.h"
#include "tests/support/whole_store.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using engine::Generator;
using test::Tokens;

class Collector final : public engine::TextListener {
 public:
  Answer add(std::size_t index, std::int32_t token) override {
    texts.resize(std::max(texts.size(), index + 1));
    texts[index].push_back(token);
    return Answer::goes_on;
  }
  void end(std::size_t /*index*/, engine::FinishReason /*reason*/) override {}
  std::vector<Tokens> texts;
};

/// Generates the texts one after another in one slot.
std::vector<Tokens> generate(const fs::path& folder,
                             const std::string& overrides,
                             const std::vector<engine::TextRequest>& requests,
                             Generator::Cache cache) {
  const model::Model model = test::golden_model(folder, overrides);
  test::WholeStore store(model, 0);
  store.read(model, model::HfWeights(folder.string(), model.parameters(), model.hf_names));
  HostMemory memory;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  engine::Decoder decoder({model, store, memory, memory},
                          {.slots = 1,
                           .positions = std::min<std::int64_t>(model.positions, 400),
                           .chunk = 16,
                           .source = model.pairs ? 20 : 0},
                          stream);
  const auto control = comm::make_thread_control_groups(1);
  Generator generator(decoder, {.choice = {}, .cache = cache}, *control.front());
  Collector collector;
  generator.run(requests, collector);
  return collector.texts;
}

}  // namespace

TEST_CASE("Generator: a text that begins as the last one goes on from its cache", "[engine]") {
  struct Row {
    const char* folder;
    const char* overrides;
  };
  const Row row =
      GENERATE(values<Row>({{"model", ""},
                            {"families/llama3", "max_position_embeddings=400"},
                            {"families/mistral", "max_position_embeddings=400"},
                            {"families/mistral", "max_position_embeddings=400,sliding_window=70"},
                            {"families/qwen2", "max_position_embeddings=400"},
                            {"families/phi3_longrope", "max_position_embeddings=400"},
                            {"pairs/t5", ""}}));
  CAPTURE(row.folder, row.overrides);
  const fs::path folder = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden" / row.folder;
  const Tokens begin{5, 17, 3, 44, 9, 21, 30, 2, 11, 8};
  std::vector<engine::TextRequest> requests;
  for (const std::int64_t news : {3, 150, 20, 90}) {
    Tokens prompt = begin;
    prompt.push_back(static_cast<std::int32_t>(news % 50));
    requests.push_back({prompt, news});
    requests.push_back({prompt, 12});
    // The same without its last token, which runs anew.
    prompt.pop_back();
    requests.push_back({prompt, 12});
  }
  CHECK((generate(folder, row.overrides, requests, Generator::Cache::reused) ==
         generate(folder, row.overrides, requests, Generator::Cache::fresh)));
}

}  // namespace dstrain
