#include "runtime/data/foreign_format.h"

#include <array>
#include <span>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/foreign_records.h"
#include "runtime/data/jq_command.h"

namespace dstrain::data {
namespace {

/// How the files of a format begin or end, and the way from there, in which {0} is the file, {1}
/// what is made of it, and {2} how it is unpacked.
struct ForeignFormat {
  std::string_view extension;
  std::string_view magic;
  std::string_view remedy;
  std::string_view unpack = {};
};

constexpr std::array<ForeignFormat, 5> unread_formats{
    {{".parquet", "PAR1",
      "Parquet is not supported; convert it to JSON lines: python3 -c \"import sys, pandas as p; "
      "p.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)\" {0} {1}"},
     {".arrow", "ARROW1",
      "Arrow is not supported; convert it to JSON lines: python3 -c \"import sys, datasets as d; "
      "d.Dataset.from_file(sys.argv[1]).to_json(sys.argv[2])\" {0} {1}"},
     {".npy", "\x93NUMPY", "NumPy arrays are not supported; write the ids to an llm.c .bin"},
     {".xz",
      "\xfd"
      "7zXZ",
      "is compressed by xz; {2} first", "unxz -k"},
     {".bz2", "BZh", "is compressed by bzip2; {2} first", "bunzip2 -k"}}};

constexpr std::string_view compressed =
    "is compressed; {2} first, or make token files: dstrain tokenize";

constexpr std::array<ForeignFormat, 4> formats_of_tokenize{
    {{".csv", "", "training does not read CSV; dstrain tokenize makes token files from a column"},
     {".tsv", "", "training does not read TSV; dstrain tokenize makes token files from a column"},
     {".gz", "\x1f\x8b", compressed, "gunzip -k"},
     {".zst", "\x28\xb5\x2f\xfd", compressed, "unzstd"}}};

void refuse(std::span<const ForeignFormat> formats,
            const std::string& path,
            std::string_view begin) {
  for (const ForeignFormat& format : formats) {
    const bool begins_so = !format.magic.empty() && begin.starts_with(format.magic);
    const bool ends_so = path.ends_with(format.extension);
    if (!ends_so && !begins_so) continue;
    const std::string file = shell_path(path);
    // Programs that unpack take files with their own ending only.
    const std::string_view program = format.unpack.substr(0, format.unpack.find(' '));
    const std::string unpack =
        ends_so ? fmt::format("{} {}", format.unpack, file) : fmt::format("{} it", program);
    fail(ErrorCode::input, "{}: {}", path,
         fmt::format(fmt::runtime(format.remedy), file, shell_path(converted_name(path)), unpack));
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
