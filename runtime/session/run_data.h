#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/train_options.h"
#include "runtime/config/train_settings.h"
#include "runtime/data/choice_questions.h"
#include "runtime/data/sample_order.h"
#include "runtime/data/sample_source.h"
#include "runtime/model/model.h"

namespace dstrain::session {

/// The data of a run, opened.
struct RunData {
  std::shared_ptr<const data::SampleSource> training_data;    ///< null: no training
  std::shared_ptr<const data::SampleSource> validation_data;  ///< null: no evaluation
  std::shared_ptr<const data::ChoiceQuestions> questions;     ///< null: none are asked
  std::int64_t training_samples = 0;                          ///< of an epoch: the first ones
  data::SampleRange validation_samples;
  /// What the tokens of text are known by (`data::TextEncoder::identity`); empty: no text is read.
  std::string text_encoder;
  std::string record_options{};  ///< `data::describe(RecordOptions)`; empty: the defaults
  bool encloses_texts = false;   ///< its tokenizer puts tokens before or behind a text by itself
  bool ends_records = false;  ///< and does not end it, so that a record gets an end-of-text token
  /// Of a tokenizer that is not the model's own, below the vocabulary; none: the model's hold.
  std::optional<model::TextTokens> text_tokens;
  std::vector<std::string> notes;  ///< what was done that was not asked for, a line each
};

/// Opens what the settings name, of which tokenizer and block_size are decided; several files
/// become a mixture. Only what trains or is evaluated is opened. Ids must be below the model's
/// vocabulary. `no_chat_template` says why text that is read as bytes has none; empty: bytes were
/// meant. Throws Error{input, io}.
RunData open_data(const config::TrainSettings& settings,
                  const model::Model& model,
                  const std::string& no_chat_template);

/// Throws Error{usage} where an option wants other tokens to be learned than the records of its
/// file say: --stage pt of conversations.
void refuse_unlearned(const RunData& run, const config::TrainOptions& options);

/// The held-out data, to know it again; empty without any.
std::string describe_held_out(const RunData& run);
/// The digest of its content and, of records, whether they are packed.
std::string describe_held_out_content(const RunData& run);

/// The length in a frame of a sequence of `tokens`, of at most `most`: frames of few lengths serve
/// for sequences of all.
std::int64_t padded_length(std::int64_t tokens, std::int64_t most);

/// Settles the tokens of a sequence: --block_size, else min(1024, the model's positions), as
/// run_clm, or for questions all of these; of an encoder-decoder --max_target_length and
/// --max_source_length, else 128 and 1024, as run_translation. Throws Error{usage} for more than
/// the positions, or what the model has not.
void settle_lengths(config::DataSettings& data, const model::Model& model);

}  // namespace dstrain::session
