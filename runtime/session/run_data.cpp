#include "runtime/session/run_data.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/mixture_samples.h"
#include "runtime/data/open_samples.h"
#include "runtime/data/shard_manifest.h"

namespace dstrain::session {
namespace {

/// A file of a run with its samples.
struct OpenedFile {
  std::shared_ptr<const data::SampleSource> source;
  double weight = 0;
};

data::RecordOptions record_options(const config::DataSettings& data) {
  return {.text_column = data.text_column, .role_names = data.role_names};
}

/// Opens files by one tokenizer, which is made when the first text is met.
class DataOpener {
 public:
  DataOpener(const config::DataSettings& data,
             const model::Model& model,
             const std::string& no_chat_template)
      : data_(data), vocabulary_(model.vocabulary), pairs_(model.pairs) {
    if (!no_chat_template.empty()) encoders_["byte"] = data::make_byte_encoder(no_chat_template);
  }

  std::vector<OpenedFile> open(const std::vector<config::DataFile>& files) {
    std::vector<OpenedFile> opened;
    for (const auto& [path, weight] : files) {
      const bool tokens = pairs_ || data::holds_tokens(path);
      const std::string tokenizer = tokens ? "byte" : data_.tokenizer;
      opened.push_back({data::open_samples(path, encoder(tokenizer), options()), weight});
    }
    return opened;
  }
  [[nodiscard]] std::shared_ptr<const data::ChoiceQuestions> open_questions() {
    return std::make_shared<data::ChoiceQuestions>(
        data_.questions, encoder(data_.tokenizer),
        data::ChoiceOptions{.vocabulary = vocabulary_,
                            .tokens_max = data_.block_size,
                            .sources_max = data_.source_length,
                            .pair_tokens = pairs_});
  }
  /// The tokenizer of text.
  const data::TextEncoder& encoder() { return encoder(data_.tokenizer); }

 private:
  [[nodiscard]] data::SampleOptions options() const {
    return {.sizes = {data_.block_size, data_.source_length, data_.documents},
            .vocabulary = vocabulary_,
            .packing = data_.packing,
            .records = record_options(data_),
            .cache = {},
            .split = data_.split,
            .pair_tokens = pairs_.value_or(PairTokens{})};
  }
  const data::TextEncoder& encoder(const std::string& tokenizer) {
    std::unique_ptr<data::TextEncoder>& made = encoders_[tokenizer];
    if (!made) made = data::make_encoder(tokenizer, {.date = data_.chat_date});
    return *made;
  }

  const config::DataSettings& data_;
  std::int64_t vocabulary_;
  std::optional<PairTokens> pairs_;
  std::map<std::string, std::unique_ptr<data::TextEncoder>> encoders_;
};

/// One file as it is, several as a mixture.
std::shared_ptr<const data::SampleSource> mixed(const std::vector<OpenedFile>& files) {
  if (files.size() == 1) return files.front().source;
  std::vector<data::MixturePart> parts;
  parts.reserve(files.size());
  for (const auto& [source, weight] : files) parts.push_back({source, {}, weight});
  return std::make_shared<data::MixtureSamples>(std::move(parts));
}

/// A mixture of a part of each file; null when no file has one.
std::shared_ptr<const data::SampleSource> mixed_parts(
    const std::vector<OpenedFile>& files, data::SampleRange data::SampleSplit::*range_of) {
  std::vector<data::MixturePart> parts;
  for (const auto& [source, weight] : files) {
    const data::SampleRange range = source->split().*range_of;
    if (range.count > 0) parts.push_back({source, range, weight});
  }
  if (parts.empty()) return nullptr;
  return std::make_shared<data::MixtureSamples>(std::move(parts));
}

/// Token shards say which tokenizer made them: the tokens of another would be other words.
void check_shard_tokenizers(RunData& run, const config::TrainSettings& settings) {
  const config::DataSettings& data = settings.data;
  std::vector<std::pair<std::string, std::string>> shards;  // paths and tokenizers
  std::string text;                                         // the last file of text
  for (const auto* const files : {&data.train_files, &data.validation_files}) {
    for (const config::DataFile& file : *files) {
      const auto manifest = data::read_shard_manifest(file.path);
      if (manifest) shards.emplace_back(file.path, manifest->making.tokenizer);
      if (!data::holds_tokens(file.path)) text = file.path;
    }
  }
  if (shards.empty()) return;
  const auto& [path, tokenizer] = shards.front();
  for (const auto& [other_path, other] : shards) {
    if (other == tokenizer) continue;
    fail(ErrorCode::input, "{} and {}: are tokens of different tokenizers", path, other_path);
  }
  const bool is_own = data.tokenizer == settings.model.directory;
  if (!is_own && !data.tokenizer_given && text.empty()) return;
  if (data::make_encoder(data.tokenizer)->identity() == tokenizer) return;
  if (!text.empty()) {
    fail(ErrorCode::input,
         "{}: its tokens were made by another tokenizer than {}, by which {} is read; name theirs: "
         "--tokenizer DIR",
         path, data.tokenizer, text);
  }
  if (data.tokenizer_given) {
    fail(ErrorCode::usage, "--tokenizer {}: the tokens of {} were made by another; leave it out",
         data.tokenizer, path);
  }
  run.notes.push_back(fmt::format(
      "{}: its tokens were made by other tokenizer files than those of {}", path, data.tokenizer));
}

bool is_models_own(const std::string& tokenizer, const std::string& model) {
  if (tokenizer == model) return true;
  return !model.empty() && data::has_tokenizer(model) &&
         data::tokenizer_identity(tokenizer) == data::tokenizer_identity(model);
}

/// What texts of a tokenizer begin and end with, as far as a model has such tokens.
model::TextTokens text_tokens(const data::TextEncoder& encoder, std::int64_t vocabulary) {
  const auto known = [&](std::optional<std::int32_t> id) {
    return id && *id < vocabulary ? id : std::nullopt;
  };
  return {known(encoder.begin_of_text()), known(encoder.end_of_text())};
}

/// At most `most` samples, if that is not 0.
std::int64_t at_most(std::int64_t samples, std::int64_t most) {
  return most > 0 ? std::min(samples, most) : samples;
}

void add_notes(RunData& run, const data::SampleSource& source) {
  run.notes.insert(run.notes.end(), source.notes().begin(), source.notes().end());
}

void add_notes(RunData& run, const data::ChoiceQuestions& questions) {
  if (questions.shortened() == 0) return;
  run.notes.push_back(fmt::format(
      "{}: {} of {} choices are too long with their queries, which lose their beginnings",
      questions.path(), questions.shortened(), questions.sequences().size()));
}

/// Where a file is cut, which Megatron does in one way alone.
std::string_view cut_of(const OpenedFile& file) {
  return file.source->splits_documents() ? "; the parts are whole documents"
                                         : "; Megatron splits documents, here samples are divided";
}

/// A count of 0 would mean all of them.
void check_training_part(const OpenedFile& file, const config::TrainSettings& settings) {
  if (!settings.trains || file.source->split().training.count > 0) return;
  fail(ErrorCode::input, "{}: --split leaves none of its {} samples to train on",
       file.source->path(), file.source->samples());
}

/// Cuts one file in two, and says so. There may be nothing to evaluate.
void split_file(RunData& run, const OpenedFile& file, const config::TrainSettings& settings) {
  check_training_part(file, settings);
  const auto& [training, validation] = file.source->split();
  run.training_data = file.source;
  run.training_samples = training.count;
  add_notes(run, *file.source);
  if (settings.evaluation.enabled && validation.count > 0) {
    run.validation_data = file.source;
    run.validation_samples = validation;
  }
  run.notes.push_back(fmt::format(
      "--split: of {} samples of {} tokens the first {} are trained on, the next {} held out, the "
      "rest is not used{}",
      file.source->samples(), settings.data.block_size, training.count, validation.count,
      cut_of(file)));
}

/// Cuts each file of a mixture in two, as Megatron, and mixes either part by the same weights.
void split_mixture(RunData& run,
                   const std::vector<OpenedFile>& files,
                   const config::TrainSettings& settings) {
  for (const OpenedFile& file : files) check_training_part(file, settings);
  if (settings.trains) {
    run.training_data = mixed_parts(files, &data::SampleSplit::training);
    run.training_samples = run.training_data->samples();
    add_notes(run, *run.training_data);
  }
  if (settings.evaluation.enabled) {
    run.validation_data = mixed_parts(files, &data::SampleSplit::validation);
  }
  run.validation_samples.count = run.validation_data ? run.validation_data->samples() : 0;
  run.notes.push_back(fmt::format(
      "--split: of each file of the mixture the first part is trained on and the second held out, "
      "{} samples of {} tokens in all, by the same weights",
      run.validation_samples.count, settings.data.block_size));
}

}  // namespace

RunData open_data(const config::TrainSettings& settings,
                  const model::Model& model,
                  const std::string& no_chat_template) {
  const config::DataSettings& data = settings.data;
  RunData run;
  run.record_options = describe(record_options(data));
  check_shard_tokenizers(run, settings);
  DataOpener opener(data, model, no_chat_template);
  if (!data.split.empty()) {
    const std::vector<OpenedFile> files = opener.open(data.train_files);
    if (files.size() == 1) {
      split_file(run, files.front(), settings);
    } else {
      split_mixture(run, files, settings);
    }
  } else {
    if (settings.trains) {
      run.training_data = mixed(opener.open(data.train_files));
      run.training_samples = run.training_data->samples();
      add_notes(run, *run.training_data);
    }
    if (!data.questions.empty()) {
      run.questions = opener.open_questions();
      add_notes(run, *run.questions);
    } else if (settings.evaluation.enabled) {
      run.validation_data = mixed(opener.open(data.validation_files));
      run.validation_samples.count = run.validation_data->samples();
      add_notes(run, *run.validation_data);
    }
  }
  const auto is_text = [](const auto& source) {
    return source && source->is_text();
  };
  if (is_text(run.training_data) || is_text(run.validation_data) || run.questions) {
    const data::TextEncoder& encoder = opener.encoder();
    run.text_encoder = encoder.identity();
    run.encloses_texts = !encoder.beginning().empty() || !encoder.ending().empty();
    run.ends_records = encoder.end_of_text() && encoder.ending().empty();
  }
  if (data.tokenizer != "byte" && !is_models_own(data.tokenizer, settings.model.directory)) {
    run.text_tokens = text_tokens(opener.encoder(), model.vocabulary);
  }
  run.training_samples = at_most(run.training_samples, data.max_train_samples);
  run.validation_samples.count = at_most(run.validation_samples.count, data.max_eval_samples);
  return run;
}

void refuse_unlearned(const RunData& run, const config::TrainOptions& options) {
  const bool pretrains = options.stage.value == "pt";
  std::set<std::string> problems;  // training and held-out data may be one file
  for (const auto& source : {run.training_data, run.validation_data}) {
    if (!source) continue;
    for (const auto& [path, kind] : source->records()) {
      if (kind == data::RecordKind::text) continue;
      const bool chats = kind == data::RecordKind::messages;
      const config::Flag<bool>& wish =
          chats ? options.assistant_only_loss : options.completion_only_loss;
      if (!pretrains && (!wish.typed() || wish.value)) continue;
      problems.insert(fmt::format(
          "{} {}: {} has {}, of which only the {} are learned; leave it out, or, to learn every "
          "token, give the records as {{\"text\": \"...\"}}",
          pretrains ? options.stage.typed_as : wish.typed_as, pretrains ? "pt" : "false", path,
          chats ? "conversations" : "prompts and completions", chats ? "answers" : "completions"));
    }
  }
  if (problems.empty()) return;
  fail(ErrorCode::usage, "{}",
       printable_list(std::vector<std::string>(problems.begin(), problems.end())));
}

std::string describe_held_out(const RunData& run) {
  if (run.questions) return std::filesystem::path(run.questions->path()).filename().string();
  if (!run.validation_data) return {};
  const auto& [first, count] = run.validation_samples;
  // Where training reads text, too, its tokenizer is compared by itself.
  const bool tells = run.validation_data->is_text() && run.text_encoder != "byte" &&
                     !(run.training_data && run.training_data->is_text());
  return fmt::format("{} ({} bytes, samples {} to {}{})", run.validation_data->name(),
                     run.validation_data->bytes(), first, first + count,
                     tells ? ", tokenizer " + run.text_encoder : "");
}

std::string describe_held_out_content(const RunData& run) {
  if (run.questions) return data::digest_text(run.questions->digest());
  if (!run.validation_data) return {};
  const std::optional<bool> packing = run.validation_data->packing();
  if (!packing) return run.validation_data->digest();
  return fmt::format("{}; packing {}{}", run.validation_data->digest(), *packing,
                     run.record_options.empty() ? "" : "; records " + run.record_options);
}

std::int64_t padded_length(std::int64_t tokens, std::int64_t most) {
  constexpr std::int64_t step = 64;
  return std::min((tokens + step - 1) / step * step, most);
}

void settle_lengths(config::DataSettings& data, const model::Model& model) {
  constexpr std::int64_t default_length = 1024;
  constexpr std::int64_t default_target_length = 128;
  if (model.pairs) {
    if (data.block_size > 0) {
      fail(ErrorCode::usage,
           "--block_size: {} is an encoder-decoder, whose samples have --max_source_length and "
           "--max_target_length",
           model.name);
    }
    if (data.documents) {
      fail(ErrorCode::usage, "--reset_attention_mask: a sample of {} is one pair", model.name);
    }
    const bool asks = !data.questions.empty();
    data.block_size = data.target_length > 0 ? data.target_length
                      : asks                 ? model.positions
                                             : default_target_length;
    if (data.source_length == 0) data.source_length = default_length;
    return;
  }
  if (data.source_length > 0 || data.target_length > 0) {
    fail(ErrorCode::usage,
         "{}: {} is no encoder-decoder and has no sources; give --block_size instead",
         data.source_length > 0 ? "--max_source_length" : "--max_target_length", model.name);
  }
  if (data.block_size == 0) {
    data.block_size =
        data.questions.empty() ? std::min(default_length, model.positions) : model.positions;
  }
  if (data.block_size > model.positions) {
    fail(ErrorCode::usage, "--block_size {} is longer than the model's {} positions",
         data.block_size, model.positions);
  }
}

}  // namespace dstrain::session
