#pragma once
#include <span>
#include <string>
#include <vector>

#include "cmd/prompts.h"
#include "cmd/text_setup.h"

namespace dstrain::cmd {

/// What `generate` needs, checked: every mistake in options, prompts and model directory is found
/// while making it.
struct GenerateSetup {
  TextSetup texts;
  /// Several for a prompt follow each other; a beam search has one.
  std::vector<engine::TextRequest> requests;
  std::string output_file;  ///< empty: stdout
  std::size_t done = 0;     ///< texts that an output file has already
  bool streams = false;     ///< the text is printed as it grows
  std::string mode;         ///< how tokens are chosen, for people

  [[nodiscard]] std::size_t texts_per_request() const {
    return static_cast<std::size_t>(texts.choice.beam.num_return_sequences);
  }
  [[nodiscard]] std::size_t text_count() const { return requests.size() * texts_per_request(); }
  /// Requests all of whose texts are done.
  [[nodiscard]] std::size_t done_requests() const { return done / texts_per_request(); }
};

/// Returns all of stdin if `arguments` say --prompt -, else nothing. Throws Error{usage} for wrong
/// arguments or too much text, Error{io}.
std::string read_generate_input(std::span<const std::string> arguments);

/// `arguments`: what follows `generate`. `input`: what read_generate_input() has read. Throws
/// Error{usage}, Error{config} or Error{input}.
GenerateSetup set_up_generation(std::span<const std::string> arguments,
                                const std::string& input,
                                const TrainPlace& place);

std::string generate_help();

/// What makes it take less memory.
session::Remedies generate_remedies();

}  // namespace dstrain::cmd
