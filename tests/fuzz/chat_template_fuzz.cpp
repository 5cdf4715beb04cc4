// A Jinja template, and after a NUL byte what a user says: a template that is recognised renders
// the answer where it says it does.
#include "runtime/base/error.h"
#include "runtime/data/chat_template.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input = fuzz::as_text(bytes, size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string jinja = input.substr(0, nul);
  return fuzz::refuse_or_accept([&] {
    const auto chat = data::ChatTemplate::recognise(jinja, {"<s>", "</s>"});
    if (!chat.ok()) return;
    const std::string said = input.substr(std::min(nul + 1, input.size()));
    const std::vector<data::Message> messages{{"user", said}, {"assistant", "An answer."}};
    const auto rendered = chat.value().render(messages);
    if (!rendered.ok()) return;
    const data::RenderedChat& text = rendered.value();
    DSTRAIN_CHECK(text.answers.size() == 1, "{} answers", text.answers.size());
    const auto [begin, end] = text.answers.front();
    DSTRAIN_CHECK(begin <= end && end <= text.text.size(), "{} to {}", begin, end);
    const std::string answer = text.text.substr(begin, end - begin);
    DSTRAIN_CHECK(answer.find("An answer.") != answer.npos, "'{}'", answer);
  });
}
