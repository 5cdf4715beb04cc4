#include "runtime/data/foreign_format.h"

#include <array>
#include <span>

#include "runtime/base/error.h"
#include "runtime/data/foreign_records.h"

namespace dstrain::data {
namespace {

/// How the files of a format begin or end, and the way from there.
struct ForeignFormat {
  std::string_view extension;
  std::string_view magic;
  std::string_view remedy;
};

constexpr std::array<ForeignFormat, 5> unread_formats{
    {{".parquet", "PAR1",
      "Parquet is not supported; convert it to JSON lines: python3 -c \"import pandas as p; "
      "p.read_parquet('in.parquet').to_json('out.jsonl', orient='records', lines=True)\""},
     {".arrow", "ARROW1",
      "Arrow is not supported; convert it to JSON lines: python3 -c \"import datasets as d; "
      "d.Dataset.from_file('in.arrow').to_json('out.jsonl')\""},
     {".npy", "\x93NUMPY", "NumPy arrays are not supported; write the ids to an llm.c .bin"},
     {".xz",
      "\xfd"
      "7zXZ",
      "is compressed by xz; unxz it first"},
     {".bz2", "BZh", "is compressed by bzip2; bunzip2 it first"}}};

constexpr std::array<ForeignFormat, 4> formats_of_tokenize{
    {{".csv", "", "training does not read CSV; dstrain tokenize makes token files from a column"},
     {".tsv", "", "training does not read TSV; dstrain tokenize makes token files from a column"},
     {".gz", "\x1f\x8b", "is compressed; gunzip it first, or make token files: dstrain tokenize"},
     {".zst", "\x28\xb5\x2f\xfd",
      "is compressed; unzstd it first, or make token files: dstrain tokenize"}}};

void refuse(std::span<const ForeignFormat> formats,
            const std::string& path,
            std::string_view begin) {
  for (const ForeignFormat& format : formats) {
    const bool begins_so = !format.magic.empty() && begin.starts_with(format.magic);
    if (path.ends_with(format.extension) || begins_so) {
      fail(ErrorCode::input, "{}: {}", path, format.remedy);
    }
  }
}

}  // namespace

void refuse_unread_format(const std::string& path, std::string_view begin) {
  refuse(unread_formats, path, begin);
}

void refuse_foreign_format(const std::string& path, std::string_view begin) {
  refuse(unread_formats, path, begin);
  refuse(formats_of_tokenize, path, begin);
}

void refuse_json_document(const std::string& path, std::string_view begin) {
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return;
  const bool is_array = begin[first] == '[';
  const std::size_t second = begin.find_first_not_of(" \t\r", first + 1);
  const bool is_spread =
      begin[first] == '{' && second != std::string_view::npos && begin[second] == '\n';
  if (!is_array && !is_spread) return;
  fail(ErrorCode::input, "{}: {}; JSON lines are one object a line: {}", path,
       is_array ? "is a JSON array" : "has an object over several lines",
       document_conversion(begin.substr(first), path));
}

}  // namespace dstrain::data
