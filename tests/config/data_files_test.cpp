// The files of a mixture on the command line: weights before them, as Megatron's --data-path.
#include "runtime/config/data_files.h"

#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::options_error;

TEST_CASE("DataFiles: words are files or weights and files", "[config][options]") {
  struct Row {
    Arguments words;
    std::vector<DataFile> files;
  };
  const Row row = GENERATE(values<Row>({
      {{"a"}, {{"a"}}},
      {{"7"}, {{"7"}}},
      {{"nan"}, {{"nan"}}},
      {{"a", "b", "c"}, {{"a"}, {"b"}, {"c"}}},
      {{"1", "a"}, {{"a", 1}}},
      {{"0.7", "a", "3e-1", "b"}, {{"a", 0.7}, {"b", 0.3}}},
      {{"70", "a", "30", "30"}, {{"a", 70}, {"30", 30}}},
  }));
  CAPTURE(row.words);
  const auto parsed = parse_data_files(row.words);
  REQUIRE(parsed.ok());
  CHECK(parsed.value() == row.files);
  for (const std::string name : {"--train_file", "--data-path", "--train-data-path"}) {
    Arguments arguments{"--lr", "1", name};
    arguments.insert(arguments.end(), row.words.begin(), row.words.end());
    arguments.insert(arguments.end(), {"--seed", "3"});
    const TrainOptions options = read_train_flags(arguments);
    CHECK(options.train_file.value == row.files);
    CHECK(options.seed.value == 3);
  }
}

TEST_CASE("DataFiles: their description parses back to the same files", "[config][options]") {
  for (const Arguments& words : {Arguments{"a"}, {"a", "b"}, {"0.7", "a", "0.3", "b"}}) {
    const auto files = parse_data_files(words);
    REQUIRE(files.ok());
    std::string joined = words.front();
    for (std::size_t i = 1; i < words.size(); ++i) joined += " " + words[i];
    CHECK(describe(files.value()) == joined);
  }
}

TEST_CASE("DataFiles: each problem gives one line", "[config][options]") {
  struct Row {
    Arguments words;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {{"0", "a", "1", "b"}, "the weight of a file must be above 0 and below 1e+100, got 0"},
      {{"1", "a", "-2", "b"}, "the weight of a file must be above 0 and below 1e+100, got -2"},
      {{"nan", "a"}, "the weight of a file must be above 0 and below 1e+100, got nan"},
      {{"1", "a", "inf", "b"}, "the weight of a file must be above 0 and below 1e+100, got inf"},
      {{"1e308", "a", "1", "b"},
       "the weight of a file must be above 0 and below 1e+100, got 1e308"},
      {{"0.7", "a", "0.3"}, "no file follows the weight 0.3"},
      {{"0.7", "a", "b", "0.3"},
       "\"b\" stands where a weight is expected: give one before each file, as in 0.7 A 0.3 B, or "
       "none at all"},
      {{"a", "0.7", "b", "0.3"},
       "\"a\" stands where a weight is expected: give one before each file, as in 0.7 A 0.3 B, or "
       "none at all"},
      {{"a", ""}, "needs a value"},
  }));
  Arguments arguments{"--validation_file"};
  arguments.insert(arguments.end(), row.words.begin(), row.words.end());
  CHECK(options_error(arguments) == "--validation_file: " + row.message);
}

TEST_CASE("DataFiles: names of roles are given with the role that each stands for",
          "[config][options]") {
  const auto names = [](const Arguments& arguments) {
    return parse_role_names(read_train_flags(arguments).role_names.value).value();
  };
  using Names = std::map<std::string, std::string>;
  CHECK(names({}).empty());
  CHECK(names({"--role_names", "narrator=system", "the pupil=user", "--seed", "1"}) ==
        Names{{"narrator", "system"}, {"the pupil", "user"}});
  CHECK(names({"--role-names", "a=tool b=user", "--role_names=c=user"}) ==
        Names{{"a", "tool"}, {"b", "user"}, {"c", "user"}});
  CHECK(options_error({"--role_names", "pupil"}) ==
        "--role_names: expected NAME=ROLE, as in narrator=system, got \"pupil\"");
  CHECK(options_error({"--role_names", "pupil=student"}) ==
        "--role_names: pupil=student: the role must be user, assistant, system, tool, developer, "
        "ipython");
  CHECK(options_error({"--role_names", "a=user", "a=tool"}) ==
        "--role_names: a is both user and tool");
}

TEST_CASE("DataFiles: a repeated option is refused with the remedy", "[config][options]") {
  CHECK(options_error({"--train-file", "a", "--lr", "1", "--train_file=b"}) ==
        "--train_file: is given 2 times; give all files to one option, with or without weights: "
        "--train_file 0.7 A 0.3 B");
  CHECK(options_error({"--train_file", "a", "--data_path", "1", "a", "2", "b"}) ==
        "--train_file a and --data_path 1 a 2 b are the same option; keep one");
  CHECK(contains(options_error({"--data-args-path", "words.txt"}),
                 "give the words of that file to --train_file"));
}
