// How long chats take to be rendered, answers found, and to become tokens, on one thread; a JSON
// line. The environment may name a directory with a tokenizer and a chat template
// (DSTRAIN_TOKENIZER) and a number of chats (DSTRAIN_CHATS).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/data/encode_record.h"
#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/json_record.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

/// Chats of three questions and answers of some 40 words each.
data::Record chat_number(int number) {
  data::Record chat{.kind = data::RecordKind::messages};
  const auto add = [&](const char* role, int turn) {
    std::string text;
    for (int word = 0; word < 40; ++word) {
      text +=
          fmt::format("{}word{} ", word % 9 == 0 ? "The " : "", (number * 7 + turn + word) % 97);
    }
    chat.conversation.messages.push_back({{"role", role}, {"content", text}});
    chat.conversation.learned.push_back(true);
  };
  for (int turn = 0; turn < 3; ++turn) {
    add("user", turn);
    add("assistant", turn);
  }
  return chat;
}

template <class Run>
double seconds_of(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("ChatTemplate bench: rendering beside tokenizing", "[bench]") {
  const test::TempDir folder;
  const char* const given = std::getenv("DSTRAIN_TOKENIZER");
  const char* const number = std::getenv("DSTRAIN_CHATS");
  std::string directory = given == nullptr ? folder.path().string() : given;
  if (given == nullptr) {
    std::filesystem::copy(DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers/qwen2", directory,
                          std::filesystem::copy_options::recursive);
    std::filesystem::copy(DSTRAIN_SOURCE_DIR "/tests/golden/chat_templates/qwen3.jinja",
                          directory + "/chat_template.jinja");
  }
  const data::HuggingFaceEncoder encoder(directory);
  REQUIRE(encoder.chat_template() != nullptr);
  const int chats = number == nullptr ? 1000 : std::atoi(number);
  std::vector<data::Record> records;
  for (int i = 0; i < chats; ++i) records.push_back(chat_number(i));
  std::size_t bytes = 0;
  std::size_t tokens = 0;
  std::vector<std::string> texts;
  const double render = seconds_of([&] {
    for (const data::Record& record : records) {
      auto chat = encoder.chat_template()->render(record.conversation, encoder);
      bytes += chat.value().text.size();
      texts.push_back(std::move(chat.value().text));
    }
  });
  const double tokenize = seconds_of([&] {
    for (const std::string& text : texts) tokens += encoder.encode(text).size();
  });
  const double both = seconds_of([&] {
    for (const data::Record& record : records) {
      static_cast<void>(data::encode_record(record, encoder, "chat"));
    }
  });
  std::printf(R"({"chats":%d,"bytes":%zu,"tokens":%zu,"render_s":%.3f,"tokenize_once_s":%.3f,)"
              R"("encode_record_s":%.3f})"
              "\n",
              chats, bytes, tokens, render, tokenize, both);
}
