#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/data/json_record.h"

/// Recognizes the common layouts of records by their keys.
namespace dstrain::data {

/// Returns the record that an object holds. A key that would change what the model sees is read or
/// refused. Throws Error{input} that begins with `place` and names the keys. Takes the values out
/// of the object.
Record read_layout(nlohmann::ordered_json& object,
                   const RecordOptions& options,
                   const std::string& place);

/// Returns the text under a key. Throws Error{input}, which names the keys if it is missing.
std::string text_under(const nlohmann::ordered_json& object,
                       const std::string& key,
                       const std::string& place);

/// Whether an object has answers that are learned without their questions, which token files cannot
/// express.
bool has_answers(const nlohmann::ordered_json& object);

/// Whether an object has the keys of a layout.
bool has_layout(const nlohmann::ordered_json& object);

/// Returns some of an object's keys, for messages.
std::string keys_of(const nlohmann::ordered_json& object);

}  // namespace dstrain::data
