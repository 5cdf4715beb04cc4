#include "runtime/data/foreign_format.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/utf8.h"
#include "runtime/data/conversion_command.h"
#include "runtime/data/json_record.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::data {
namespace {

using std::string_view_literals::operator""sv;

/// How files of a format begin or end, and the command that converts them, in which {0} is the
/// file, {1} the result, and {2} the command that unpacks it.
struct ForeignFormat {
  std::string_view extension;
  std::string_view magic;
  std::string_view remedy;
  std::string_view unpack = {};
  std::size_t magic_at = 0;
};

constexpr std::string_view archive = "is an archive; {2}, and give the files that were in it";

constexpr std::array<ForeignFormat, 15> unread_formats{
    {{".parquet", "PAR1",
      "Parquet is not supported; convert it to JSON lines:\n  python3 -c \"import sys, pandas as "
      "p; p.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient='records', lines=True)\" {0} "
      "{1}"},
     {".arrow", "ARROW1",
      "Arrow is not supported; convert it to JSON lines:\n  python3 -c \"import sys, datasets as "
      "d; d.Dataset.from_file(sys.argv[1]).to_json(sys.argv[2])\" {0} {1}"},
     {".npy", "\x93NUMPY", "NumPy arrays are not supported; write the ids to an llm.c .bin"},
     {".tar.gz", "", archive, "tar -xzf"},
     {".tgz", "", archive, "tar -xzf"},
     {".tar.zst", "", archive, "tar --zstd -xf"},
     {".tar.xz", "", archive, "tar -xJf"},
     {".tar.bz2", "", archive, "tar -xjf"},
     {".tar", "ustar", archive, "tar -xf", 257},
     {".zip", "PK\x03\x04", archive, "unzip"},
     {".7z", "7z\xbc\xaf\x27\x1c", archive, "7z x"},
     {".rar", "Rar!\x1a\x07", archive, "unrar x"},
     {".xlsx", "", "Excel's files are not supported; save the table as CSV"},
     {".xz",
      "\xfd"
      "7zXZ",
      "is compressed by xz; {2} first", "unxz -k"},
     {".bz2", "BZh", "is compressed by bzip2; {2} first", "bunzip2 -k"}}};

constexpr std::array<ForeignFormat, 2> compressed_formats{
    {{".gz", "\x1f\x8b", "", "gunzip -k"}, {".zst", "\x28\xb5\x2f\xfd", "", "unzstd"}}};

/// Returns "d/book-utf8.txt" for "d/book.txt".
std::string with_suffix(const std::string& path, std::string_view suffix) {
  const std::filesystem::path file(path);
  return (file.parent_path() /
          (file.stem().string() + std::string(suffix) + file.extension().string()))
      .string();
}

/// Returns `text` after its byte order mark, if any, and blanks.
std::string_view content_of(std::string_view text) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

/// Returns "gunzip -k d.gz"; for files with another ending such programs only read standard input.
std::string unpack_command(const ForeignFormat& format, const std::string& path) {
  const bool unpacks_any = format.remedy == archive;
  const std::string_view program = format.unpack.substr(0, format.unpack.find(' '));
  if (unpacks_any || path.ends_with(format.extension)) {
    return fmt::format("{} {}", format.unpack, shell_path(path));
  }
  return fmt::format("{} < {} > {}", program, shell_path(path),
                     shell_path(free_name(with_suffix(path, "-unpacked"))));
}

bool is_format(const ForeignFormat& format, const std::string& path, std::string_view begin) {
  const std::size_t at = std::min(format.magic_at, begin.size());
  return lower_case(path).ends_with(format.extension) ||
         (!format.magic.empty() && begin.substr(at).starts_with(format.magic));
}

/// Whether the first line of a table names a text column, with or without quotes.
bool has_text_column(std::string_view begin, char separator) {
  std::string_view line = content_of(begin);
  line = line.substr(0, line.find_first_of("\r\n"));
  while (!line.empty()) {
    const std::string_view name = line.substr(0, line.find(separator));
    if (name == "text" || name == "\"text\"") return true;
    line.remove_prefix(std::min(name.size() + 1, line.size()));
  }
  return false;
}

/// Whether the first line of a CSV has semicolons instead of commas, as spreadsheets of some
/// countries write it.
bool separates_by_semicolon(std::string_view begin) {
  const std::string_view line = content_of(begin);
  const std::string_view names = line.substr(0, line.find_first_of("\r\n"));
  return names.find(';') != names.npos && names.find(',') == names.npos;
}

/// Returns "UTF-16" if the text has its mark or every second byte is NUL; else an empty text.
std::string_view wide_encoding(std::string_view text) {
  if (text.starts_with("\xff\xfe\0\0"sv) || text.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return "UTF-16";
  constexpr std::size_t looked_at_max = 1024;
  std::array<std::size_t, 2> nuls{};
  const std::string_view begin = text.substr(0, looked_at_max);
  for (std::size_t i = 0; i < begin.size(); ++i)
    nuls.at(i % 2) += begin[i] == '\0' ? std::size_t{1} : 0;
  const std::size_t most = begin.size() / 4;
  if (nuls[1] > most && nuls[0] <= most / 8) return "UTF-16LE";
  if (nuls[0] > most && nuls[1] <= most / 8) return "UTF-16BE";
  return {};
}

/// Returns the command that converts another encoding to UTF-8, to end a message.
std::string to_utf8(std::string_view encoding, const std::string& path) {
  return command_below(whole_or_none(reading(fmt::format("iconv -f {} -t UTF-8", encoding), path),
                                     with_suffix(without_compression(path), "-utf8")));
}

/// Statistics on the bytes above 127 in a text.
struct HighBytes {
  std::size_t bytes = 0;
  std::size_t characters = 0;  ///< valid UTF-8 characters
  std::size_t broken = 0;
  std::size_t runs = 0;    ///< runs of adjacent bytes above 127
  std::size_t single = 0;  ///< runs of one byte
};

HighBytes high_bytes(std::string_view text) {
  HighBytes found;
  std::size_t run = 0;
  for (const char c : text) {
    const bool high = static_cast<unsigned char>(c) > 127;
    if (high) ++found.bytes;
    if (!high && run > 0) ++found.runs;
    if (!high && run == 1) ++found.single;
    run = high ? run + 1 : 0;
  }
  while (!text.empty()) {
    const Character first = first_of_any(text);
    const bool broken = first.code == 0xfffd && !text.starts_with("\xef\xbf\xbd");
    if (broken) ++found.broken;
    if (!broken && first.size > 1) ++found.characters;
    text.remove_prefix(first.size);
  }
  return found;
}

void refuse_wide(const std::string& path, std::string_view text) {
  const std::string_view encoding = wide_encoding(text);
  if (encoding.empty()) return;
  fail(ErrorCode::input, "{}: is {}; make it UTF-8{}", path, encoding, to_utf8(encoding, path));
}

/// Refuses tables, which only `dstrain tokenize` reads, and only without chats.
void refuse_table(const std::string& path, std::string_view begin) {
  const std::string extension = lower_extension(path);
  if (extension != ".csv" && extension != ".tsv") return;
  const bool tabs = extension == ".tsv";
  refuse_wide(path, begin);
  check_utf8(std::as_bytes(std::span(begin)), path);
  const std::string read = fmt::format(
      "python3 -c \"import csv, json, sys; csv.field_size_limit(1 << 30); r = "
      "csv.reader(open(sys.argv[1], newline='', encoding='utf-8-sig'), strict=True{}); h = "
      "next(r); "
      "assert len(set(h)) == len(h), 'two columns have one name'; [print(json.dumps(dict(zip(h, v, "
      "strict=True)))) for v in r if v]\" {}",
      tabs                            ? ", delimiter='\\t'"
      : separates_by_semicolon(begin) ? ", delimiter=';'"
                                      : "",
      shell_path(path));
  fail(ErrorCode::input, "{}: training does not read {}; {}convert it to JSON lines{}", path,
       tabs ? "TSV" : "CSV",
       has_text_column(begin, tabs ? '\t' : ',')
           ? "dstrain tokenize makes token files of the column text; or "
           : "",
       command_below(whole_or_none(read, converted_name(path))));
}

void refuse_compressed(const std::string& path, std::string_view begin) {
  for (const ForeignFormat& format : compressed_formats) {
    if (!is_format(format, path, begin)) continue;
    const std::filesystem::path inner = std::filesystem::path(path).stem();
    const bool is_text = lower_extension(inner) == ".txt" || lower_extension(inner) == ".text";
    fail(ErrorCode::input, "{}: is compressed; {} first{}", path, unpack_command(format, path),
         is_text ? ", or make token files: dstrain tokenize" : "");
  }
}

/// A beginning of files that do not hold text.
struct BinaryFormat {
  std::string_view magic;
  std::string_view name;
};

constexpr std::array<BinaryFormat, 11> binary_formats{
    {{"\x7f"
      "ELF",
      "a program"},
     {"%PDF-", "a PDF document; extract its text: pdftotext"},
     {"\x89PNG", "an image"},
     {"\xff\xd8\xff", "an image"},
     {"GIF8", "an image"},
     {"SQLite format 3\0"sv, "an SQLite database"},
     {"\x89HDF", "an HDF5 file"},
     {"GGUF", "a file of model weights (GGUF)"},
     {"\xd0\xcf\x11\xe0", "a document of Office"},
     {"\x80\x02", "a Python pickle"},
     {"\x80\x04", "a Python pickle"}}};

bool is_safetensors(std::string_view text) {
  return text.size() > 9 && text[8] == '{' && text[7] == '\0' && text[6] == '\0';
}

void refuse_unless_text(const std::string& path, std::string_view what) {
  fail(ErrorCode::input, "{}: is {}, not text", path, what);
}

/// torch.save() writes a zip archive, whose first file is NAME/data.pkl.
bool is_torch_file(const std::string& path, std::string_view begin) {
  constexpr std::array<std::string_view, 4> extensions{".pt", ".pth", ".bin", ".ckpt"};
  constexpr std::size_t first_name_max = 256;
  if (!begin.starts_with("PK\x03\x04")) return false;
  return std::ranges::find(extensions, lower_extension(path)) != extensions.end() ||
         begin.substr(0, first_name_max).find("/data.pkl") != std::string_view::npos;
}

}  // namespace

void refuse_unread_format(const std::string& path, std::string_view begin) {
  if (is_torch_file(path, begin)) {
    refuse_unless_text(path, "a file of PyTorch that holds tensors");
  }
  for (const ForeignFormat& format : unread_formats) {
    if (!is_format(format, path, begin)) continue;
    fail(ErrorCode::input, "{}: {}", path,
         fmt::format(fmt::runtime(format.remedy), shell_path(path),
                     shell_path(free_name(converted_name(path))), unpack_command(format, path)));
  }
}

void refuse_foreign_format(const std::string& path, std::string_view begin) {
  refuse_unread_format(path, begin);
  refuse_compressed(path, begin);
  refuse_table(path, begin);
}

void refuse_binary(const std::string& path, std::string_view text) {
  refuse_wide(path, text);
  for (const auto& [magic, name] : binary_formats) {
    if (text.starts_with(magic)) refuse_unless_text(path, name);
  }
  constexpr std::size_t looked_at_max = std::size_t{1} << 20;  // other files have one early
  const std::size_t nul = text.substr(0, looked_at_max).find('\0');
  if (nul == std::string_view::npos) return;
  if (is_safetensors(text)) refuse_unless_text(path, "a file of model weights (safetensors)");
  // For a record with a NUL byte, a later error names its line.
  if (is_json_name(path)) return;
  fail(ErrorCode::input, "{}: byte {} is NUL, which texts do not have; is it a file of text?", path,
       nul);
}

std::string encoding_remedy(const std::string& path, std::string_view text, std::size_t invalid) {
  constexpr std::size_t looked_at = std::size_t{1} << 16;  // in each direction
  const std::size_t begin = invalid - std::min(invalid, looked_at);
  const std::string_view around = text.substr(begin, 2 * looked_at);
  const HighBytes found = high_bytes(around);
  if (found.characters > found.broken) {
    const std::string repair = reading(
        "python3 -c \"import sys; sys.stdout.buffer.write(open((sys.argv + [0])[1], 'rb').read()"
        ".decode(errors='replace').encode())\"",
        path);
    return "; the characters around it are UTF-8, so it is damaged; put U+FFFD for it" +
           command_below(whole_or_none(repair, with_suffix(without_compression(path), "-utf8")));
  }
  // Accented letters are few and stand alone; in Big5 and Shift-JIS the second byte of a character
  // may be ASCII, but most bytes are above 127.
  if (found.bytes * 5 <= around.size() && found.single * 5 >= found.runs * 4) {
    return "; it looks like Latin-1 (single bytes above 127 between letters): make it UTF-8, and "
           "look at the result" +
           to_utf8("WINDOWS-1252", path);
  }
  return "; type its encoding (GB18030, BIG5, SHIFT_JIS, EUC-KR, WINDOWS-1251, ...) in place of "
         "ENCODING, and look at the result" +
         to_utf8("ENCODING", path);
}

bool is_json_name(const std::string& path) {
  constexpr std::array<std::string_view, 5> extensions{".jsonl", ".jsonlines", ".jl", ".ndjson",
                                                       ".json"};
  return std::ranges::find(extensions, lower_extension(path)) != extensions.end();
}

void refuse_records_as_text(const std::string& path, std::string_view begin) {
  if (!holds_records(content_of(begin))) return;
  std::filesystem::path name(path);
  while (lower_extension(name) == ".txt" || lower_extension(name) == ".text" ||
         is_json_name(name)) {
    name.replace_extension();
  }
  name += ".jsonl";
  fail(ErrorCode::input, "{}: holds JSON records, and its name says text; name it as JSON lines{}",
       path,
       command_below(
           fmt::format("mv {} {}", shell_path(path), shell_path(free_name(name.string())))));
}

std::string note_on_json(const std::string& path, std::string_view begin) {
  if (!holds_object(content_of(begin))) return {};
  return path + ": begins with a JSON object, and is learned as text, as its name says";
}

std::string directory_remedy(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool parts = fs::exists(directory / "dataset_dict.json", error);
  if (parts || fs::exists(directory / "state.json", error)) {
    const std::string target =
        free_name((directory.has_filename() ? directory : directory.parent_path()).string() +
                  "-converted.jsonl");
    return "; it is a data set that Hugging Face's datasets saved; convert it to JSON lines" +
           command_below(fmt::format("python3 -c \"import sys, datasets as d; "
                                     "d.load_from_disk(sys.argv[1]){}.to_json(sys.argv[2])\" {} {}",
                                     parts ? "['train']" : "", shell_path(directory),
                                     shell_path(target)));
  }
  constexpr std::array<std::string_view, 9> extensions{".txt", ".text",    ".gz",    ".zst", ".csv",
                                                       ".tsv", ".parquet", ".arrow", ".zip"};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const bool is_data = is_json_name(path) ||
                         std::ranges::find(extensions, lower_extension(path)) != extensions.end();
    if (is_data) files.push_back(shell_path(path));
  }
  std::ranges::sort(files);
  if (files.empty()) return {};
  constexpr std::size_t named_max = 4;
  const bool all = files.size() <= named_max;
  return fmt::format("; give its files: {}{}",
                     fmt::join(std::span(files).first(std::min(files.size(), named_max)), " "),
                     all ? "" : fmt::format(" and {} more", files.size() - named_max));
}

}  // namespace dstrain::data
