// write_checkpoint MODEL_DIR OUTPUT_DIR RANKS: OUTPUT_DIR/checkpoint-1 of the model in a Hugging
// Face directory, as that many ranks write it.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "tests/support/model_checkpoint.h"

int main(int argc, char** argv) {
  using namespace dstrain;
  if (argc != 4) {
    fmt::print(stderr, "usage: write_checkpoint MODEL_DIR OUTPUT_DIR RANKS\n");
    return 2;
  }
  const model::Model model = model::load_stored_config(argv[1])->make();
  const std::vector<model::ParameterSpec> parameters = model.parameters();
  const model::HfWeights weights(argv[1], parameters, model.hf_names);
  const auto saved = test::write_model_checkpoint(
      argv[2], {.step = 1, .world = std::stoi(argv[3]), .config_json = model.config_json},
      parameters, weights);
  fmt::print("{}\n", saved.string());
}
