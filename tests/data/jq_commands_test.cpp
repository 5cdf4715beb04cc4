// Runs the commands that messages give for records of other programs, as they are printed.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "runtime/data/foreign_format.h"
#include "runtime/data/jq_command.h"
#include "runtime/data/json_record.h"
#include "runtime/data/tokenize_file.h"
#include "runtime/os/mapped_file.h"
#include "tests/data/token_files.h"
#include "tests/data/word_encoder.h"
#include "tests/support/catch.h"
#include "tests/support/command_of.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

std::string shown(const data::Record& record) {
  if (record.kind == data::RecordKind::text) return record.text;
  if (record.kind == data::RecordKind::completion) return record.text + "|" + record.completion;
  std::string turns;
  for (const auto& message : record.conversation.messages) {
    turns += (turns.empty() ? "" : " ") + message.at("role").get<std::string>() + ":" +
             message.at("content").get<std::string>();
  }
  return turns;
}

/// A file of records in a folder whose name a shell would take apart.
class ForeignFile {
 public:
  ForeignFile(const std::string& name, const std::string& text) {
    if (std::system("command -v jq > /dev/null") != 0) skip("jq is not installed");
    std::filesystem::create_directories(directory_.path() / folder);
    path_ = write_file(directory_.path() / folder / name, text);
    first_line_ = text.substr(0, text.find('\n'));
  }
  /// Of its first record, or of the document that it is.
  std::string error() const {
    std::ifstream in(path_);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return error_of([&] {
      data::refuse_json_document(path_, text);
      data::parse_record(first_line_, path_ + ":1");
    });
  }
  /// Of all its lines, as training reads them; the file's name in it is FILE.
  std::string trained_error() const {
    const MappedFile file(path_);
    std::string message = error_of([&] {
      data::tokenize_json_lines({path_, file.bytes()}, WordEncoder(), directory_.path() / "tokens");
    });
    for (std::size_t at = 0; (at = message.find(path_)) != message.npos;) {
      message.replace(at, path_.size(), "FILE");
    }
    return message;
  }
  /// What the command in that message leaves in files beside it, each with its name.
  std::string left_by_command() const {
    const MappedFile file(path_);
    const std::string message = error_of([&] {
      data::tokenize_json_lines({path_, file.bytes()}, WordEncoder(), directory_.path() / "tokens");
    });
    const std::string command = command_of(message);
    if (command.empty()) return "no command: " + message;
    const std::string quiet = "{ " + command + "; } 2> /dev/null";
    std::string left = std::system(quiet.c_str()) == 0 ? "" : "failed ";
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() / folder)) {
      if (entry.path() != path_) files.insert(entry.path());
    }
    for (const std::filesystem::path& made : files) {
      std::ifstream in(made);
      left +=
          made.filename().string() + ":\n" + std::string{std::istreambuf_iterator<char>(in), {}};
    }
    return left;
  }
  /// What the command in the message makes of the file: a line for each record, and for one that
  /// is refused the reason.
  std::string converted() const {
    const std::string message = error();
    const std::string command = command_of(message);
    if (!command.starts_with("jq -cn ")) return "no command: " + message;
    // What jq says is in the way of the tests' own lines.
    const std::string quiet = "{ " + command + "; } 2> /dev/null";
    if (std::system(quiet.c_str()) != 0) {
      return std::filesystem::exists(data::converted_name(path_)) ? "part of it" : "failed";
    }
    std::ifstream in(data::converted_name(path_));
    std::string lines;
    for (std::string line; std::getline(in, line);) {
      std::string record;
      const std::string why =
          error_of([&] { record = shown(data::parse_record(line, "out.jsonl:1")); });
      lines += (why.empty() ? record : why.substr(0, why.find(before_command))) + "\n";
    }
    return lines;
  }

 private:
  static constexpr const char* folder = "it's a $folder";

  TempDir directory_;
  std::string path_;
  std::string first_line_;
};

struct Row {
  std::string name;
  std::string file;
  std::string result;
};

}  // namespace

TEST_CASE("JqCommands: conversations of other programs become messages", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"ShareGPT, with a system message in some",
       R"({"conversations": [{"from": "human", "value": "a\n'"}, {"from": "gpt", "value": "b"}]}
{"conversations": [{"from": "Human", "value": "c"}, {"from": "GPT", "value": "d"}], "system": "S"}
{"system": "", "conversations": [{"from": "system", "value": "T"}, {"from": "user", )"
       R"("value": "e"}]})",
       "user:a\n' assistant:b\nsystem:S user:c assistant:d\nsystem:T user:e\n"},
      {"ShareGPT, with what is not built in later records",
       R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b", "weight": 0}]}
{"conversations": [{"from": "human", "value": "a"}], "tools": "[{\"name\": \"f\"}]"}
{"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", "value": "{}"}]}
{"conversations": [{"from": "human", "value": "<image>"}], "images": ["a.jpg"]}
{"conversations": [{"from": "human", "value": "a", "weight": 0}], "tools": "[]", "mask": "User"})",
       "user:a assistant:b\n"
       "out.jsonl:1: messages[1]: weight 0 is not implemented: the answer would be learned as any "
       "other; split the conversation before it, or leave the record out\n"
       "out.jsonl:1: tools is not implemented; leave it out\n"
       "out.jsonl:1: messages[1]: the role function_call is not implemented; leave the record out\n"
       "out.jsonl:1: images is not implemented; leave it out\n"
       "user:a\n"},
      {"names of turns",
       R"({"conversations": [{"role": "user", "content": "a"}], "system": "S"}
{"conversations": [{"role": "user", "content": "b"}]})",
       "system:S user:a\nuser:b\n"},
      {"names of turns, the first without a system message",
       R"({"conversations": [{"role": "user", "content": "a"}]}
{"conversations": [{"role": "user", "content": "b"}], "system": "S"})",
       "user:a\nout.jsonl:1: system is beside messages and would be ignored; put it in\n"},
      {"messages with a system message beside them",
       R"({"system": "S", "messages": [{"role": "user", "content": "a"}]}
{"messages": [{"role": "user", "content": "b"}]})",
       "system:S user:a\nuser:b\n"},
      {"messages with from and value",
       R"({"messages": [{"from": "human", "value": "a"}, {"from": "ai", "value": "b"}]})",
       "user:a assistant:b\n"},
      {"messages with role and value",
       R"({"messages": [{"role": "User", "value": "a"}, {"role": "Assistant", "value": "b"}]})",
       "user:a assistant:b\n"},
      {"MOSS",
       R"({"conversation": [{"human": "a", "assistant": "b"}, {"human": "c", "assistant": "d"}]})",
       "user:a assistant:b user:c assistant:d\n"},
      {"XTuner",
       R"({"conversation": [{"system": "S", "input": "a", "output": "b"}, {"input": "c", )"
       R"("output": "d"}]}
{"conversation": [{"input": "a", "output": "b", "output_with_loss": false}]})",
       "system:S user:a assistant:b user:c assistant:d\n"
       "out.jsonl:1: messages[1]: output_with_loss false is not implemented: the answer would be "
       "learned as any other; split the conversation before it, or leave the record out\n"},
      {"UltraChat's first form", R"({"id": "0", "data": ["a", "b", "c"]})",
       "user:a assistant:b user:c\n"},
      {"TRL's prompt and completion of messages",
       R"({"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", )"
       R"("content": "b"}]}
{"prompt": [{"role": "assistant", "content": "a"}], "completion": [{"role": "assistant", )"
       R"("content": "b"}]})",
       "user:a assistant:b\n"
       "out.jsonl:1: messages[0]: weight 0 is not implemented: the answer would be learned as any "
       "other; split the conversation before it, or leave the record out\n"},
      {"TRL's preferences",
       R"({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", )"
       R"("content": "b"}], "rejected": []})",
       "user:a assistant:b\n"},
      {"preferences with the question in them",
       R"({"prompt": "a", "chosen": [{"role": "user", "content": "a"}, {"role": "assistant", )"
       R"("content": "b"}], "rejected": []})",
       "user:a assistant:b\n"},
      {"preferences with the question beside them",
       R"({"prompt": "a", "chosen": [{"role": "assistant", "content": "b"}], "rejected": []})",
       "user:a assistant:b\n"},
      {"preferences of which only later ones need their prompt",
       R"({"prompt": "a", "chosen": [{"role": "user", "content": "a"}, {"role": "assistant", )"
       R"("content": "b"}]}
{"prompt": "c", "chosen": [{"role": "assistant", "content": "d"}]}
{"prompt": "e", "chosen": [{"role": "user", "content": "f"}, {"role": "assistant", )"
       R"("content": "g"}]})",
       "user:a assistant:b\nuser:c assistant:d\n"
       "out.jsonl:1: holds more than one of text, prompt with completion, and messages; leave "
       "one\n"},
      {"MOSS, with a system message in later records",
       R"({"conversation": [{"human": "a", "assistant": "b"}]}
{"conversation": [{"system": "S", "human": "a", "assistant": "b"}]})",
       "user:a assistant:b\nsystem:S user:a assistant:b\n"},
      {"XTuner, with a system message in later records",
       R"({"conversation": [{"input": "a", "output": "b"}]}
{"conversation": [{"system": "S", "input": "a", "output": "b"}]})",
       "user:a assistant:b\nsystem:S user:a assistant:b\n"},
      {"turns with both pairs of names",
       R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
{"conversations": [{"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})",
       "user:a assistant:b\nuser:c assistant:d\n"},
      {"turns with both pairs of names in one conversation",
       R"({"conversations": [{"role": "user", "content": "a"}, {"from": "gpt", "value": "b"}]}
{"conversations": [{"from": "human", "value": "c"}, {"role": "assistant", "content": "d"}]})",
       "user:a assistant:b\nuser:c assistant:d\n"},
      {"messages of which the second has other names",
       R"({"messages": [{"role": "user", "content": "a"}, {"from": "gpt", "value": "b"}]})",
       "user:a assistant:b\n"},
      {"turns under items",
       R"({"id": "1", "items": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]})",
       "user:a assistant:b\n"},
      {"messages as a string", R"({"messages": "[{\"role\": \"user\", \"content\": \"a\"}]"})",
       "user:a\n"},
      {"conversations as a string",
       R"({"conversations": "[{\"from\": \"human\", \"value\": \"a\"}]"})", "user:a\n"},
      {"a request in a body",
       R"({"custom_id": "1", "body": {"model": "m", "messages": [{"role": "user", "content": )"
       R"("a"}]}})",
       "user:a\n"},
      {"a line that is a list of turns",
       R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
[{"role": "user", "content": "c"}])",
       "user:a assistant:b\nuser:c\n"},
      {"a line that is a list of ShareGPT's turns",
       R"([{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}])",
       "user:a assistant:b\n"},
      {"LLaMA-Factory's preferences",
       R"({"conversations": [{"from": "human", "value": "a"}], "chosen": {"from": "gpt", )"
       R"("value": "b"}, "rejected": {"from": "gpt", "value": "c"}})",
       "user:a assistant:b\n"},
  }));
  CAPTURE(row.name);
  CHECK(ForeignFile("d.jsonl", row.file).converted() == row.result);
}

TEST_CASE("JqCommands: a system message that a turn repeats is put in once", "[data][json]") {
  const std::string said =
      R"({"conversations": [{"from": "system", "value": "S"}, {"from": "human", "value": "a"}, )"
      R"({"from": "gpt", "value": "b"}], "system": "S"}
{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}], )"
      R"("system": "T"})";
  CHECK(ForeignFile("d.jsonl", said).converted() ==
        "system:S user:a assistant:b\nsystem:T user:a assistant:b\n");
  const std::string moss =
      R"({"meta_instruction": "M", "conversation": [{"human": "a", "assistant": "b"}]})";
  CHECK(ForeignFile("d.jsonl", moss).converted() == "system:M user:a assistant:b\n");
}

TEST_CASE("JqCommands: questions with answers become prompt and completion", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"Alpaca",
       R"({"instruction": "a", "input": "", "output": "b"}
{"instruction": "a", "input": "c", "output": "b"}
{"instruction": "a", "input": "c", "output": "b", "system": "S"}
{"instruction": "a", "output": "b", "history": [["q", "r"]]})",
       "### Instruction:\na\n\n### Response:\n|b\n"
       "### Instruction:\na\n\n### Input:\nc\n\n### Response:\n|b\n"
       "out.jsonl:1: system is beside prompt and completion and would be ignored; put it in\n"
       "out.jsonl:1: history is beside prompt and completion and would be ignored; put it "
       "in\n"},
      {"a question with a passage and with what no command keeps",
       R"({"question": "a", "passage": "P", "answer": "b"}
{"question": "a", "passage": "P", "answer": "b", "context": "C"}
{"question": "a", "answer": "b"}
{"question": "a", "answer": "b", "documents": ["D"]}
{"question": "a", "answer": "b", "choices": ["b", "c"]}
{"question": "a", "answer": "b", "reasoning": "R"}
{"question": "a", "answer": "b", "label": false}
{"question": "a", "answer": "b", "weight": 0})",
       "P\n\na\n|b\n"
       "C\n\nP\n\na\n|b\n"
       "a\n|b\n"
       "out.jsonl:1: documents is beside prompt and completion and would be ignored; leave it "
       "out, or put it in\n"
       "out.jsonl:1: choices is beside prompt and completion and would be ignored; write it "
       "into one of them, or leave it out\n"
       "out.jsonl:1: reasoning is beside prompt and completion and would be ignored; write it "
       "into one of them, or leave it out\n"
       "out.jsonl:1: label false is not implemented: the answer would be learned as a good one; "
       "leave the record out\n"
       "out.jsonl:1: weight 0 is not implemented: the record would be learned as any other; leave "
       "it out\n"},
      {"Alpaca, with an input in later records",
       R"({"instruction": "a", "output": "b"}
{"instruction": "a", "input": "c", "output": "b"}
{"instruction": "a", "input": 5, "output": "b"}
{"instruction": "a", "input": ["x"], "output": "b"}
{"instruction": "a", "input": null, "context": "d", "output": "b"})",
       "### Instruction:\na\n\n### Response:\n|b\n"
       "### Instruction:\na\n\n### Input:\nc\n\n### Response:\n|b\n"
       "### Instruction:\na\n\n### Input:\n5\n\n### Response:\n|b\n"
       "### Instruction:\na\n\n### Input:\n[\"x\"]\n\n### Response:\n|b\n"
       "### Instruction:\nd\n\na\n\n### Response:\n|b\n"},
      {"a context in later records",
       R"({"question": "a", "answer": "b"}
{"question": "a", "answer": "b", "context": "c"}
{"question": "a", "answer": "b", "context": []})",
       "a\n|b\nc\n\na\n|b\na\n|b\n"},
      {"an instruction in later records",
       R"({"input": "a", "output": "b"}
{"instruction": "I", "input": "a", "output": "b"})",
       "a\n|b\nI\na\n|b\n"},
      {"a history in later records of those with a system message",
       R"({"system": "S", "question": "a", "answer": "b"}
{"system": "", "question": "a", "answer": "b", "history": [["q", "r"]], "input": "c"})",
       "system:S user:a assistant:b\nuser:q assistant:r user:a\nc assistant:b\n"},
      {"a text in parts", R"({"text": ["a", "b"]}
{"text": "c"})",
       "a\nb\nc\n"},
      {"keys with capitals", R"({"Question": "a", "Answer": "b"}
{"Question": "c", "Answer": "d"})",
       "a\n|b\nc\n|d\n"},
      {"choices with the number of the answer",
       R"({"question": "a", "choices": ["b", "c"], "answer": 1})", "a\nb\nc\n|c\n"},
      {"answers that are true or false",
       R"({"question": "a", "passage": "P", "answer": true}
{"question": "a", "passage": "P", "answer": false}
{"question": "a", "answer": "b"}
{"question": "a", "answer": 2.5})",
       "P\n\na\n|true\nP\n\na\n|false\na\n|b\na\n|2.5\n"},
      {"a completion that is true", R"({"prompt": "a", "completion": true}
{"prompt": "a", "completion": "b"})",
       "a|true\na|b\n"},
      {"answers that are a list", R"({"question": "a", "answer": ["b", "c"]}
{"question": "a", "answer": []}
{"question": "d", "answer": ["e"]})",
       "a\n|b\nd\n|e\n"},
      {"SQuAD's answers",
       R"({"id": "1", "context": "C", "question": "a", "answers": {"text": ["b", "c"], )"
       R"("answer_start": [1, 2]}}
{"id": "2", "context": "C", "question": "a", "answers": {"text": [], "answer_start": []}})",
       "C\n\na\n|b\n"},
      {"SQuAD's answers as a list of them",
       R"({"question": "a", "answers": [{"text": "b", "answer_start": 1}]})", "a\n|b\n"},
      {"TriviaQA's answer",
       R"({"question": "a", "answer": {"aliases": ["b", "B"], "value": "b"}, "system": "S"})",
       "system:S user:a assistant:b\n"},
      {"completions that are a list", R"({"prompt": "a", "completion": ["b", "c"]})", "a|b\n"},
      {"a later answer of which jq would round the digits", R"({"question": "a", "answer": "b"}
{"question": "a", "answer": 1234567890123456789})",
       "failed"},
      {"a later answer that is null", R"({"question": "a", "answer": "b"}
{"question": "a", "answer": null})",
       "failed"},
      {"questions that end with a line feed", R"({"question": "a\n", "answer": "b"}
{"question": "a\n", "input": "i", "answer": "b"})",
       "a\n|b\na\ni\n|b\n"},
      {"prompts that end with a line feed and become messages",
       R"({"prompt": "a\n", "completion": "b", "system": "S"}
{"prompt": "a\n", "input": "i", "completion": "b"})",
       "system:S user:a\n assistant:b\nuser:a\ni assistant:b\n"},
      {"a later prompt that is missing", R"({"prompt": "a", "completion": "b", "system": "S"}
{"prompt": null, "completion": "b"}
{"prompt": "a", "completion": "b"})",
       "failed"},
      {"a later record of another form",
       R"({"question": "a", "answer": "b"}
{"query": "a", "answer": "b"}
{"question": "a", "answer": "b"})",
       "failed"},
      {"a prompt beside a later question",
       R"({"question": "a", "answer": "b"}
{"prompt": "p", "question": "a", "answer": "b"}
{"question": "a", "answer": "b"})",
       "failed"},
      {"a later question that is a list",
       R"({"question": "a", "answer": "b"}
{"question": ["a"], "answer": "b"}
{"question": "a", "answer": "b"})",
       "failed"},
      {"context beside our own",
       R"({"prompt": "a", "completion": "b", "context": "c", "input": "d"}
{"prompt": "a", "completion": "b"})",
       "c\n\na\nd|b\na|b\n"},
      {"what an earlier command made of Alpaca",
       R"({"prompt": "### Instruction:\na\n\n### Input:\nc\n\n### Response:\n", "completion": )"
       R"("b", "system": "S"}
{"prompt": "### Instruction:\na\n\n### Response:\n", "completion": "b"})",
       "system:S user:a\nc assistant:b\nuser:a assistant:b\n"},
      {"what an earlier command made of a question",
       R"({"prompt": "a\n", "completion": "b", "history": [["q", "r"]]})",
       "user:q assistant:r user:a\n assistant:b\n"},
      {"Self-Instruct with tools",
       R"({"instruction": "a", "instances": [{"input": "", "output": "d"}]}
{"instruction": "a", "instances": [{"input": "", "output": "d"}], "tools": [1]})",
       "### Instruction:\na\n\n### Response:\n|d\nout.jsonl:1: tools is not implemented; leave it "
       "out\n"},
      {"LLaMA-Factory's Alpaca",
       R"({"instruction": "a", "input": "c", "output": "b", "system": "S", "history": [["q", "r"]]}
{"instruction": "a", "input": "", "output": "b", "system": "", "history": []}
{"instruction": "a", "output": "b"})",
       "system:S user:q assistant:r user:a\nc assistant:b\nuser:a assistant:b\nuser:a "
       "assistant:b\n"},
      {"Dolly",
       R"({"instruction": "a", "context": "c", "response": "b", "category": "x"}
{"instruction": "a", "context": "", "response": "b"})",
       "c\n\na\n|b\na\n|b\n"},
      {"instruction and response with a system message",
       R"({"instruction": "a", "response": "b", "system": "S"})", "system:S user:a assistant:b\n"},
      {"instruction, input and response", R"({"instruction": "a", "input": "c", "response": "b"})",
       "### Instruction:\na\n\n### Input:\nc\n\n### Response:\n|b\n"},
      {"OpenOrca", R"({"id": "1", "system_prompt": "", "question": "a", "response": "b"}
{"id": "2", "system_prompt": "S", "question": "c", "response": "d"})",
       "user:a assistant:b\nsystem:S user:c assistant:d\n"},
      {"question and answer", R"({"question": "a", "answer": "b"})", "a\n|b\n"},
      {"question with its context", R"({"context": "c", "question": "a", "answer": "b"})",
       "c\n\na\n|b\n"},
      {"prompt and response", R"({"prompt": "a", "response": "b"})", "a\n|b\n"},
      {"Firefly", R"({"kind": "k", "input": "a", "target": "b"})", "a\n|b\n"},
      {"prompt and completion with a system message",
       R"({"prompt": "a", "completion": "b", "system": "S"})", "system:S user:a assistant:b\n"},
      {"preferences with a prompt", R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
       "a\n|b\n"},
      {"preferences with a system message and a question",
       R"({"system": "S", "question": "a", "chosen": "b", "rejected": "c"})",
       "system:S user:a assistant:b\n"},
      {"preferences with an instruction",
       R"({"instruction": "a", "input": "", "chosen": "b", "rejected": "c"})",
       "### Instruction:\na\n\n### Response:\n|b\n"},
      {"preferences alone", R"({"chosen": "a", "rejected": "b"})", "a\n"},
      {"Self-Instruct",
       R"({"instruction": "a", "instances": [{"input": "c", "output": "b"}, {"input": "", )"
       R"("output": "d"}]})",
       "### Instruction:\na\n\n### Input:\nc\n\n### Response:\n|b\n"
       "### Instruction:\na\n\n### Response:\n|d\n"},
      {"content", R"({"content": "a", "path": "p", "stars": 3})", "a\n"},
      {"AdvertiseGen", R"({"content": "a", "summary": "b"})", "a\n|b\n"},
      {"a summary", R"({"document": "a", "summary": "b", "id": "1"})", "a\n|b\n"},
      {"a text and its completion", R"({"text": "a", "completion": "b"})", "a|b\n"},
      {"text in parts",
       R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"},)"
       R"( {"type": "text", "text": "b"}]}]}
{"messages": [{"role": "user", "content": "c"}]}
{"messages": [{"role": "user", "content": [{"type": "image"}]}]})",
       "user:ab\nuser:c\nout.jsonl:1: messages[0].content is a list; only text is implemented, as "
       "a "
       "string\n"},
  }));
  CAPTURE(row.name);
  CHECK(ForeignFile("d.jsonl", row.file).converted() == row.result);
}

TEST_CASE("JqCommands: only one kind is kept of records with both", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"prompt and messages",
       R"({"prompt": "a", "messages": [{"role": "user", "content": "a"}], "tools": []})",
       "user:a\n"},
      {"with preferences",
       R"({"prompt": "a", "chosen": [], "messages": [{"role": "user", "content": "a"}]})",
       "user:a\n"},
      {"text, prompt and completion", R"({"text": "a", "prompt": "b", "completion": "c"})",
       "b|c\n"},
      {"text and prompt", R"({"text": "a", "prompt": "b"})", "a\n"},
      {"all",
       R"({"text": "a", "prompt": "b", "completion": "c", "messages": [{"role": "user", )"
       R"("content": "d"}]})",
       "user:d\n"},
  }));
  CAPTURE(row.name);
  const ForeignFile file("d.jsonl", row.file);
  CHECK_THAT(file.error(),
             Catch::Matchers::ContainsSubstring("leave one:\n  jq -cn 'inputs | del("));
  CHECK(file.converted() == row.result);
}

TEST_CASE("JqCommands: whole documents become a record a line", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"an array of our records", "[\n{\"prompt\": \"a\",\n\"completion\": \"b\"}]", "a|b\n"},
      {"an array of Alpaca's", R"([{"instruction": "a]}", "input": "", "output": "b", "x": [{}]}])",
       "### Instruction:\na]}\n\n### Response:\n|b\n"},
      {"an array of conversations with tools in some",
       R"([{"conversations": [{"from": "human", "value": "a"}], "tools": ""},
           {"conversations": [{"from": "human", "value": "a"}], "tools": "[1]"}])",
       "user:a\nout.jsonl:1: tools is not implemented; leave it out\n"},
      {"an array with a system message beside messages",
       R"([{"messages": [{"role": "user", "content": "a"}], "system": "S"}])", "system:S user:a\n"},
      {"an array of texts", R"(["a", "b"])", "a\nb\n"},
      {"objects over several lines", "{\n\"text\": \"a\"\n}\n{\n\"text\": \"b\"\n}", "a\nb\n"},
      {"foreign objects over several lines", "{\n\"question\": \"a\",\n\"answer\": \"b\"\n}",
       "a\n|b\n"},
      {"LMFlow's texts", R"({"type": "text_only", "instances": [{"text": "a"}, {"text": "b"}]})",
       "a\nb\n"},
      {"LMFlow's pairs over several lines",
       "{\n\"type\": \"text2text\", \"instances\": [{\"input\": \"a\", \"output\": \"b\"}]}",
       "a|b\n"},
      {"LMFlow's conversations",
       R"({"type": "conversation", "instances": [{"conversation_id": 1, "system": "S", )"
       R"("tools": [], "messages": [{"role": "user", "content": "a"}]}]})",
       "system:S user:a\n"},
      {"an array with a completion of which jq would round the digits",
       R"([{"prompt": "a", "completion": "b"}, {"prompt": "a", "completion": )"
       R"(1234567890123456789}])",
       "failed"},
      {"a list of pairs",
       R"({"data": [{"input": "a", "output": "b"}, {"input": "c", "output": "d"}]})",
       "a\n|b\nc\n|d\n"},
      {"a list of conversations",
       R"([[{"role": "user", "content": "a"}], [{"role": "user", "content": "b"}]])",
       "user:a\nuser:b\n"},
      {"a table by columns", R"([{"instruction": ["a", "c"], "output": ["b", "d"]}])",
       "### Instruction:\na\n\n### Response:\n|b\n### Instruction:\nc\n\n### Response:\n|d\n"},
      {"SQuAD's articles",
       R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": "C", "qas": )"
       R"([{"question": "a", "id": "1", "answers": [{"text": "b", "answer_start": 0}]}, )"
       R"({"question": "c", "answers": []}]}]}]})",
       "C\n\na\n|b\n"},
      {"records under their numbers",
       R"({"0": {"prompt": "a", "completion": "b"}, "1": {"prompt": "c", "completion": "d"}})",
       "a|b\nc|d\n"},
      {"pandas' table by columns",
       R"({"question": {"0": "a", "1": "c"}, "answer": {"0": "b", "1": "d"}})", "a\n|b\nc\n|d\n"},
      {"pandas' table by columns of ours",
       R"({"prompt": {"0": "a", "1": "c"}, "completion": {"0": "b", "1": "d"}})", "a|b\nc|d\n"},
      {"pandas' table by rows",
       R"({"columns": ["text", "n"], "index": [0, 1], "data": [["a", 1], ["b", 2]]})", "a\nb\n"},
      {"rows of Hugging Face's server",
       R"({"features": [], "rows": [{"row_idx": 0, "row": {"text": "a"}}, {"row_idx": 1, "row": )"
       R"({"text": "b"}}], "num_rows_total": 2})",
       "a\nb\n"},
      {"a list of records", R"({"version": "1", "data": [{"question": "a", "answer": "b"}]})",
       "a\n|b\n"},
  }));
  CAPTURE(row.name);
  CHECK(ForeignFile("d.json", row.file).converted() == row.result);
}

TEST_CASE("JqCommands: values that no command can keep are named instead of a command",
          "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"weight",
       R"({"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b", )"
       R"("weight": 0}]})",
       "1: conversations[1]: weight 0 is not implemented: the answer would be learned as any "
       "other; split the conversation before it, or leave the record out"},
      {"a bad answer", R"({"prompt": "a", "response": "b", "label": false})",
       "1: label false is not implemented: the answer would be learned as a good one; leave the "
       "record out"},
      {"tools", R"({"conversations": [{"from": "human", "value": "a"}], "tools": "[{}]"})",
       "1: tools is not implemented; leave it out"},
      {"tools of Alpaca", R"({"instruction": "a", "output": "b", "tools": [{}]})",
       "1: tools is not implemented; leave it out"},
      {"function_call",
       R"({"conversations": [{"from": "human", "value": "a"}, {"from": "function_call", )"
       R"("value": "b"}]})",
       "1: conversations[1]: the role function_call is not implemented; leave the record out"},
      {"observation", R"({"conversations": [{"from": "observation", "value": "a"}]})",
       "1: conversations[0]: the role observation is not implemented; leave the record out"},
      {"images", R"({"conversations": [{"from": "human", "value": "a"}], "image": "a.jpg"})",
       "1: image is not implemented; leave it out"},
      {"mask", R"({"conversations": [{"from": "User", "value": "a"}], "mask": "Assistant"})",
       "1: mask is not implemented, but for \"User\""},
      {"an answer in a prompt",
       R"({"prompt": [{"role": "assistant", "content": "a"}], )"
       R"("completion": [{"role": "assistant", "content": "b"}]})",
       "1: prompt[0]: an answer that is not to be learned is not implemented; leave the record "
       "out"},
      {"an array", R"([{"conversations": [{"from": "human", "value": "a"}], "tools": [1]}])",
       " the first record: tools is not implemented; leave it out"},
      {"LMFlow's tools",
       R"({"type": "conversation", "instances": [{"messages": [{"role": "user", )"
       R"("content": "a"}], "tools": [1]}]})",
       "1: tools is not implemented; leave it out"},
  }));
  CAPTURE(row.name);
  const std::string error = ForeignFile("d.jsonl", row.file).error();
  CHECK(error.substr(error.find(".jsonl:") + 7) == row.result);
}

TEST_CASE("JqCommands: records of several forms are split and stay as they are", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"Alpaca and ShareGPT",
       R"({"instruction": "a", "output": "b", "id": 1234567890123456789}

{"conversations": [{"from": "human", "value": "c"}], "id": 1234567890123456789, "x": 1.50}
{"instruction": "d", "output": "e"}
)",
       "d-others.jsonl:\n"
       R"({"conversations": [{"from": "human", "value": "c"}], "id": 1234567890123456789, "x": )"
       "1.50}"
       "\nd-output.jsonl:\n"
       R"({"instruction": "a", "output": "b", "id": 1234567890123456789}
{"instruction": "d", "output": "e"}
)"},
      {"ShareGPT and an error", R"({"conversations": [{"from": "human", "value": "c"}]}
{"error": "none"})",
       "d-conversations.jsonl:\n"
       R"({"conversations": [{"from": "human", "value": "c"}]})"
       "\nd-others.jsonl:\n{\"error\": \"none\"}\n"},
      {"our text and a pair", R"({"text": "a"}
{"prompt": "a", "completion": "b"})",
       "d-others.jsonl:\n{\"prompt\": \"a\", \"completion\": \"b\"}\nd-text.jsonl:\n"
       "{\"text\": \"a\"}\n"},
      {"our pair and Alpaca", R"({"prompt": "a", "completion": "b"}
{"instruction": "a", "output": "b"})",
       "d-completion.jsonl:\n{\"prompt\": \"a\", \"completion\": \"b\"}\nd-others.jsonl:\n"
       "{\"instruction\": \"a\", \"output\": \"b\"}\n"},
      {"answers and lists of them",
       "\xEF\xBB\xBF"
       R"({"question": "a", "answer": "b"}
{"question": "a", "answer": ["b"]})",
       "d-answer.jsonl:\n\xEF\xBB\xBF{\"question\": \"a\", \"answer\": \"b\"}\nd-others.jsonl:\n"
       "{\"question\": \"a\", \"answer\": [\"b\"]}\n"},
  }));
  CAPTURE(row.name);
  const ForeignFile file("d.jsonl", row.file);
  CHECK_THAT(file.trained_error(), Catch::Matchers::ContainsSubstring("split"));
  CHECK(file.left_by_command() == row.result);
}

TEST_CASE("JqCommands: conversations that cannot be learned are left out", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"calls without content",
       R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, )"
       R"("tool_calls": [{"id": "1"}]}]}
{"messages": [{"role": "assistant", "content": "b", "tool_calls": []}], "n": 1.50})",
       R"({"messages": [{"role": "assistant", "content": "b", "tool_calls": []}], "n": 1.50})"},
      {"a weight",
       R"({"messages": [{"role": "assistant", "content": "a", "weight": 0}]}
{"messages": [{"role": "user", "content": "a", "weight": 0}, {"role": "assistant", "content": )"
       R"("b", "weight": 1}]})",
       R"({"messages": [{"role": "user", "content": "a", "weight": 0}, {"role": "assistant", )"
       R"("content": "b", "weight": 1}]})"},
  }));
  CAPTURE(row.name);
  CHECK(ForeignFile("d.jsonl", row.file).left_by_command() ==
        "d-converted.jsonl:\n" + row.result + "\n");
}

TEST_CASE("JqCommands: records without a text can be left out", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"a text", "{\"text\": \"a\", \"n\": 1.50}\n{\"text\": null}\n",
       "{\"text\": \"a\", \"n\": 1.50}\n"},
      {"a prompt",
       "{\"prompt\": null, \"completion\": \"b\"}\n{\"prompt\":\"a\",\"completion\":\"b\"}\n",
       "{\"prompt\":\"a\",\"completion\":\"b\"}\n"},
  }));
  CAPTURE(row.name);
  const ForeignFile file("d.jsonl", row.file);
  CHECK_THAT(file.trained_error(),
             Catch::Matchers::ContainsSubstring(" is null; this leaves such records out:\n  jq "));
  CHECK(file.left_by_command() == "d-converted.jsonl:\n" + row.result);
}

TEST_CASE("JqCommands: lines that are not JSON get a command that repairs them", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"commas at the ends", "{\"text\": \"a,\"},\n{\"text\": \"b\"}, \r\n{\"text\": \"c\"}\n",
       "{\"text\": \"a,\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n"},
      {"remarks", "// mine\n{\"text\": \"a // b\"}\n  # more\n", "{\"text\": \"a // b\"}\n"},
      {"Python's quotes", "{'text': \"it's\", 'n': None}\n{'text': 'b'}\n",
       "{\"text\": \"it's\", \"n\": null}\n{\"text\": \"b\"}\n"},
      {"several on a line", "{\"text\":\"a\"}{\"text\":\"}{\"}\n",
       "{\"text\":\"a\"}\n{\"text\":\"}{\"}\n"},
      {"old ends of lines", "{\"text\":\"a\"}\r{\"text\":\"b\"}\r",
       "{\"text\":\"a\"}\n{\"text\":\"b\"}\n"},
      {"RFC 7464", "\x1e{\"text\":\"a\"}\n\x1e{\"text\":\"b\"}\n",
       "{\"text\":\"a\"}\n{\"text\":\"b\"}\n"},
      {"strings", "\"a\"\n\"b\"\n", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n"},
  }));
  CAPTURE(row.name);
  CHECK(ForeignFile("d.jsonl", row.file).left_by_command() == "d-converted.jsonl:\n" + row.result);
}

TEST_CASE("JqCommands: for an unknown form the user is asked for the keys", "[data][json]") {
  const ForeignFile file("d.jsonl", R"({"ctx": "a", "endings": ["b"]})");
  CHECK_THAT(
      file.trained_error(),
      Catch::Matchers::ContainsSubstring(
          "but ctx, endings; type which keys they are in place of QUESTION and ANSWER:\n  jq "));
  const ForeignFile message("d.jsonl", R"({"role": "user", "content": "a"}
{"role": "assistant", "content": "b"})");
  CHECK(message.left_by_command() ==
        "d-converted.jsonl:\n"
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})"
        "\n");
}

TEST_CASE("JqCommands: the first record of another form is named", "[data][json]") {
  const ForeignFile file("d.jsonl", R"({"instruction": "a", "output": "b"}
{"instruction": "a", "input": "i", "output": 1}
{"conversations": [{"from": "human", "value": "c"}]})");
  CHECK_THAT(file.trained_error(),
             Catch::Matchers::StartsWith(
                 "FILE:3: is a record of another form (conversations) than line 1 (instruction, "
                 "output), and a command converts one form; split the file:\n  jq -nrR "));
}

TEST_CASE("JqCommands: a line at which the command would stop is named first", "[data][json]") {
  const ForeignFile file("d.jsonl", "{\"question\": \"a\", \"answer\": \"b\"}\n{\"question\": \"c");
  CHECK_THAT(file.trained_error(), Catch::Matchers::StartsWith("FILE:2:16: not JSON: "));
}

TEST_CASE("JqCommands: an array of several forms becomes lines that are split", "[data][json]") {
  const ForeignFile file("d.json", R"([{"instruction": "a", "output": "b"},
{"conversations": [{"from": "human", "value": "c"}]}])");
  CHECK_THAT(file.error(), Catch::Matchers::ContainsSubstring("jq -cn 'inputs | .[]' "));
}

TEST_CASE("JqCommands: a command covers keys that only later records have", "[data][json]") {
  const ForeignFile file("d.jsonl", R"({"instruction": "a", "output": "b"}
{"instruction": "c", "output": "d", "system": "S", "passage": "P"})");
  CHECK(file.left_by_command() ==
        "d-converted.jsonl:\n"
        R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})"
        "\n"
        R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"P\n\nc"},)"
        R"({"role":"assistant","content":"d"}]})"
        "\n");
}

TEST_CASE("JqCommands: an answer that is a number keeps its digits", "[data][json]") {
  const Row row = GENERATE(values<Row>({
      {"ours", R"({"prompt": "a", "completion": 1234567890123456789, "id": 3}
{"prompt": "a", "completion": 1.50}
{"prompt": "a", "completion": "b"})",
       R"({"prompt": "a", "completion": "1234567890123456789", "id": 3}
{"prompt": "a", "completion": "1.50"}
{"prompt": "a", "completion": "b"})"},
      {"texts", R"({"text": 5, "n": 1}
{"text": 1.50})",
       R"({"text": "5", "n": 1}
{"text": "1.50"})"},
      {"another program's", R"({"question": "a", "answer": -1e3})",
       R"({"question": "a", "answer": "-1e3"})"},
  }));
  CAPTURE(row.name);
  const ForeignFile file("d.jsonl", row.file);
  CHECK_THAT(file.trained_error(),
             Catch::Matchers::ContainsSubstring(" is a number, not text:\n  "));
  CHECK(file.left_by_command() == "d-converted.jsonl:\n" + row.result + "\n");
}

TEST_CASE("JqCommands: preferences are told from what the command makes of them", "[data][json]") {
  const std::string note =
      "; preference training (DPO) is not built, and the command makes records that imitate chosen "
      "alone:\n  jq -cn ";
  for (const std::string record :
       {R"({"prompt": "a", "chosen": "b", "rejected": "c"})",
        R"({"chosen": "\n\nHuman: a\n\nAssistant: b", "rejected": "c"})",
        R"({"chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], )"
        R"("rejected": []})"}) {
    CAPTURE(record);
    CHECK_THAT(ForeignFile("d.jsonl", record).trained_error(),
               Catch::Matchers::StartsWith("FILE:1: holds preferences" + note));
    CHECK_THAT(ForeignFile("d.json", "[" + record + "]").error(),
               Catch::Matchers::ContainsSubstring("JSON lines are one object a line" + note));
  }
}

TEST_CASE("JqCommands: no command overwrites a file", "[data][json]") {
  const TempDir directory;
  const std::string file = directory.path() / "d.jsonl";
  for (const std::string target : {"d-converted", "d-converted-2"}) {
    const std::string taken = directory.path() / (target + ".jsonl");
    CHECK_THAT(data::jq_command(".", file), Catch::Matchers::EndsWith(" " + taken));
    write_file(taken, "");
  }
  CHECK_THAT(data::jq_command(".", file),
             Catch::Matchers::EndsWith("> " + file.substr(0, file.size() - 6) +
                                       "-converted-3.jsonl.tmp && mv " +
                                       file.substr(0, file.size() - 6) + "-converted-3.jsonl.tmp " +
                                       file.substr(0, file.size() - 6) + "-converted-3.jsonl"));
}

TEST_CASE("JqCommands: input and output files are named as typed", "[data][json]") {
  CHECK(data::jq_command(".", "d/a.json") ==
        "jq -cn 'inputs' d/a.json > d/a-converted.jsonl.tmp && mv d/a-converted.jsonl.tmp "
        "d/a-converted.jsonl");
  CHECK(data::jq_command(".a", "-a b.jsonl") ==
        "jq -cn 'inputs | .a' './-a b.jsonl' > './-a b-converted.jsonl.tmp' && mv "
        "'./-a b-converted.jsonl.tmp' './-a b-converted.jsonl'");
  CHECK_THAT(data::jq_command(".", "a.json.gz"),
             Catch::Matchers::StartsWith("zcat a.json.gz | jq -cn 'inputs' > a-converted.jsonl."));
  CHECK_THAT(data::jq_command(".", "a.zst"),
             Catch::Matchers::StartsWith("zstdcat a.zst | jq -cn 'inputs' > a-converted.jsonl."));
  CHECK(data::converted_name("d/DATA.JSON") == "d/DATA-converted.jsonl");
  CHECK(data::converted_name("d.x/a.txt") == "d.x/a.txt-converted.jsonl");
}

}  // namespace dstrain::test
