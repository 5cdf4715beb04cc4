#include "runtime/data/encode_record.h"

#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

using data::EncodedRecord;
using data::Record;
using data::RecordKind;
using Ranges = std::vector<data::TokenRange>;

std::unique_ptr<data::ChatTemplate> chatml_chat() {
  const auto found = data::ChatTemplate::recognise(
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
      "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}",
      {});
  return std::make_unique<data::ChatTemplate>(found.value());
}

EncodedRecord encode(const Record& record, const data::TextEncoder& encoder) {
  return data::encode_record(record, encoder, "p");
}

Record completion(std::string prompt, std::string answer) {
  return {.kind = RecordKind::completion,
          .text = std::move(prompt),
          .completion = std::move(answer),
          .conversation = {}};
}

using Turns = std::vector<std::pair<std::string, std::string>>;  // role and content

Record chat_of(const Turns& turns) {
  Record chat{.kind = RecordKind::messages};
  for (const auto& [role, content] : turns) {
    chat.conversation.messages.push_back({{"role", role}, {"content", content}});
    chat.conversation.learned.push_back(true);
  }
  return chat;
}

}  // namespace

TEST_CASE("EncodeRecord: all tokens of a text count and an end token follows", "[data][records]") {
  const WordEncoder words;
  const EncodedRecord one = encode({.text = "ab cd"}, words);
  CHECK(one.ids == words.encode("ab cd</s>"));
  CHECK(one.counted == Ranges{{0, 3}});
  CHECK(encode({.text = "ab</s>"}, words).ids == words.encode("ab</s>"));
  CHECK(encode({.text = ""}, words).ids == words.encode("</s>"));
  const auto bytes = data::make_encoder("byte");
  CHECK(encode({.text = "ab"}, *bytes).ids == std::vector<std::int32_t>{97, 98});
  const WordEncoder begins({.begins_with = "<s>"});
  CHECK(encode({.text = "ab"}, begins).ids == words.encode("<s>ab</s>"));
}

TEST_CASE("EncodeRecord: only the completion counts and not the prompt", "[data][records]") {
  const WordEncoder words;
  const EncodedRecord two = encode(completion("ab cd", " ef gh"), words);
  CHECK(two.ids == words.encode("ab cd ef gh</s>"));
  CHECK(two.counted == Ranges{{2, 5}});
  // "cd" and "ef" become one token, which is none of the prompt's.
  const EncodedRecord joined = encode(completion("ab cd", "ef"), words);
  CHECK(joined.ids == words.encode("ab cdef</s>"));
  CHECK(joined.counted == Ranges{{1, 3}});
  CHECK(encode(completion("", "ab"), words).counted == Ranges{{0, 2}});
  CHECK(encode(completion("ab", ""), words).counted == Ranges{{1, 2}});
  const WordEncoder begins({.begins_with = "<s>"});
  const EncodedRecord begun = encode(completion("ab", " cd"), begins);
  CHECK(begun.ids == words.encode("<s>ab cd</s>"));
  CHECK(begun.counted == Ranges{{2, 4}});
}

TEST_CASE("EncodeRecord: only answers in messages count with their end tokens", "[data][records]") {
  const WordEncoder words({.chat = chatml_chat()});
  const Record chat =
      chat_of({{"user", "ab"}, {"assistant", "cd ef"}, {"user", "gh"}, {"assistant", ""}});
  const EncodedRecord encoded = encode(chat, words);
  // <|im_start|> user "\nab" <|im_end|> "\n" and so on: "\n" joins what follows it.
  CHECK(encoded.ids ==
        words.encode("<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\ncd ef<|im_end|>\n"
                     "<|im_start|>user\ngh<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n"));
  std::vector<std::int32_t> counted;
  for (const auto& [begin, end] : encoded.counted) {
    counted.insert(counted.end(), encoded.ids.begin() + begin, encoded.ids.begin() + end);
  }
  CHECK(counted == words.encode("\ncd ef<|im_end|><|im_end|>"));
  CHECK(encoded.counted.size() == 2);
}

TEST_CASE("EncodeRecord: unknown roles are reported with the known ones", "[data][records]") {
  const WordEncoder words({.chat = chatml_chat()});
  const auto error = [&](const Turns& turns) {
    return error_of([&] { data::encode_record(chat_of(turns), words, "d.jsonl:2"); });
  };
  CHECK_THAT(
      error({{"human", "ab"}, {"gpt", "cd"}, {"human", "ef"}}),
      Catch::Matchers::StartsWith("d.jsonl:2: the roles are human, gpt, and those known are "
                                  "system, user and assistant:\n  jq -cn 'inputs | "
                                  "(.messages[].role) |= (ascii_downcase | {human: \"user\"") &&
          Catch::Matchers::ContainsSubstring("[.] // .)' d.jsonl > d-converted.jsonl"));
  CHECK_THAT(error({{"user", "ab"}, {"model", "cd"}}),
             Catch::Matchers::StartsWith("d.jsonl:2: the roles are user, model, and"));
  CHECK_THAT(error({{"User", "ab"}, {"Assistant", "cd"}}),
             Catch::Matchers::StartsWith("d.jsonl:2: the roles are User, Assistant, and"));
  // Beside answers of assistant, too: those of others would not be learned.
  for (const std::string role : {"gpt", "Assistant", "human", "model", "bot"}) {
    CAPTURE(role);
    CHECK_THAT(error({{"user", "ab"}, {"assistant", "cd"}, {"user", "ef"}, {role, "gh"}}),
               Catch::Matchers::StartsWith("d.jsonl:2: the roles are user, assistant, " + role +
                                           ", and those known are"));
  }
  CHECK(error({{"system", "ab"}, {"tool", "cd"}, {"developer", "ab"}, {"assistant", "c"}}) == "");
}

TEST_CASE("EncodeRecord: unusual roles are reported with how to rename them", "[data][records]") {
  const WordEncoder words({.chat = chatml_chat()});
  const auto error = [&](const Turns& turns) {
    return error_of([&] { data::encode_record(chat_of(turns), words, "d.jsonl:2"); });
  };
  CHECK_THAT(error({{"A", "ab"}, {"it's", "cd"}, {"A", "ef"}}),
             Catch::Matchers::StartsWith("d.jsonl:2: the roles are A, it's, and those known are "
                                         "system, user and assistant; check that the command "
                                         "gives each the right one:\n  jq -cn 'inputs | "
                                         "(.messages[].role) |= (ascii_downcase | {") &&
                 Catch::Matchers::ContainsSubstring(
                     R"("a": "user", "it\u0027s": "assistant"}[.] // .)' d.jsonl > )"));
  CHECK_THAT(error({{"User", "ab"}, {"Chatbot", "cd"}}),
             Catch::Matchers::ContainsSubstring(R"(, "chatbot": "assistant"}[.])"));
  CHECK_THAT(error({{"user", "ab"}, {"assistant", "cd"}, {"critic", "cd"}}),
             Catch::Matchers::ContainsSubstring(R"(, "critic": "user"}[.])"));
}

TEST_CASE("EncodeRecord: messages without a template are refused", "[data][records]") {
  const Record chat = chat_of({{"user", "ab"}});
  CHECK(error_of([&] { data::encode_record(chat, *data::make_encoder("byte"), "d.jsonl:2"); }) ==
        "d.jsonl:2: messages: the byte tokenizer has no chat template; add --tokenizer DIR with a "
        "tokenizer that has one, or give prompt and completion instead");
  CHECK(error_of([&] { data::encode_record(chat, WordEncoder(), "d.jsonl:2"); }) ==
        "d.jsonl:2: messages: there is no chat template");
}

}  // namespace dstrain::test
