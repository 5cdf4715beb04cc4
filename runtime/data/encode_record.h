#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/text_encoder.h"

namespace dstrain::data {

struct Record;

/// Tokens [begin, end) of a record.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const TokenRange&) const = default;
};

/// The tokens of a record, and the ranges of them that are trained on: ascending, without overlap.
struct EncodedRecord {
  std::vector<std::int32_t> ids;
  std::vector<TokenRange> counted;
};

/// Encodes a record. A text or completion ends with the tokenizer's end-of-text token, if there is
/// one and it is not there already, and begins with the tokens that the tokenizer puts before
/// texts.
///
/// All of a text counts; of prompt and completion, the completion with its end-of-text; of
/// messages, each answer with its end-of-turn marker. Prompt and completion are encoded together,
/// as is a conversation: the counted part begins with the first token that differs from the
/// encoding of the prompt alone. That takes two encodings for a prompt and 1 + 2A for a
/// conversation with A answers.
///
/// Throws Error{input} that begins with `place`.
EncodedRecord encode_record(const Record& record,
                            const TextEncoder& encoder,
                            const std::string& place);

}  // namespace dstrain::data
