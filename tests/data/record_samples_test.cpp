#include "runtime/data/record_samples.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "runtime/base/label.h"
#include "runtime/data/batch_loader.h"
#include "runtime/data/open_samples.h"
#include "runtime/numeric/philox.h"
#include "tests/data/token_files.h"
#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/command_of.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int32_t ignored = ignored_label;

struct SampleRow {
  Ids tokens;
  Ids labels;
  bool operator==(const SampleRow&) const = default;
};

SampleRow read(const data::SampleSource& source, std::int64_t sample) {
  const auto size = static_cast<std::size_t>(source.block_size());
  SampleRow row{Ids(size, -1), Ids(size, -1)};
  source.read(sample, {row.tokens, row.labels});
  return row;
}

std::vector<SampleRow> rows_of(const data::SampleSource& source) {
  std::vector<SampleRow> rows;
  for (std::int64_t k = 0; k < source.samples(); ++k) rows.push_back(read(source, k));
  return rows;
}

class JsonFiles {
 public:
  /// JSON lines through the byte tokenizer.
  std::unique_ptr<data::SampleSource> open(const std::string& text,
                                           std::int64_t block_size,
                                           bool packing = true,
                                           const std::string& name = "d.jsonl") const {
    return data::open_samples(write_file(directory_.path() / name, text),
                              *data::make_encoder("byte"),
                              {.sizes = {block_size},
                               .vocabulary = 256,
                               .packing = packing,
                               .cache = directory_.path() / "cache"});
  }
  std::string error(const std::string& text, const std::string& name = "d.jsonl") const {
    const std::string message = error_of([&] { open(text, 4, true, name); });
    const std::string folder = directory_.path().string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }
  const TempDir& directory() const { return directory_; }

 private:
  TempDir directory_;
};

std::string pair(const std::string& prompt, const std::string& completion) {
  return fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", prompt, completion);
}

std::string text_line(const std::string& text) {
  return fmt::format("{{\"text\": \"{}\"}}\n", text);
}

/// Labels as letters, "-" where none counts.
std::string shown(const Ids& ids) {
  std::string text;
  for (const std::int32_t id : ids) {
    text += id == ignored ? '-' : id == 0 ? '.' : static_cast<char>(id);
  }
  return text;
}

std::string shown(const std::vector<SampleRow>& rows) {
  std::string text;
  for (const SampleRow& row : rows) text += shown(row.tokens) + "|" + shown(row.labels) + " ";
  return text;
}

std::uint32_t below(std::uint64_t seed, std::uint32_t index, std::uint32_t end) {
  return philox({seed, RandomPurpose::shuffle, 0, index})[0] % end;
}

}  // namespace

TEST_CASE("JsonLines: texts follow one another through the rows", "[data][records]") {
  const JsonFiles files;
  const auto source = files.open(text_line("abc") + "\n" + text_line("defg") + text_line("h"), 3);
  CHECK(source->is_text());
  CHECK(shown(rows_of(*source)) == "abc|bcd def|efg g..|h-- ");
  CHECK(source->notes().empty());
}

TEST_CASE("JsonLines: without packing a row holds one record", "[data][records]") {
  const JsonFiles files;
  const auto source = files.open(text_line("abcdefg") + text_line("x") + text_line("hi"), 3, false);
  CHECK(shown(rows_of(*source)) == "abc|bcd hi.|i-- ");
  REQUIRE(source->notes().size() == 2);
  CHECK_THAT(
      source->notes()[0],
      Catch::Matchers::EndsWith("1 of 3 records are longer than block_size 3 and lose their ends"));
  CHECK_THAT(source->notes()[1], Catch::Matchers::EndsWith(
                                     "1 of 3 records have no label that counts and are left out"));
}

TEST_CASE("JsonLines: completions are packed whole", "[data][records]") {
  const JsonFiles files;
  const std::string lines =
      pair("ab", "c") + pair("d", "e") + pair("fg", "hi") + pair("j", "klmno");
  CHECK(shown(rows_of(*files.open(lines, 4))) == "abcd|-c-e fghi|-hi- jklm|klmn ");
  CHECK(shown(rows_of(*files.open(lines, 4, false))) == "abc.|-c-- de..|e--- fghi|-hi- jklm|klmn ");
  CHECK(shown(rows_of(*files.open(lines, 8))) == "abcdefgh|-c-e--hi jklmno..|klmno--- ");
}

TEST_CASE("JsonLines: a record whose prompt fills its row is dropped", "[data][records]") {
  const JsonFiles files;
  const auto source = files.open(pair("abcde", "f") + pair("a", "b"), 4);
  CHECK(shown(rows_of(*source)) == "ab..|b--- ");
  CHECK(source->notes().size() == 2);
  CHECK(files.error(pair("abcde", "f")) ==
        "d.jsonl: none of 1 records has a label within "
        "block_size 4");
  CHECK(files.error(pair("abc", "") + pair("a", "")) ==
        "d.jsonl: the completions of all 2 records are empty; nothing to learn");
}

TEST_CASE("JsonLines: what is wrong is named by file and line", "[data][records]") {
  const JsonFiles files;
  CHECK(files.error("") == "d.jsonl: the file is empty");
  CHECK(files.error("\n  \n\r\n") == "d.jsonl: holds no record");
  CHECK(files.error(text_line("a")) ==
        "d.jsonl: 1 tokens are too few for one sample of block_size 4, which takes 2");
  CHECK_THAT(files.error(text_line("a") + "\r\n{\"text\": true}"),
             Catch::Matchers::Equals("d.jsonl:3: text is boolean, not a string"));
  CHECK_THAT(files.error(text_line("a") + "{\"text\"}"),
             Catch::Matchers::StartsWith("d.jsonl:2:8: not JSON"));
  CHECK(files.error("\n" + text_line("a") + pair("a", "b")) ==
        "d.jsonl:3: holds prompt and completion, and line 2 text; a file holds one kind of record: "
        "split it");
  CHECK_THAT(files.error("[\n" + text_line("a") + ", {\"text\": 5}]", "d.json"),
             Catch::Matchers::Equals("d.json:3: text is number, not a string"));
  CHECK_THAT(files.error("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}"),
             Catch::Matchers::StartsWith(
                 "d.jsonl:1: a conversation: the byte tokenizer has no chat template"));
}

TEST_CASE("JsonLines: one JSON document gives the samples of its records", "[data][records]") {
  const JsonFiles files;
  const std::string spread = "{\n  \"text\": \"abc\"\n}\n{\n  \"text\":\n\"de\"}\n";
  const auto lines = rows_of(*files.open(text_line("abc") + text_line("de"), 2));
  for (const std::string& text :
       {"[" + text_line("abc") + "," + text_line("de") + "]", spread,
        "\xef\xbb\xbf [" + text_line("abc") + ", " + text_line("de") + " ]\n"}) {
    CAPTURE(text);
    CHECK(rows_of(*files.open(text, 2, true, "d.json")) == lines);
  }
}

TEST_CASE("JsonLines: the text column and names of roles are a part of the cached tokens",
          "[data][records]") {
  const TempDir directory;
  const auto open = [&](const data::RecordOptions& options) {
    return shown(rows_of(*data::open_samples(
        write_file(directory.path() / "d.jsonl", R"({"text": "abc", "body": "def"})"),
        *data::make_encoder("byte"),
        {.sizes = {2},
         .vocabulary = 256,
         .records = options,
         .cache = directory.path() / "cache"})));
  };
  CHECK(open({}) == "ab|bc ");
  CHECK(open({.text_column = "body"}) == "de|ef ");
  CHECK(open({}) == "ab|bc ");
  CHECK(data::describe({}).empty());
  CHECK(data::describe({.text_column = "a"}) != data::describe({.role_names = {{"a", "user"}}}));
}

TEST_CASE("JsonLines: the first bad line is reported whatever comes after", "[data][records]") {
  const JsonFiles files;
  std::string lines;
  for (int i = 1; i <= 5000; ++i)
    lines += i == 1234 ? "{}\n" : i % 997 == 0 ? "[\n" : text_line("a");
  CHECK_THAT(files.error(lines), Catch::Matchers::StartsWith("d.jsonl:997:2: not JSON"));
}

TEST_CASE("JsonLines: a byte-order mark and Windows line ends do not matter", "[data][records]") {
  const JsonFiles files;
  const auto source = files.open("\xEF\xBB\xBF{\"text\": \"ab\"}\r\n{\"text\": \"c\"}\r\n", 2);
  CHECK(shown(rows_of(*source)) == "ab|bc ");
}

TEST_CASE("JsonLines: are recognized by file name", "[data][records]") {
  const JsonFiles files;
  for (const std::string name :
       {"d.ndjson", "d.json", "d.jsonlines", "d.jl", "D.JSONL", "d.Json"}) {
    CAPTURE(name);
    CHECK(shown(rows_of(*files.open("{\"text\": \"abc\"}", 2, true, name))) == "ab|bc ");
  }
}

TEST_CASE("OpenSamples: records in a file with a text extension are not learned as text",
          "[data][records]") {
  const JsonFiles files;
  const std::string folder = files.directory().path().string() + "/";
  const auto refusal = [&](const std::string& name, const std::string& better) {
    return name + ": holds JSON records, and its name says text; name it as JSON lines:\n  mv " +
           folder + name + " " + folder + better;
  };
  CHECK(files.error(text_line("abc"), "d.txt") == refusal("d.txt", "d.jsonl"));
  CHECK(files.error("\n" + pair("a", "b"), "d.jsonl.txt") == refusal("d.jsonl.txt", "d.jsonl"));
  CHECK(files.error("{\"question\": \"a\", \"answer\": \"b\"}\n", "d") == refusal("d", "d.jsonl"));
  CHECK(files.error("[{\"conversations\": [{\"from\": \"gpt\", \"value\": \"b\"}]}]", "d.dat") ==
        refusal("d.dat", "d.dat.jsonl"));
  files.open(text_line("another"), 2, true, "d.jsonl");  // which mv would replace
  CHECK(files.error(text_line("abc"), "d.txt") == refusal("d.txt", "d-2.jsonl"));
  CHECK(files.error(text_line("abc") + "no record\n" + text_line("abc") + text_line("abc"),
                    "d.txt") == refusal("d.txt", "d-2.jsonl"));
  // Prose of which the first line is a record.
  const auto prose =
      files.open(text_line("a") + "This was a record.\nSo is it told.\n", 3, true, "d.txt");
  CHECK(prose->notes().size() == 1);
  CHECK(files.open(text_line("a") + "[1] A note.\nAnother.\n", 3, true, "d.txt")->notes().size() ==
        1);
  // Text that only begins as JSON does, of which an object is told.
  const auto object = files.open("{\"t\": 1}", 3, true, "d.txt");
  CHECK(shown(rows_of(*object)).starts_with("{\"t|"));
  REQUIRE(object->notes().size() == 1);
  CHECK_THAT(object->notes()[0],
             Catch::Matchers::EndsWith("d.txt: begins with a JSON object, and is "
                                       "learned as text, as its name says"));
  CHECK(shown(rows_of(*files.open("[a] b\n", 3, true, "d.txt"))).starts_with("[a]|"));
}

TEST_CASE("OpenSamples: the error for a binary file names its format", "[data][records]") {
  using std::string_literals::operator""s;
  const JsonFiles files;
  struct Row {
    std::string name;
    std::string bytes;
    std::string message;
  };
  const std::string ustar = std::string(257, '\0') + "ustar";
  const Row row = GENERATE_COPY(values<Row>({
      {"d.txt",
       "\xff\xfe"
       "a\0b\0"s,
       "is UTF-16; make it UTF-8:\n  iconv -f UTF-16 -t UTF-8 "},
      {"d.jsonl", "\xfe\xff\0{\0}"s, "is UTF-16; make it UTF-8:\n  iconv -f UTF-16 -t UTF-8 "},
      {"d.txt", "a\0b\0c\0d\0"s, "is UTF-16LE; make it UTF-8:\n  iconv -f UTF-16LE -t UTF-8 "},
      {"d.jsonl", "\0a\0b\0c\0d"s, "is UTF-16BE; make it UTF-8:\n  iconv -f UTF-16BE -t UTF-8 "},
      {"d",
       "\x7f"
       "ELF\x02",
       "is a program, not text"},
      {"d.txt", "%PDF-1.4", "is a PDF document"},
      {"d", "\x20\0\0\0\0\0\0\0{\"a\":1}"s, "is a file of model weights (safetensors), not text"},
      {"d.txt", "ab\0cdefghijk"s, "byte 2 is NUL, which texts do not have"},
      {"d", ustar, "is an archive; tar -xf "},
      {"d.tar", "a", "is an archive; tar -xf "},
      {"d.tar.gz", "\x1f\x8b..", "is an archive; tar -xzf "},
      {"d.TGZ", "\x1f\x8b..", "is an archive; tar -xzf "},
      {"d.zip", "PK\x03\x04", "is an archive; unzip "},
      {"d.pt", "PK\x03\x04", "is a file of PyTorch that holds tensors, not text"},
      {"d.bin", "PK\x03\x04", "is a file of PyTorch that holds tensors, not text"},
      {"d", "PK\x03\x04..model/data.pkl", "is a file of PyTorch that holds tensors, not text"},
      {"d.CSV", "a,b\n1,2\n",
       "training does not read CSV; convert it to JSON lines:\n  python3 -c "},
      {"d.Parquet", "a", "Parquet is not supported"},
  }));
  CAPTURE(row.name, row.message);
  CHECK_THAT(files.error(row.bytes, row.name),
             Catch::Matchers::StartsWith(row.name + ": " + row.message));
}

TEST_CASE("OpenSamples: the error for a directory says what to give instead", "[data][records]") {
  const JsonFiles files;
  const std::filesystem::path folder = files.directory().path() / "dd";
  std::filesystem::create_directories(folder);
  const auto error = [&] {
    return error_of([&] { data::open_samples(folder, *data::make_encoder("byte"), {}); });
  };
  CHECK_THAT(error(), Catch::Matchers::EndsWith("which dstrain tokenize writes"));
  write_file(folder / "b.jsonl", "{}");
  write_file(folder / "a.txt", "a");
  write_file(folder / "README", "a");
  CHECK_THAT(error(), Catch::Matchers::EndsWith("; give its files: " + folder.string() + "/a.txt " +
                                                folder.string() + "/b.jsonl"));
  write_file(folder / "state.json", "{}");
  CHECK_THAT(error(), Catch::Matchers::EndsWith("d.load_from_disk(sys.argv[1]).to_json("
                                                "sys.argv[2])\" " +
                                                folder.string() + " " + folder.string() +
                                                "-converted.jsonl"));
}

TEST_CASE("OpenSamples: other formats are refused with the remedy", "[data][records]") {
  const JsonFiles files;
  CHECK_THAT(files.error("PAR1...", "d.parquet"),
             Catch::Matchers::ContainsSubstring(".parquet " + files.directory().path().string() +
                                                "/d-converted.jsonl"));
  CHECK_THAT(files.error("PAR1...", "d.jsonl"),
             Catch::Matchers::ContainsSubstring("Parquet is not supported"));
  CHECK_THAT(files.error("ARROW1..", "d"),
             Catch::Matchers::ContainsSubstring("Arrow is not supported"));
  CHECK_THAT(files.error("\x1f\x8b..", "d.jsonl.gz"),
             Catch::Matchers::EndsWith("is compressed; gunzip -k " +
                                       files.directory().path().string() + "/d.jsonl.gz first"));
  CHECK_THAT(files.error("\x1f\x8b..", "d.jsonl"),
             Catch::Matchers::ContainsSubstring("is compressed; gunzip < "));
  CHECK_THAT(files.error("\x1f\x8b..", "d.txt.gz"),
             Catch::Matchers::EndsWith("d.txt.gz first, or make token files: dstrain tokenize"));
  CHECK_THAT(
      files.error("label,text\n", "d.csv"),
      Catch::Matchers::ContainsSubstring("dstrain tokenize makes token files of the column "
                                         "text; or convert it to JSON lines:\n  python3 -c"));
}

TEST_CASE("JsonLines: each token is learnt once whatever the rows", "[data][records]") {
  const JsonFiles files;
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(1, 9)));
  const std::int64_t block = GENERATE(2, 5, 16, 400);
  const bool packing = GENERATE(true, false);
  CAPTURE(seed, block, packing);
  std::string lines;
  std::map<std::int32_t, int> expected;
  for (std::uint32_t i = 0; i < 60; ++i) {
    // Every record is of letters of its own kind, so that rows show what belongs to what.
    const char letter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 52];
    const std::uint32_t prompt = below(seed, 2 * i, 5);
    const std::uint32_t answer = below(seed, 2 * i + 1, 7);
    lines += pair(std::string(prompt, letter), std::string(answer, letter));
    // The first token of a row has nothing before it; the row's end cuts the record.
    const auto in_row = std::min<std::int64_t>(prompt + answer, block + 1);
    const std::int64_t learnt = in_row - std::max<std::int64_t>(prompt, 1);
    if (learnt > 0) expected[letter] += static_cast<int>(learnt);
  }
  const auto source = files.open(lines, block, packing);
  std::map<std::int32_t, int> found;
  for (const SampleRow& row : rows_of(*source)) {
    int labels = 0;
    for (std::size_t i = 0; i < row.labels.size(); ++i) {
      if (row.labels[i] == ignored) continue;
      ++found[row.labels[i]];
      ++labels;
      CHECK(row.tokens[i] == row.labels[i]);  // a label's record is its input's
    }
    CHECK(labels > 0);
  }
  CHECK(found == expected);
}

TEST_CASE("JsonLines: records stand in rows in order and whole", "[data][records]") {
  const JsonFiles files;
  std::string lines;
  for (std::uint32_t i = 0; i < 200; ++i) {
    lines += pair("p", std::string(1 + below(3, i, 9), static_cast<char>('a' + i % 26)));
  }
  const auto source = files.open(lines, 12);
  const auto& samples = dynamic_cast<const data::RecordSamples&>(*source);
  std::int64_t next = 0;
  for (std::int64_t row = 0; row < samples.samples(); ++row) {
    for (const std::int64_t record : samples.row_records(row)) CHECK(record == next++);
  }
  CHECK(next == 200);
}

TEST_CASE("JsonLines: a step is the same for every split", "[data][records]") {
  const JsonFiles files;
  std::string lines;
  for (std::uint32_t i = 0; i < 90; ++i) {
    lines += pair("ab", std::string(1 + below(1, i, 9), static_cast<char>('a' + i % 26)));
  }
  const auto source = files.open(lines, 6);
  const auto batch = [&](std::int64_t world, std::int64_t micro_batch, std::int64_t step) {
    std::map<std::int64_t, SampleRow> places;
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const data::BatchLoader loader(*source,
                                     {.micro_batch = micro_batch, .rank = rank, .world = world},
                                     {.global_batch = 12, .shuffle = true, .seed = 5});
      for (std::int64_t micro = 0; micro < 12 / (world * micro_batch); ++micro) {
        Ids tokens(static_cast<std::size_t>(micro_batch * 6));
        Ids labels(tokens.size());
        const std::int64_t first = loader.fill(step, micro, {tokens, labels});
        for (std::int64_t i = 0; i < micro_batch; ++i) {
          const auto at = i * 6;
          places[first + i] = {{tokens.begin() + at, tokens.begin() + at + 6},
                               {labels.begin() + at, labels.begin() + at + 6}};
        }
      }
    }
    return places;
  };
  for (const std::int64_t step : {0, 3, 11}) {
    const auto whole = batch(1, 12, step);
    REQUIRE(whole.size() == 12);
    for (const auto& [world, micro] : std::vector<std::pair<int, int>>{
             {1, 1}, {1, 4}, {2, 2}, {2, 6}, {3, 2}, {3, 4}, {4, 3}, {6, 1}, {12, 1}}) {
      CAPTURE(step, world, micro);
      CHECK((batch(world, micro, step) == whole));
    }
  }
}

TEST_CASE("JsonLines: a tokenizer's tokens are made once", "[data][records]") {
  const TempDir directory;
  const std::string path =
      write_file(directory.path() / "d.jsonl", pair("ab cd", " ef gh") + pair("ij", " kl"));
  const auto open = [&](const data::TextEncoder& encoder, std::int64_t vocabulary = 300'000) {
    return data::open_samples(
        path, encoder,
        {.sizes = {8}, .vocabulary = vocabulary, .cache = directory.path() / "cache"});
  };
  const WordEncoder words;
  const auto rows = rows_of(*open(words));
  REQUIRE(rows.size() == 1);
  Ids all = words.encode("ab cd ef gh</s>ij kl</s>");
  CHECK(rows[0].tokens == all);
  CHECK(rows[0].labels == Ids{ignored, all[2], all[3], all[4], ignored, all[6], all[7], ignored});
  // Another tokenizer under the same name is believed to be it: that is what an identity is for.
  const WordEncoder unlike({.ends_with = ""});
  CHECK(rows_of(*open(unlike)) == rows);
  const WordEncoder other({.identity = "others", .ends_with = ""});
  CHECK(rows_of(*open(other)) != rows);
  CHECK_THAT(error_of([&] { rows_of(*open(words, 100)); }),
             Catch::Matchers::ContainsSubstring("d.jsonl: token 0 is ") &&
                 Catch::Matchers::EndsWith("but the model's vocabulary ends at 99"));
}

TEST_CASE("JsonLines: a split keeps documents of text whole", "[data][records]") {
  const TempDir directory;
  const auto open = [&](const std::string& text, const std::vector<double>& split) {
    return data::open_samples(
        write_file(directory.path() / "d.jsonl", text), *data::make_encoder("byte"),
        {.sizes = {4}, .vocabulary = 256, .cache = directory.path() / "cache", .split = split});
  };
  const std::string texts =
      "{\"text\": \"abc\"}\n{\"text\": \"defghi\"}\n{\"text\": \"jkl\"}\n{\"text\": \"mn\"}\n";
  const auto halves = open(texts, {1, 1, 0});
  CHECK(halves->splits_documents());
  CHECK(halves->split().training.count == 2);
  CHECK(halves->split().validation.first == 2);
  CHECK(halves->split().validation.count == 1);
  CHECK(rows_of(*halves) == std::vector<SampleRow>{{{'a', 'b', 'c', 'd'}, {'b', 'c', 'd', 'e'}},
                                                   {{'e', 'f', 'g', 'h'}, {'f', 'g', 'h', 'i'}},
                                                   {{'j', 'k', 'l', 'm'}, {'k', 'l', 'm', 'n'}}});
  // Rows hold whole records as they are.
  const auto rows = open(pair("ab", "cd") + pair("ef", "gh"), {1, 1, 0});
  CHECK_FALSE(rows->splits_documents());
  CHECK(rows->split().validation.first == 1);
}

TEST_CASE("OpenSamples: text under a tokenizer is one stream", "[data][records]") {
  const TempDir directory;
  const std::string path = write_file(directory.path() / "t.txt", "ab cd\nef gh ij");
  const WordEncoder words;
  const auto source = data::open_samples(
      path, words, {.sizes = {2}, .vocabulary = 300'000, .cache = directory.path() / "cache"});
  CHECK(source->is_text());
  CHECK(source->bytes() == 14);
  REQUIRE(source->samples() == 2);
  const Ids all = words.encode("ab cd\nef gh ij");
  CHECK(read(*source, 1).tokens == Ids{all[2], all[3]});
  CHECK(read(*source, 1).labels == Ids{all[3], all[4]});
  CHECK_THAT(error_of([&] {
               data::open_samples(
                   write_file(directory.path() / "b.txt", "ab\xFF"), words,
                   {.sizes = {2}, .vocabulary = 300'000, .cache = directory.path() / "cache"});
             }),
             Catch::Matchers::ContainsSubstring(
                 "b.txt: not UTF-8 text: byte 2 (0xff) starts no valid character; "));
}

TEST_CASE("OpenSamples: the error for another encoding gives the command that converts it",
          "[data][records]") {
  struct Row {
    std::string encoding;
    std::string text;  ///< in UTF-8
    std::string suffix = ".txt";
  };
  const Row row = GENERATE(values<Row>({
      {"WINDOWS-1252", "Das M\u00e4dchen sagt \u201eja\u201c, der caf\u00e9 ist zu.\n"},
      {"GB18030",
       "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u3002"
       " abc \u4f60\u597d\n"},
      {"BIG5",
       "\u4eca\u5929\u5929\u6c23\u5f88\u597d\uff0c\u6211\u5011\u4e00\u8d77\u53bb\u516c\u5712\u3002"
       "\n"},
      {"SHIFT_JIS", "\u30bd\u30d5\u30c8\u30a6\u30a7\u30a2\u306e\u8868\u793a\u80fd\u529b\u3002\n"},
      {"SHIFT_JIS", "\u3053\u308c\u306f\u30c6\u30b9\u30c8\u3067\u3059\u3002\u65e5\u672c\n"},
      {"WINDOWS-1251",
       "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u044d\u0442\u043e "
       "\u0442\u0435\u043a\u0441\u0442\n"},
      {"WINDOWS-1252", "{\"text\": \"caf\u00e9\"}\n", ".jsonl"},
      {"WINDOWS-1252", "text,id\ncaf\u00e9,1\n", ".csv"},
      {"WINDOWS-1252", "[{\"question\": \"a\", \"answer\": \"caf\u00e9\"}]\n", ".json"},
  }));
  CAPTURE(row.encoding, row.suffix);
  const JsonFiles files;
  const auto path = files.directory().path() / ("d" + row.suffix);
  const auto whole = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  write_file(path, row.text);
  const std::string other = path.string() + ".other";
  const std::string make =
      "iconv -f UTF-8 -t " + row.encoding + " " + path.string() + " > " + other;
  if (std::system(make.c_str()) != 0) skip("iconv does not know " + row.encoding);
  const std::string error = files.error(whole(other), "d" + row.suffix);
  const std::string named = row.encoding == "WINDOWS-1252" ? row.encoding : "ENCODING";
  std::string command = command_of(error);
  CAPTURE(error);
  REQUIRE(command.starts_with("iconv -f " + named + " "));
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring("not UTF-8 text"));
  command.replace(command.find(named), named.size(), row.encoding);
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(whole(files.directory().path() / ("d-utf8" + row.suffix)) == row.text);
}

TEST_CASE("OpenSamples: a damaged UTF-8 text is not mistaken for another encoding",
          "[data][records]") {
  const JsonFiles files;
  const std::string error = files.error("caf\u00e9 \u00e0 c\u00f4t\u00e9 \xff!\n", "d.txt");
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring("so it is damaged; put U+FFFD for it:\n"));
  REQUIRE(std::system(command_of(error).c_str()) == 0);
  std::ifstream in(files.directory().path() / "d-utf8.txt");
  CHECK(std::string{std::istreambuf_iterator<char>(in), {}} ==
        "caf\u00e9 \u00e0 c\u00f4t\u00e9 \ufffd!\n");
}

}  // namespace dstrain::test
