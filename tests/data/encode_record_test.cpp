#include "runtime/data/encode_record.h"

#include "runtime/data/json_record.h"
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
  const auto found = data::ChatTemplate::parse(
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

TEST_CASE("EncodeRecord: answers that are not learned stay in the text", "[data][records]") {
  const WordEncoder words({.chat = chatml_chat()});
  Record chat = chat_of({{"user", "ab"}, {"assistant", "cd"}, {"user", "ef"}, {"assistant", "gh"}});
  const EncodedRecord all = encode(chat, words);
  chat.conversation.learned = {true, false, true, true};
  const EncodedRecord some = encode(chat, words);
  CHECK(some.ids == all.ids);
  REQUIRE(all.counted.size() == 2);
  CHECK(some.counted == Ranges{all.counted[1]});
}

TEST_CASE("EncodeRecord: what the template cannot express is refused", "[data][records]") {
  const WordEncoder words({.chat = chatml_chat()});
  const auto error = [&](const Record& chat) {
    return error_of([&] { data::encode_record(chat, words, "d.jsonl:2"); });
  };
  Record tools = chat_of({{"user", "ab"}});
  tools.conversation.variables["tools"] = {"f"};
  CHECK(error(tools) == "d.jsonl:2: tools: the chat template has no place for them");
  Record thoughts = chat_of({{"assistant", "ab"}});
  thoughts.conversation.messages[0]["reasoning_content"] = "cd";
  CHECK(error(thoughts) ==
        "d.jsonl:2: messages[0] (assistant): the chat template leaves out its thoughts; write them "
        "into its content, or leave them out of the record");
}

TEST_CASE("EncodeRecord: messages without a template are refused", "[data][records]") {
  const Record chat = chat_of({{"user", "ab"}});
  CHECK(error_of([&] { data::encode_record(chat, *data::make_encoder("byte"), "d.jsonl:2"); }) ==
        "d.jsonl:2: a conversation: the byte tokenizer has no chat template; add --tokenizer DIR "
        "with a "
        "tokenizer that has one, or give prompt and completion instead");
  CHECK(error_of([&] { data::encode_record(chat, WordEncoder(), "d.jsonl:2"); }) ==
        "d.jsonl:2: a conversation: there is no chat template");
}

}  // namespace dstrain::test
