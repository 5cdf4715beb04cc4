#include "runtime/preprocess/input_file.h"

#include <filesystem>

#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::preprocess {
namespace {

class Files {
 public:
  void add(const std::string& name) {
    std::filesystem::create_directories((dir_.path() / name).parent_path());
    test::write_file(dir_.path() / name, "text");
  }
  [[nodiscard]] std::string path(const std::string& name) const { return dir_.path() / name; }
  [[nodiscard]] std::vector<std::string> found(std::vector<std::string> names) const {
    for (std::string& name : names) name = path(name);
    std::vector<std::string> relative;
    for (const InputFile& file : find_inputs(names).files) {
      relative.push_back(std::filesystem::relative(file.path, dir_.path()));
    }
    return relative;
  }
  [[nodiscard]] std::string error(const std::vector<std::string>& names) const {
    return test::error_of([&] { static_cast<void>(found(names)); });
  }

 private:
  test::TempDir dir_;
};

}  // namespace

TEST_CASE("InputFile: the name tells layout and compression", "[preprocess][inputs]") {
  const auto [name, layout, compression] = GENERATE(table<std::string, Layout, Compression>({
      {"a.txt", Layout::text, Compression::none},
      {"a", Layout::text, Compression::none},
      {"a.md.gz", Layout::text, Compression::gzip},
      {"a.jsonl", Layout::json_lines, Compression::none},
      {"a.json.zst", Layout::json_lines, Compression::zstd},
      {"a.csv.gz", Layout::csv, Compression::gzip},
      {"a.tsv", Layout::tsv, Compression::none},
      {"A.CSV.GZ", Layout::csv, Compression::gzip},
  }));
  CAPTURE(name);
  Files files;
  files.add(name);
  const std::vector<std::string> arguments{files.path(name)};
  const InputFile file = find_inputs(arguments).files.at(0);
  CHECK(file.layout == layout);
  CHECK(file.compression == compression);
  CHECK(file.bytes == 4);
}

TEST_CASE("InputFile: directories and patterns give their files in order", "[preprocess][inputs]") {
  Files files;
  for (const char* const name : {"d/b.txt", "d/a.jsonl", "d/sub/c.txt.gz", "d/notes.pdf",
                                 "d/.hidden/x.txt", "d/.y.txt", "p/2.csv", "p/1.csv", "z.log"}) {
    files.add(name);
  }
  using Names = std::vector<std::string>;
  CHECK(files.found({"d"}) == Names{"d/a.jsonl", "d/b.txt", "d/sub/c.txt.gz"});
  CHECK(files.found({"z.log", "p/*.csv"}) == Names{"z.log", "p/1.csv", "p/2.csv"});
}

TEST_CASE("InputFile: files skipped in a directory are reported", "[preprocess][inputs]") {
  Files files;
  for (const char* const name : {"d/a.txt", "d/.b.txt", "d/c.pdf", "d/out/manifest.json",
                                 "d/out/x.txt", "d/tok/tokenizer.json", "elsewhere/y.txt"}) {
    files.add(name);
  }
  std::filesystem::create_directory_symlink(files.path("elsewhere"), files.path("d/link"));
  std::filesystem::create_symlink(files.path("nowhere"), files.path("d/dangling.txt"));
  const std::vector<std::string> arguments{files.path("d")};
  const Inputs inputs = find_inputs(arguments);
  CHECK(inputs.files.size() == 1);
  REQUIRE(inputs.notes.size() == 1);
  CHECK_THAT(inputs.notes[0], Catch::Matchers::ContainsSubstring("left out are ") &&
                                  Catch::Matchers::ContainsSubstring("and 3 more"));
  CHECK_THAT(files.error({"d/dangling.txt"}), Catch::Matchers::ContainsSubstring("No such file"));
}

TEST_CASE("InputFile: what cannot be read is refused by name", "[preprocess][inputs]") {
  Files files;
  for (const char* const name :
       {"a.parquet", "b.xz", "c.parquet.gz", "d.TAR.GZ", "d/x.pdf", "t.txt"}) {
    files.add(name);
  }
  CHECK_THAT(files.error({"a.parquet"}),
             Catch::Matchers::ContainsSubstring("Parquet is not supported"));
  CHECK_THAT(files.error({"b.xz"}), Catch::Matchers::ContainsSubstring("xz; unxz -k "));
  CHECK_THAT(files.error({"c.parquet.gz"}),
             Catch::Matchers::ContainsSubstring("Parquet is not supported"));
  CHECK_THAT(files.error({"d.TAR.GZ"}), Catch::Matchers::ContainsSubstring("tar -xzf "));
  CHECK_THAT(files.error({"d"}),
             Catch::Matchers::ContainsSubstring("none of its files has the extension of a text"));
  CHECK_THAT(files.error({"missing.txt"}), Catch::Matchers::ContainsSubstring("no such file"));
  CHECK_THAT(files.error({"*.tsv"}), Catch::Matchers::ContainsSubstring("no such file"));
  CHECK_THAT(files.error({"t.txt", "d/../t.txt"}),
             Catch::Matchers::ContainsSubstring("is named twice"));
}

}  // namespace dstrain::preprocess
