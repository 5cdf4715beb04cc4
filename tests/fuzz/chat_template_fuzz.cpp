// A Jinja template, and after a NUL byte what a user says: whatever it is, rendering ends, and the
// answers lie in the text.
#include "runtime/base/error.h"
#include "runtime/data/chat_template.h"
#include "runtime/data/conversation.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string input = fuzz::as_text(bytes, size);
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string jinja = input.substr(0, nul);
  return fuzz::refuse_or_accept([&] {
    const auto chat =
        data::ChatTemplate::parse(jinja, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    if (!chat.ok()) return;
    data::Conversation conversation;
    const std::string said = input.substr(std::min(nul + 1, input.size()));
    conversation.messages = {{{"role", "user"}, {"content", said}},
                             {{"role", "assistant"}, {"content", "An answer."}}};
    conversation.variables = {
        {"tools", {{{"name", "f"}, {"parameters", {1, 2.5, nullptr, true}}}}}};
    conversation.learned = {false, true};
    static const auto encoder = data::make_byte_encoder("none");
    const auto rendered = chat.value().render(conversation, *encoder);
    if (!rendered.ok()) return;
    const data::RenderedChat& text = rendered.value();
    std::size_t before = 0;
    for (const auto& [begin, end] : text.answers) {
      DSTRAIN_CHECK(before <= begin && begin <= end && end <= text.text.size(), "{} to {}", begin,
                    end);
      before = begin;
    }
  });
}
