#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/text_encoder.h"
#include "runtime/engine/generator.h"
#include "runtime/session/run_setup.h"

namespace dstrain::cmd {

/// What `generate` needs, checked: every mistake in options or model directory is found while
/// making it.
struct GenerateSetup {
  std::unique_ptr<data::TextEncoder> encoder;
  std::vector<std::int32_t> prompt;  ///< its tokens, with what begins every text
  std::int64_t given = 0;  ///< tokens that the text begins with: the prompt's; of a target one
  engine::SamplingOptions sampling;
  session::RunSetup run;              ///< without its memory
  bool knows_tokens = false;          ///< the model is known to have learnt this tokenizer's
  std::string mode;                   ///< how tokens are chosen, for people
  std::vector<std::string> warnings;  ///< a line each
};

/// The text that `generate` reads from stdin: all of it where `arguments` say --prompt -, else
/// nothing. Throws Error{usage} for wrong arguments or too much text, Error{io}.
std::string read_generate_input(std::span<const std::string> arguments);

/// `arguments`: what follows `generate`. `input`: what read_generate_input() has read. `device`:
/// what it computes on. Throws Error{usage} or Error{input}.
GenerateSetup set_up_generation(std::span<const std::string> arguments,
                                const std::string& input,
                                int world_size,
                                DeviceKind device);

/// What `generate --help` prints.
std::string generate_help();

}  // namespace dstrain::cmd
