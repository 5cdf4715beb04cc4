#include "runtime/tokenizer/byte_level_files.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace dstrain::tokenizer {
namespace {

using Json = nlohmann::ordered_json;

std::string written(const Json& document) {
  return document.dump(2, ' ');
}

Json end_of_text_entry() {
  return {{"id", 0},         {"content", end_of_text}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false},    {"special", true}};
}

Json byte_level_step(bool add_prefix_space, bool trim_offsets) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", true}};
}

/// Builds the object without nlohmann's linear search for each key.
Json vocabulary_of(const std::vector<std::string>& tokens) {
  Json::object_t vocabulary;
  for (std::size_t id = 0; id < tokens.size(); ++id) vocabulary.emplace_back(tokens[id], id);
  return vocabulary;
}

Json model_of(const std::vector<std::string>& tokens, const std::vector<Merge>& merges) {
  Json pairs = Json::array();
  for (const Merge& merge : merges) {
    pairs.push_back(Json::array({tokens[static_cast<std::size_t>(merge.left)],
                                 tokens[static_cast<std::size_t>(merge.right)]}));
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", vocabulary_of(tokens)},
          {"merges", std::move(pairs)}};
}

}  // namespace

std::string byte_level_tokenizer_json(const std::vector<std::string>& tokens,
                                      const std::vector<Merge>& merges) {
  return written({{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", Json::array({end_of_text_entry()})},
                  {"normalizer", nullptr},
                  {"pre_tokenizer", byte_level_step(false, true)},
                  {"post_processor", byte_level_step(true, false)},
                  {"decoder", byte_level_step(true, true)},
                  {"model", model_of(tokens, merges)}});
}

std::string byte_level_config_json() {
  return written({{"tokenizer_class", "PreTrainedTokenizerFast"},
                  {"bos_token", end_of_text},
                  {"eos_token", end_of_text},
                  {"clean_up_tokenization_spaces", false}});
}

}  // namespace dstrain::tokenizer
