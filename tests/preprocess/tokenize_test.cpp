#include "runtime/preprocess/tokenize.h"

#include <fstream>
#include <random>

#include <sys/file.h>

#include "runtime/data/megatron_set.h"
#include "runtime/data/token_shards.h"
#include "runtime/os/file.h"
#include "tests/data/token_files.h"
#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::preprocess {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

/// Thrown where a test kills the process.
struct Killed {};

std::string words(std::mt19937& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += std::string(1 + random() % 9, static_cast<char>('a' + random() % 26));
    text += random() % 11 == 0 ? '\n' : ' ';
  }
  return text;
}

std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\n");
  }
  return text;
}

/// Files of every layout, and the tokens of their documents, made the plain way.
class Corpus {
 public:
  explicit Corpus(unsigned seed) : random_(seed) {
    for (int i = 0; i < 2; ++i) {
      add_text();
      add_json_lines();
      add_csv();
    }
    add_json_document("[", ",", "]");
    add_json_document("", "\n", "");
  }

  [[nodiscard]] std::vector<InputFile> inputs() const {
    const std::vector<std::string> directory{dir_.path()};
    return find_inputs(directory).files;
  }
  /// All tokens, and where documents begin, in the order of the files' names.
  [[nodiscard]] Ids ids() const { return join(texts_); }
  [[nodiscard]] std::vector<std::int64_t> document_starts() const {
    std::vector<std::int64_t> starts{0};
    for (const auto& [name, texts] : texts_) {
      for (const std::string& text : texts)
        starts.push_back(starts.back() + std::ssize(document(text)));
    }
    return starts;
  }
  [[nodiscard]] const test::WordEncoder& encoder() const { return encoder_; }
  [[nodiscard]] fs::path path() const { return dir_.path(); }

 private:
  [[nodiscard]] Ids document(const std::string& text) const {
    Ids ids = encoder_.beginning();
    const Ids more = encoder_.encode(text);
    ids.insert(ids.end(), more.begin(), more.end());
    ids.push_back(*encoder_.end_of_text());
    return ids;
  }
  [[nodiscard]] Ids join(const std::map<std::string, std::vector<std::string>>& texts) const {
    Ids all;
    for (const auto& [name, documents] : texts) {
      for (const std::string& text : documents) {
        const Ids ids = document(text);
        all.insert(all.end(), ids.begin(), ids.end());
      }
    }
    return all;
  }
  void add(const std::string& extension, const std::string& bytes, std::vector<std::string> texts) {
    const std::string name = std::to_string(texts_.size()) + extension;
    test::write_file(dir_.path() / name, bytes);
    texts_[name] = std::move(texts);
  }
  void add_text() {
    const std::string text = words(random_, 400);
    add(".txt", text, {text});
  }
  void add_json_lines() {
    std::string bytes = "\xEF\xBB\xBF";
    std::vector<std::string> texts;
    for (int i = 0; i < 40; ++i) {
      texts.push_back(words(random_, random_() % 20));
      bytes += R"({"id": 1, "text": ")" + escaped(texts.back()) + "\"}\r\n";
      if (i % 7 == 0) bytes += "\n";
    }
    add(".jsonl", bytes, std::move(texts));
  }
  /// An array of records, or objects over several lines.
  void add_json_document(const std::string& begin,
                         const std::string& between,
                         const std::string& end) {
    std::string bytes = begin;
    std::vector<std::string> texts;
    for (int i = 0; i < 40; ++i) {
      texts.push_back(words(random_, random_() % 20));
      bytes += (i == 0 ? "" : between) + "{\n  \"text\": \"" + escaped(texts.back()) +
               "\", \"more\": [{}]}" + (i % 7 == 0 ? "\n " : "");
    }
    add(".json", bytes + end + "\n", std::move(texts));
  }
  void add_csv() {
    std::string bytes = "id,text\n";
    std::vector<std::string> texts;
    for (int i = 0; i < 40; ++i) {
      texts.push_back(words(random_, random_() % 20));
      bytes += std::to_string(i) + ",\"" + texts.back() + "\"\n";
    }
    add(".csv", bytes, std::move(texts));
  }

  test::TempDir dir_;
  std::mt19937 random_;
  test::WordEncoder encoder_{{.begins_with = "<s>"}};
  std::map<std::string, std::vector<std::string>> texts_;
};

constexpr std::int64_t vocabulary = 1 << 20;

Ids read_shards(const fs::path& directory) {
  const data::TokenShards shards(directory, vocabulary);
  Ids ids(static_cast<std::size_t>(shards.size()));
  shards.read(0, ids);
  return ids;
}

std::map<std::string, std::string> bytes_in(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    files[entry.path().filename()] = read_text_file(entry.path(), gibibyte);
  }
  return files;
}

const auto no_report = [](const TokenizeProgress&) {
};

TokenizeOptions small(data::ShardFormat format, std::int64_t shard_tokens, int workers) {
  return {.format = format, .shard_tokens = shard_tokens, .workers = workers, .piece_bytes = 200};
}

}  // namespace

TEST_CASE("tokenize: shards hold the tokens of all documents in order", "[preprocess][tokenize]") {
  const Corpus corpus(GENERATE(range(1U, 3U)));
  const auto format = GENERATE(data::ShardFormat::llmc, data::ShardFormat::megatron);
  const std::int64_t shard_tokens = GENERATE(1000000, 997, 101);
  const test::TempDir out;
  const auto manifest = tokenize(corpus.inputs(), corpus.encoder(), out.path() / "one",
                                 small(format, shard_tokens, 1), no_report);
  CHECK(manifest.complete);
  CHECK(read_shards(out.path() / "one") == corpus.ids());
  tokenize(corpus.inputs(), corpus.encoder(), out.path() / "three", small(format, shard_tokens, 3),
           no_report);
  CHECK(bytes_in(out.path() / "three") == bytes_in(out.path() / "one"));
}

TEST_CASE("tokenize: shards of llm.c are as full as they can be", "[preprocess][tokenize]") {
  const Corpus corpus(5);
  const test::TempDir out;
  const auto manifest = tokenize(corpus.inputs(), corpus.encoder(), out.path(),
                                 small(data::ShardFormat::llmc, 100, 2), no_report);
  const Ids all = corpus.ids();
  std::int64_t documents = 0;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const std::size_t begin = i * 100;
    const std::size_t end = std::min(begin + 100, all.size());
    const Ids ids(all.begin() + static_cast<std::ptrdiff_t>(begin),
                  all.begin() + static_cast<std::ptrdiff_t>(end));
    const test::TokenHeader header{20240801, 7, static_cast<std::int32_t>(end - begin)};
    REQUIRE(read_text_file(out.path() / manifest.shards[i].file, gibibyte) ==
            test::token_bytes(header, ids));
    documents += manifest.shards[i].documents;
  }
  CHECK(documents == std::ssize(corpus.document_starts()) - 1);
}

TEST_CASE("tokenize: Megatron's index knows every document", "[preprocess][tokenize]") {
  const Corpus corpus(6);
  const test::TempDir out;
  tokenize(corpus.inputs(), corpus.encoder(), out.path(),
           small(data::ShardFormat::megatron, 1 << 20, 2), no_report);
  const data::MegatronSet set(out.path() / "tokens_000000", vocabulary);
  CHECK(set.document_starts() == corpus.document_starts());
}

TEST_CASE("tokenize: a killed run resumes where it stopped", "[preprocess][tokenize]") {
  const Corpus corpus(7);
  const auto format = GENERATE(data::ShardFormat::llmc, data::ShardFormat::megatron);
  const test::TempDir whole;
  const TokenizeOptions options = small(format, 500, 2);
  tokenize(corpus.inputs(), corpus.encoder(), whole.path(), options, no_report);
  std::mt19937 random(11);
  for (int round = 0; round < 4; ++round) {
    const test::TempDir out;
    std::int64_t shards = -1;
    for (bool complete = false; !complete;) {
      int left = static_cast<int>(1 + random() % 40);
      const auto kill = [&](const TokenizeProgress& progress) {
        // At least one shard more than the last time, so that it ends.
        if (--left <= 0 && progress.shards > shards) {
          shards = progress.shards;
          throw Killed();
        }
      };
      try {
        complete = tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, kill).complete;
      } catch (const Killed&) {
        test::write_file(out.path() / "tokens_000099.bin.part", "what a killed process leaves");
      }
    }
    fs::remove(out.path() / "tokens_000099.bin.part");
    REQUIRE(bytes_in(out.path()) == bytes_in(whole.path()));
  }
}

TEST_CASE("tokenize: a complete run does nothing more", "[preprocess][tokenize]") {
  const Corpus corpus(8);
  const test::TempDir out;
  const TokenizeOptions options = small(data::ShardFormat::llmc, 1000, 1);
  tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, no_report);
  const auto refuse = [](const TokenizeProgress&) {
    throw Killed();
  };
  CHECK(tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, refuse).complete);
}

TEST_CASE("tokenize: a directory of other tokens is left alone", "[preprocess][tokenize]") {
  const Corpus corpus(9);
  const test::TempDir out;
  const TokenizeOptions options = small(data::ShardFormat::llmc, 1000, 1);
  tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, no_report);
  const auto before = bytes_in(out.path());
  const auto error = [&](const TokenizeOptions& changed, const std::vector<InputFile>& inputs,
                         const data::TextEncoder& encoder) {
    return test::error_of([&] { tokenize(inputs, encoder, out.path(), changed, no_report); });
  };
  TokenizeOptions changed = options;
  changed.shard_tokens = 500;
  CHECK_THAT(error(changed, corpus.inputs(), corpus.encoder()),
             Catch::Matchers::ContainsSubstring("holds tokens with 1000 tokens a shard"));
  CHECK_THAT(error(options, corpus.inputs(), test::WordEncoder({.identity = "others"})),
             Catch::Matchers::ContainsSubstring("holds tokens of another tokenizer"));
  std::vector<InputFile> fewer = corpus.inputs();
  fewer.pop_back();
  CHECK_THAT(error(options, fewer, corpus.encoder()),
             Catch::Matchers::ContainsSubstring("of 8 files, not 7"));
  std::ofstream(corpus.path() / "0.txt", std::ios::app) << "more";
  CHECK_THAT(error(options, corpus.inputs(), corpus.encoder()),
             Catch::Matchers::ContainsSubstring("0.txt as it was before it was changed"));
  CHECK(bytes_in(out.path()) == before);
}

TEST_CASE("tokenize: unknown token files are left alone unless overwriting is requested",
          "[preprocess][tokenize]") {
  const Corpus corpus(12);
  const test::TempDir out;
  test::write_file(out.path() / "tokens_000000.bin", "of somebody else");
  TokenizeOptions options = small(data::ShardFormat::llmc, 1000, 1);
  const auto run = [&] {
    tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, no_report);
  };
  CHECK_THAT(test::error_of(run),
             Catch::Matchers::ContainsSubstring("tokens_000000.bin: exists, but no manifest"));
  CHECK(bytes_in(out.path()).at("tokens_000000.bin") == "of somebody else");
  options.overwrite = true;
  run();
  options.shard_tokens = 1 << 20;
  run();
  CHECK(bytes_in(out.path()).size() == 2);
  CHECK(read_shards(out.path()) == corpus.ids());
}

TEST_CASE("tokenize: a shard that was damaged is not taken for whole", "[preprocess][tokenize]") {
  const Corpus corpus(13);
  const auto format = GENERATE(data::ShardFormat::llmc, data::ShardFormat::megatron);
  const test::TempDir out;
  const TokenizeOptions options = small(format, 1000, 1);
  const auto run = [&] {
    tokenize(corpus.inputs(), corpus.encoder(), out.path(), options, no_report);
  };
  run();
  run();
  fs::resize_file(out.path() / "tokens_000001.bin", 100);
  CHECK_THAT(test::error_of(run),
             Catch::Matchers::ContainsSubstring("tokens_000001.bin: is damaged"));
  fs::remove(out.path() / "tokens_000001.bin");
  CHECK_THAT(test::error_of(run),
             Catch::Matchers::ContainsSubstring("tokens_000001.bin: is missing"));
}

TEST_CASE("tokenize: an input that changes while it is read is told", "[preprocess][tokenize]") {
  const Corpus corpus(14);
  const test::TempDir out;
  bool changed = false;
  const auto change = [&](const TokenizeProgress&) {
    if (!changed) fs::resize_file(corpus.path() / "3.txt", 100);
    changed = true;
  };
  CHECK_THAT(test::error_of([&] {
               tokenize(corpus.inputs(), corpus.encoder(), out.path(),
                        small(data::ShardFormat::llmc, 1000, 1), change);
             }),
             Catch::Matchers::ContainsSubstring("3.txt: was changed while it was read"));
}

TEST_CASE("tokenize: one process at a time writes to a directory", "[preprocess][tokenize]") {
  const Corpus corpus(10);
  const test::TempDir out;
  const UniqueFd held = open_directory(out.path());
  REQUIRE(::flock(held.get(), LOCK_EX) == 0);
  CHECK_THAT(test::error_of([&] {
               tokenize(corpus.inputs(), corpus.encoder(), out.path(),
                        small(data::ShardFormat::llmc, 1000, 1), no_report);
             }),
             Catch::Matchers::ContainsSubstring("another dstrain tokenize writes to it"));
}

TEST_CASE("tokenize: errors in an input are reported with their place", "[preprocess][tokenize]") {
  const auto [name, bytes, message] = GENERATE(table<std::string, std::string, std::string>({
      {"a.jsonl", "{\"text\": \"a\"}\n{\"body\": \"b\"}\n", "a.jsonl:2: text is missing"},
      {"a.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 1}\n",
       "a.jsonl:3: text is number, not a string"},
      {"a.json", "[\n{\"text\": \"a\"},\n {\"body\": \"b\"}]", "a.json:3: text is missing"},
      {"a.json", "[{\"text\": \"a\"}, {\"text\": x}]", "a.json:1:26: not JSON"},
      {"a.json", "[{\"text\": \"a\"}", "a.json:1:15: the array of records has no end"},
      {"a.json", "{\n  \"text\": \"a\"\n}\n{\n  \"text\": x}", "a.json:5:11: not JSON"},
      {"a.csv", "id,body\n1,x\n", "a.csv: has no column 'text', but id, body; --text_column"},
      {"a.csv", "id,text\n1,x\n1,x,y\n", "a.csv:3: 3 fields"},
      {"a.csv", "id,text\n1,\xff\n", "a.csv: not UTF-8 text: byte 10 (0xff)"},
      {"a.txt", std::string(1000, 'x') + " \xff", "a.txt: not UTF-8 text: byte 1001 (0xff)"},
      {"a.txt", "PAR1", "Parquet is not supported"},
      {"a.txt", "{\"text\": \"a\"}\n", "a.txt: holds JSON records, and its name says text"},
      {"a.txt", "\xff\xfeo\xcc", "a.txt: is UTF-16; make it UTF-8:\n  iconv"},
      {"a", std::string(257, 'x') + "ustar", "is an archive; tar -xf"},
      {"a.jl", "{\"text\": 1}\n", "a.jl:1: text is number, not a string"},
      {"a.JSONL", "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n",
       "a.JSONL:1: text is missing, but messages; token files cannot separate answers"},
      {"a.jsonl", "\n\n", "the inputs hold no text"},
  }));
  CAPTURE(name, bytes);
  const test::TempDir dir;
  const std::vector<std::string> paths{test::write_file(dir.path() / name, bytes)};
  const std::string error = test::error_of([&] {
    tokenize(find_inputs(paths).files, test::WordEncoder(), dir.path() / "out",
             small(data::ShardFormat::llmc, 1000, 2), no_report);
  });
  CHECK_THAT(error, Catch::Matchers::ContainsSubstring(message));
}

}  // namespace dstrain::preprocess
