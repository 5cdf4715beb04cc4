// learn_tokenizer FILE VOCABULARY THREADS DIRECTORY: learns a byte-level BPE from a text file on
// that many threads, writes its files, and prints the seconds that counting and learning took.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/os/file.h"
#include "runtime/os/mapped_file.h"
#include "runtime/tokenizer/bpe_trainer.h"
#include "runtime/tokenizer/word_cut.h"

namespace {

using namespace dstrain;

/// About `count` parts of equal size, cut where words allow it.
std::vector<std::string_view> parts_of(std::string_view text, std::size_t count) {
  const std::size_t bytes = text.size() / count + 1;
  std::vector<std::string_view> parts;
  while (text.size() > bytes) {
    const std::size_t cut = tokenizer::last_word_cut(text.substr(0, bytes));
    if (cut == 0) break;
    parts.push_back(text.substr(0, cut));
    text.remove_prefix(cut);
  }
  parts.push_back(text);
  return parts;
}

void learn(const std::filesystem::path& file,
           std::int64_t vocabulary_size,
           std::size_t threads,
           const std::filesystem::path& directory) {
  const MappedFile mapped(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  const auto trainer = tokenizer::make_bpe_trainer();
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> workers;
    for (const std::string_view part : parts_of(text, threads)) {
      workers.emplace_back([&trainer, part] { trainer->add(part); });
    }
  }
  const auto counted = std::chrono::steady_clock::now();
  const auto learnt = trainer->learn(vocabulary_size);
  const auto end = std::chrono::steady_clock::now();
  std::filesystem::create_directories(directory);
  write_text_file(directory / "tokenizer.json", learnt.tokenizer_json);
  write_text_file(directory / "tokenizer_config.json", learnt.tokenizer_config_json);
  using Seconds = std::chrono::duration<double>;
  fmt::print("{:.2f} {:.2f}\n", Seconds(counted - begin).count(), Seconds(end - counted).count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: learn_tokenizer FILE VOCABULARY THREADS DIRECTORY\n");
    return 2;
  }
  try {
    learn(argv[1], std::stoll(argv[2]), std::stoul(argv[3]), argv[4]);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
