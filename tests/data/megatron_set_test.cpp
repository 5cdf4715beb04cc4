#include "runtime/data/megatron_set.h"

#include <limits>

#include "runtime/data/open_samples.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;
using data::MegatronSet;

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// What an index claims; where `offsets` is empty, sequences lie one after another.
struct IndexClaim {
  std::uint64_t version = 1;
  std::uint8_t dtype = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> documents;
  std::vector<std::int64_t> offsets{};
  std::int64_t id_bytes = 2;
  std::string tail{};
};

std::string index_bytes(const IndexClaim& index) {
  std::string bytes("MMIDIDX\0\0", 9);
  append(bytes, index.version);
  append(bytes, index.dtype);
  append(bytes, std::uint64_t{index.lengths.size()});
  append(bytes, std::uint64_t{index.documents.size()});
  for (const std::int32_t length : index.lengths) append(bytes, length);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.lengths.size(); ++i) {
    append(bytes, index.offsets.empty() ? offset : index.offsets[i]);
    offset += index.lengths[i] * index.id_bytes;
  }
  for (const std::int64_t document : index.documents) append(bytes, document);
  return bytes + index.tail;
}

template <class Id>
std::string id_bytes(const std::vector<Id>& ids) {
  std::string bytes;
  for (const Id id : ids) append(bytes, id);
  return bytes;
}

Ids all_tokens(const data::TokenStream& stream) {
  Ids tokens(static_cast<std::size_t>(stream.size()));
  stream.read(0, tokens);
  return tokens;
}

class MegatronFiles {
 public:
  MegatronFiles(const std::string& index, const std::string& ids) {
    write_file(prefix() + ".idx", index);
    write_file(prefix() + ".bin", ids);
  }
  std::string prefix() const { return (directory_.path() / "m").string(); }
  Ids tokens(std::int64_t vocabulary) const {
    return all_tokens(MegatronSet(prefix(), vocabulary));
  }
  /// What opening and reading complains of, without the directory.
  std::string error(std::int64_t vocabulary = 100) const {
    const std::string message = error_of([&] { tokens(vocabulary); });
    return message.empty() ? "" : message.substr(prefix().size() - 1);
  }

 private:
  TempDir directory_;
};

/// Of three sequences with 5 tokens, in two documents.
IndexClaim small_index() {
  return {.lengths = {2, 0, 3}, .documents = {0, 1, 3}};
}

std::string error_of_index(const IndexClaim& index) {
  return MegatronFiles(index_bytes(index), id_bytes<std::uint16_t>({1, 2, 3, 4, 5})).error();
}

template <class Id>
Ids read_as(std::uint8_t dtype) {
  IndexClaim index = small_index();
  index.dtype = dtype;
  index.id_bytes = sizeof(Id);
  return MegatronFiles(index_bytes(index), id_bytes<Id>({1, 2, 3, 4, 99})).tokens(100);
}

}  // namespace

TEST_CASE("MegatronSet: every dtype is read", "[data][megatron]") {
  const Ids expected{1, 2, 3, 4, 99};
  CHECK(read_as<std::uint8_t>(1) == expected);
  CHECK(read_as<std::int8_t>(2) == expected);
  CHECK(read_as<std::int16_t>(3) == expected);
  CHECK(read_as<std::int32_t>(4) == expected);
  CHECK(read_as<std::int64_t>(5) == expected);
  CHECK(read_as<double>(6) == expected);
  CHECK(read_as<float>(7) == expected);
  CHECK(read_as<std::uint16_t>(8) == expected);
}

TEST_CASE("MegatronSet: documents begin at their first token", "[data][megatron]") {
  const MegatronFiles set(index_bytes({.lengths = {2, 0, 3}, .documents = {0, 1, 1, 3}}),
                          id_bytes<std::uint16_t>({1, 2, 3, 4, 5}));
  const MegatronSet opened(set.prefix(), 100);
  CHECK(opened.document_starts() == std::vector<std::int64_t>{0, 2, 2, 5});
  CHECK(opened.bytes() == 10 + 34 + 3 * 12 + 4 * 8);
  CHECK_FALSE(opened.is_text());
}

TEST_CASE("MegatronSet: any of its three names opens it", "[data][megatron]") {
  const MegatronFiles set(index_bytes(small_index()), id_bytes<std::uint16_t>({1, 2, 3, 4, 5}));
  for (const std::string ending : {"", ".bin", ".idx"}) {
    CAPTURE(ending);
    const auto samples = data::open_samples(set.prefix() + ending, *data::make_encoder("byte"),
                                            {.sizes = {2}, .vocabulary = 100});
    CHECK(samples->samples() == 2);
    Ids tokens(2);
    Ids labels(2);
    samples->read(1, {tokens, labels});
    CHECK(tokens == Ids{3, 4});
    CHECK(labels == Ids{4, 5});
  }
  const auto apart =
      data::open_samples(set.prefix(), *data::make_encoder("byte"),
                         {.sizes = {.tokens = 4, .documents = true}, .vocabulary = 100});
  data::SampleBuffer sample(1, apart->sizes());
  apart->read(0, sample.rows());
  CHECK(sample.document_start == Ids{0, 0, 2, 2});  // of documents 1 2, none and 3 4 5
  write_file(set.prefix(), "a text beside it");
  CHECK(data::open_samples(set.prefix(), *data::make_encoder("byte"),
                           {.sizes = {2}, .vocabulary = 256})
            ->is_text());
}

TEST_CASE("MegatronSet: a split cuts between sequences as Megatron's", "[data][megatron]") {
  // Sequences 1 2 | 3 4 5 6 7 | 8 9 10 | 11 12 13; halves of 4 sequences are 2 and 2.
  const MegatronFiles set(index_bytes({.lengths = {2, 5, 3, 3}, .documents = {0, 1, 2, 3, 4}}),
                          id_bytes<std::uint16_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  const auto open = [&](const std::vector<double>& split) {
    return data::open_samples(set.prefix(), *data::make_encoder("byte"),
                              {.sizes = {2}, .vocabulary = 100, .cache = {}, .split = split});
  };
  const auto first_tokens = [](const data::SampleSource& source, const data::SampleRange& range) {
    Ids firsts;
    Ids tokens(2);
    Ids labels(2);
    for (std::int64_t k = range.first; k < range.first + range.count; ++k) {
      source.read(k, {tokens, labels});
      CHECK(labels == Ids{tokens[1], tokens[1] + 1});
      firsts.push_back(tokens[0]);
    }
    return firsts;
  };
  const auto halves = open({1, 1, 0});
  CHECK(halves->splits_documents());
  CHECK(first_tokens(*halves, halves->split().training) == Ids{1, 3, 5});
  CHECK(first_tokens(*halves, halves->split().validation) == Ids{8, 10});
  const auto quarters = open({2, 1, 1});
  CHECK(first_tokens(*quarters, quarters->split().training) == Ids{1, 3, 5});
  CHECK(first_tokens(*quarters, quarters->split().validation) == Ids{8});
  CHECK(quarters->samples() == 5);
  const auto all = open({1, 0, 0});
  CHECK(first_tokens(*all, all->split().training) == Ids{1, 3, 5, 7, 9, 11});
  CHECK(all->split().validation.count == 0);
}

TEST_CASE("MegatronSet: an index that contradicts itself is refused", "[data][megatron]") {
  const auto error = [](auto&& change) {
    IndexClaim index = small_index();
    change(index);
    return error_of_index(index);
  };
  CHECK(error([](IndexClaim&) {}) == "");
  CHECK(error([](IndexClaim& index) { index.version = 2; }) ==
        "m.idx: version 2 is unknown; expected 1");
  CHECK(error([](IndexClaim& index) { index.dtype = 9; }) ==
        "m.idx: dtype code 9 is unknown; expected 1 to 8");
  CHECK(error([](IndexClaim& index) { index.dtype = 0; }) ==
        "m.idx: dtype code 0 is unknown; expected 1 to 8");
  CHECK(error([](IndexClaim& index) {
          index.lengths = {2, -1, 3};
          index.offsets = {0, 4, 4};
        }) == "m.idx: sequence 1 has a length of -1");
  CHECK(error([](IndexClaim& index) {
          index.offsets = {0, 4, 6};
        }) == "m.idx: sequence 2 begins at byte 6 of the .bin, but those before it end at 4");
  CHECK(error([](IndexClaim& index) {
          index.lengths = {2, 0, 4};
        }) == "m.bin: the index claims 6 tokens of 2 bytes, but the file has 10 bytes");
  CHECK(error([](IndexClaim& index) {
          index.documents = {0, 2};
        }) == "m.idx: the document indices end at 2, and there are 3 sequences");
  CHECK(error([](IndexClaim& index) { index.documents = {}; }) ==
        "m.idx: the document indices end at 0, and there are 3 sequences");
  for (const std::vector<std::int64_t>& documents :
       {std::vector<std::int64_t>{1, 3}, {0, 2, 1, 3}, {0, 4}, {0, -1, 3}}) {
    CAPTURE(documents);
    CHECK_THAT(
        error([&](IndexClaim& index) { index.documents = documents; }),
        Catch::Matchers::ContainsSubstring("the first is 0, and they rise to the 3 sequences"));
  }
  CHECK(error([](IndexClaim& index) { index.tail = "12"; }) ==
        "m.idx: 3 sequences and 3 document indices take 94 bytes, but the file has 96");
  CHECK_THAT(error([](IndexClaim& index) { index.tail = "123"; }),
             Catch::Matchers::ContainsSubstring("multimodal"));
}

TEST_CASE("MegatronSet: a damaged header is refused", "[data][megatron]") {
  const std::string good = index_bytes(small_index());
  const auto error = [](const std::string& index) {
    return MegatronFiles(index, id_bytes<std::uint16_t>({1, 2, 3, 4, 5})).error();
  };
  CHECK(error("") == "m.idx: the file is empty");
  CHECK(error("MMIDIDX") == "m.idx: is not the index of a Megatron set");
  CHECK(error(good.substr(0, 33)) == "m.idx: 33 bytes are too few for the header of an index");
  CHECK(error(good.substr(0, 90)) ==
        "m.idx: 3 sequences and 3 document indices take 94 bytes, but the file has 90");
  CHECK_THAT(error(std::string("TNTIDX\0\0", 8) + good),
             Catch::Matchers::ContainsSubstring("fairseq's older format"));
  for (const std::int64_t count :
       {std::int64_t{-1}, std::int64_t{12}, std::numeric_limits<std::int64_t>::max()}) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 18, &count, sizeof count);
    CAPTURE(count);
    CHECK_THAT(error(bytes),
               Catch::Matchers::ContainsSubstring("m.idx: byte 18: ") &&
                   Catch::Matchers::ContainsSubstring("sequences do not fit into the 94 bytes"));
  }
}

TEST_CASE("MegatronSet: a bad id is named with its position", "[data][megatron]") {
  const auto error = [](std::uint8_t dtype, const std::string& ids) {
    IndexClaim index{.dtype = dtype, .lengths = {3}, .documents = {0, 1}};
    return MegatronFiles(index_bytes(index), ids).error();
  };
  CHECK(error(8, id_bytes<std::uint16_t>({1, 100, 3})) ==
        "m.bin: token 1 is 100, but the model's vocabulary ends at 99");
  CHECK(error(2, id_bytes<std::int8_t>({1, 2, -3})) == "m.bin: token 2 is -3, which is not an id");
  CHECK(error(5, id_bytes<std::int64_t>({1LL << 40, 2, 3})) ==
        "m.bin: token 0 is 1099511627776, but the model's vocabulary ends at 99");
  CHECK(error(7, id_bytes<float>({1, 2.5F, 3})) == "m.bin: token 1 is 2.5, which is not an id");
  CHECK(error(6, id_bytes<double>({1, std::numeric_limits<double>::quiet_NaN(), 3})) ==
        "m.bin: token 1 is nan, which is not an id");
  CHECK(error(6, id_bytes<double>({1, 2, 1e300})) ==
        "m.bin: token 2 is 1e+300, but the model's vocabulary ends at 99");
}

TEST_CASE("MegatronSet: an index without its data is refused", "[data][megatron]") {
  const TempDir directory;
  const std::string prefix = (directory.path() / "m").string();
  write_file(prefix + ".idx", index_bytes(small_index()));
  CHECK(error_of([&] { MegatronSet(prefix, 100); }) == prefix + ".bin: No such file or directory");
  CHECK(data::find_megatron_prefix(prefix + ".txt") == std::nullopt);
}

TEST_CASE("MegatronSet: the error for a prefix without an index names the index",
          "[data][megatron]") {
  const TempDir directory;
  const std::string prefix = (directory.path() / "m_text_document").string();
  write_file(prefix + ".bin", "ab");
  for (const std::string& name : {prefix, prefix + ".bin"}) {
    CHECK(error_of([&] {
            data::open_samples(name, *data::make_encoder("byte"),
                               {.sizes = {4}, .vocabulary = 65536});
          }) == prefix + ".bin: is named as the ids of a Megatron set, and its index " + prefix +
                    ".idx is missing beside it; copy both files");
  }
}

}  // namespace dstrain::test
