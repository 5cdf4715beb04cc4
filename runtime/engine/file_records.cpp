#include "runtime/engine/file_records.h"

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"

namespace dstrain::engine {

std::string encode_records(std::span<const checkpoint::FileRecord> records) {
  nlohmann::json list = nlohmann::json::array();
  for (const checkpoint::FileRecord& record : records) {
    list.push_back({record.path, record.bytes, record.chunks});
  }
  return list.dump();
}

std::vector<checkpoint::FileRecord> decode_records(const std::string& text) {
  try {
    std::vector<checkpoint::FileRecord> records;
    for (const nlohmann::json& record : nlohmann::json::parse(text)) {
      records.push_back({record.at(0).get<std::string>(), record.at(1).get<Bytes>(),
                         record.at(2).get<std::vector<checkpoint::Checksum>>()});
    }
    return records;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::internal, "records of another rank: {}", exception_text(error));
  }
}

}  // namespace dstrain::engine
