// What an error tells people to type is typed here, and must not be refused in its turn.
#include <regex>
#include <set>

#include <fmt/format.h>

#include "runtime/config/foreign_remedies.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/config/resolved.h"
#include "tests/config/schema_values.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::enabling;
using dstrain::test::error_of;
using dstrain::test::harmless;
using dstrain::test::needs_a_type;
using dstrain::test::nested;
using dstrain::test::options_error;
using dstrain::test::outcome;

namespace {

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

std::string parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string{} : std::string(path.substr(0, dot));
}

std::string joined(const std::string& section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

bool is_error(const std::string& told) {
  return told != "no error" && !told.starts_with("warning ");
}

/// The paths that an error about the unknown key `path` names.
std::set<std::string> targets(const std::string& told, const std::string& path) {
  std::set<std::string> found;
  std::smatch match;
  if (std::regex_search(told, match, std::regex(R"re(did you mean "([^"]+)"( in "([^"]+)")?)re"))) {
    const bool elsewhere = match[2].matched;
    found.insert(joined(elsewhere ? match[3].str() : parent_of(path), match[1].str()));
    return found;
  }
  const std::size_t places = told.find("this key belongs");
  if (places == std::string::npos || contains(told, "leave it out")) return found;
  const std::string rest = told.substr(places, told.find('(', places) - places);
  const std::regex place(R"re((in "([^"]+)")|(at the top level))re");
  for (auto at = std::sregex_iterator(rest.begin(), rest.end(), place);
       at != std::sregex_iterator(); ++at) {
    found.insert(joined((*at)[2].str(), name_of(path)));
  }
  return found;
}

/// Types the advice for a key that stands at a wrong path. Returns whether there was any.
bool follow(const std::string& path, const std::string& value) {
  const std::string told = outcome(nested(path, value));
  CAPTURE(path, value, told);
  if (!contains(told, "unknown key")) return false;
  const std::set<std::string> paths = targets(told, path);
  for (const std::string& target : paths) {
    if (needs_a_type(target)) continue;  // what is taken depends on it
    const std::string then = outcome(nested(target, value));
    CAPTURE(target, then);
    if (!is_error(then) || contains(told, then)) continue;  // a section around it is refused
    // It says at once that it will be refused there too, and why: of several places for one.
    const std::size_t named = then.find(target + ": ");
    REQUIRE(named != std::string::npos);
    const std::size_t reason = named + target.size();
    CHECK(contains(told, then.substr(reason, then.find('\n', reason) - reason) + ")"));
  }
  return !paths.empty();
}

std::set<std::string> values_for(const Key& key) {
  std::set<std::string> values{harmless(key), enabling(key), "true", "7"};
  if (key.type == KeyType::text) values.insert("\"x\"");
  return values;
}

std::vector<std::string> misspelt(std::string_view name) {
  std::string without(name);
  without.pop_back();
  std::string doubled(name);
  doubled.insert(doubled.begin() + 1, doubled[1 % doubled.size()]);
  return {without, doubled, std::string(name) + "s"};
}

}  // namespace

TEST_CASE("Advice: a key of a section at the top level belongs in it", "[config][advice]") {
  int found = 0;
  for (const Key& key : all_keys()) {
    const std::string name(name_of(key.path));
    const bool known = find_key(name) != nullptr || find_alias(name) != nullptr;
    if (name == key.path || known) continue;
    CAPTURE(key.path);
    for (const std::string& value : values_for(key)) found += follow(name, value) ? 1 : 0;
    const bool useful = key.status == KeyStatus::implemented || key.status == KeyStatus::hint;
    if (!key.path.starts_with("zero_optimization.") || !useful) continue;
    const std::string told = outcome(fmt::format(R"({{"{}": {}}})", name, harmless(key)));
    const std::string home = fmt::format("\"{}\"", parent_of(key.path));
    CHECK((contains(told, home) || name == "ratio"));  // a misspelt "ratio" is none of these
  }
  CHECK(found > 200);
  for (const Alias& alias : aliases()) {
    if (!alias.path.starts_with("zero_optimization.")) continue;
    CAPTURE(alias.path);
    CHECK(contains(outcome(fmt::format(R"({{"{}": 1}})", name_of(alias.path))),
                   R"(this key belongs in "zero_optimization")"));
  }
}

TEST_CASE("Advice: the key suggested for a misspelling accepts the value", "[config][advice]") {
  int found = 0;
  for (const Key& key : all_keys()) {
    for (const std::string& word : misspelt(name_of(key.path))) {
      const std::string path = joined(parent_of(key.path), word);
      for (const std::string& value : values_for(key)) found += follow(path, value) ? 1 : 0;
    }
  }
  CHECK(found > 1000);
}

TEST_CASE("Advice: a suggested section is accepted", "[config][advice]") {
  int written = 0;
  for (const Key& key : all_keys()) {
    if (key.type != KeyType::section) continue;
    for (const std::string value :
         {"true", "false", "\"nvme\"", "\"cpu\"", "\"gpu\"", "\"auto\"", "\"true\"", "0", "1", "3",
          "\"zero2\"", "\"AdamW\"", "\"lion\"", "\"WarmupLR\"", "\"WarmupCosineLR\""}) {
      const std::string told = outcome(nested(key.path, value));
      CAPTURE(key.path, value, told);
      const std::size_t at = told.find("; write {");
      if (at == std::string::npos) continue;
      ++written;
      const std::string object = told.substr(at + 8, told.rfind('}') + 1 - (at + 8));
      CHECK_FALSE(is_error(outcome(nested(key.path, object))));
      const bool stage = contains(object, "device");
      // And decides the batch.
      const bool elastic = key.path == "elasticity" && contains(object, "\"enabled\": true");
      const Arguments batch = elastic ? Arguments{} : Arguments{"--batch_size", "1"};
      const std::string then = error_of(nested(key.path, object), batch);
      if (!stage) CHECK(then == "no error");
    }
  }
  CHECK(written > 20);
}

TEST_CASE("Advice: the remedy is the right one", "[config][advice]") {
  struct Row {
    std::string text, message;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"offload_optimizer": {"device": "cpu"}})",
       R"(offload_optimizer: unknown key; this key belongs in "zero_optimization")"},
      {R"({"zero_quantized_weights": true})",
       R"(zero_quantized_weights: unknown key; this key belongs in "zero_optimization" )"
       "(zero_optimization.zero_quantized_weights: true: ZeRO++ (qwZ) is not implemented; leave it "
       "out or set it to false)"},
      {R"({"activation_checkpointing": true})",
       "activation_checkpointing: expected an object, got true; use --gradient_checkpointing"},
      {R"({"flops_profiler": true})",
       "flops_profiler: expected an object, got true; the profiler (metrics.jsonl has "
       "model_tflops) is not implemented; leave it out"},
      {R"({"zero_optimization": {"pin_memory": true}})",
       R"(zero_optimization.pin_memory: unknown key; this key belongs in )"
       R"("zero_optimization.offload_param" or in "zero_optimization.offload_optimizer")"},
      {R"({"num_epochs": 3})",
       "num_epochs: unknown key; it is an option of train: --num_train_epochs"},
      {R"({"fp16": {"opt_level": "O1"}})",
       R"(fp16.opt_level: unknown key; this key belongs in "amp", and apex's automatic mixed )"
       "precision (use fp16.enabled) is not implemented; leave it out"},
      {R"({"optimizer": {"type": "AdamW", "params": {"learning_rate": 1e-4}}})",
       R"(optimizer.params.learning_rate: unknown key; did you mean "lr"?)"},
      {R"({"fp16": {"loss_scale": "dynamic"}})",
       R"(fp16.loss_scale: expected a number, got "dynamic"; write 0: the scale is then dynamic)"},
      {R"({"fp16": {"enabled": true, "type": "bfloat16"}})",
       R"(fp16.type: not a key of DeepSpeed; for bfloat16 write "bf16": {"enabled": true} in )"
       "place of the section fp16, for fp16 leave it out"},
      {R"({"bf16": {"type": "bfloat16"}})",
       "bf16.type: unknown key; DeepSpeed has no such key here"},
      {R"({"load_universal_checkpoint": true})",
       "load_universal_checkpoint: unknown key; DeepSpeed has no such key here"},
      {R"({"fp32_allreduce": true})",
       "fp32_allreduce: has no effect: DeepSpeed no longer reads it; use "
       R"("communication_data_type": "fp32")"},
      {R"({"optimizer": {"type": "Lion", "params": {"fused": true}}})",
       "optimizer.params.fused: Lion has no such parameter; Adam, AdamW has"},
      {R"({"optimizer": {"type": "AdamW", "params": {"fused": true, "foreach": false}}})",
       "no error"},
      {R"({"gradient_clipping": null})",
       "gradient_clipping: expected a number, got null; write 0, which never clips"},
      {R"({"steps_per_print": null, "train_batch_size": null})",
       "train_batch_size: expected a whole number, got null; leave it out"},
      {R"({"gradient_clipping": Infinity})",
       "JSON has no infinity; write a large number, or for gradient_clipping 0, which never clips"},
      {R"({"zero_optimization": {"offload_param": "nvme"}})",
       R"(zero_optimization.offload_param: expected an object, got "nvme"; write )"
       R"({"device": "nvme", "nvme_path": "DIR"})"},
  }));
  CAPTURE(row.text);
  const std::string told = outcome(row.text);
  CHECK_THAT(told, Catch::Matchers::EndsWith(row.message));
}

TEST_CASE("Advice: options named in a remedy exist", "[config][advice]") {
  const std::set<std::string> launch{"timeout", "device", "log_level", "signal"};
  const std::regex option("--([a-z][a-z_0-9]*)");
  const std::regex path("[a-z0-9_]+(\\.[a-z0-9_]+)+");
  for (const FlagRow& row : foreign_flags()) {
    std::string text(row.help);
    for (const std::string value : {"7", "0.1", "lora", "cpu", "nvme", "x.json", "x.yaml"}) {
      if (row.told != nullptr) text += " " + row.told(value, {});
    }
    CAPTURE(row.name, text);
    for (auto at = std::sregex_iterator(text.begin(), text.end(), option);
         at != std::sregex_iterator(); ++at) {
      const std::string name = (*at)[1].str();
      CAPTURE(name);
      const FlagRow* const named = find_flag(name);
      CHECK((launch.contains(name) ||
             (named != nullptr && named->status == FlagStatus::implemented)));
    }
    for (auto at = std::sregex_iterator(text.begin(), text.end(), path);
         at != std::sregex_iterator(); ++at) {
      const std::string section = at->str().substr(0, at->str().find('.'));
      if (find_key(section) == nullptr) continue;  // a file
      const Key* const key = find_key(at->str());
      CAPTURE(at->str());
      REQUIRE(key != nullptr);
      CHECK(key->status == KeyStatus::implemented);
    }
  }
}

TEST_CASE("Advice: JSON in a remedy is accepted", "[config][advice]") {
  int found = 0;
  for (const FlagRow& row : foreign_flags()) {
    if (row.status != FlagStatus::refused) continue;
    std::vector<std::string> texts{std::string(row.help)};
    for (const std::string value : {"cpu", "nvme", R"({"min_lr_rate": 0.1})"}) {
      for (const Arguments& stage : {Arguments{}, Arguments{"--zero_stage", "3"}}) {
        if (row.told != nullptr) texts.push_back(row.told(value, read_train_flags(stage)));
      }
    }
    for (const std::string& text : texts) {
      std::smatch match;
      if (!std::regex_search(text, match, std::regex(R"re(("[a-z0-9_]+": )?\{"[^']*\})re")))
        continue;
      if (contains(text, "input_ids")) continue;  // a record of data
      const std::string object = match[1].matched ? "{" + match.str() + "}" : match.str();
      CAPTURE(row.name, text, object);
      ++found;
      CHECK(error_of(object, {"--batch_size", "1", "--max_steps", "9"}) == "no error");
    }
  }
  CHECK(found > 20);
}

TEST_CASE("Advice: the suggestion of an unbuilt type says that it is not built",
          "[config][advice]") {
  const auto told = [](std::string_view section, const std::string& type) {
    return outcome(fmt::format(R"({{"{}": {{"type": "{}", "params": {{}}}}}})", section, type));
  };
  CHECK(
      contains(told("optimizer", "SGDD"), R"(did you mean "SGD"? "SGD" is not implemented; use )"));
  CHECK(contains(told("optimizer", "Muonn"), R"(did you mean "Muon"? "Muon" is not implemented)"));
  CHECK(told("optimizer", "Lionn").ends_with(R"(did you mean "Lion"?)"));
  CHECK(contains(told("scheduler", "StepLRR"), R"("StepLR" is not implemented; use WarmupLR)"));
  CHECK_THAT(outcome(R"({"optimizer": {"type": "AdamW", "params": {"momentum": 0.9}}})"),
             Catch::Matchers::EndsWith("AdamW has no such parameter; leave it out"));
  CHECK_THAT(outcome(R"({"optimizer": {"type": "AdamW", "params": {"max_coeff": 9}}})"),
             Catch::Matchers::EndsWith("AdamW has no such parameter; Lamb has"));
}

TEST_CASE("Advice: an option that is refused is suggested with the reason", "[config][advice]") {
  const std::regex suggestion("; did you mean --([A-Za-z_0-9]+)");
  int refused = 0;
  for (const FlagRow& row : train_flags()) {
    std::vector<std::string_view> names = split_choices(row.aliases);
    names.push_back(row.name);
    for (const std::string_view name : names) {
      for (const std::string& word : misspelt(name)) {
        if (find_flag(word) != nullptr) continue;
        const std::string told = options_error({"--" + word, "1"});
        std::smatch match;
        if (!std::regex_search(told, match, suggestion)) continue;
        const FlagRow* const meant = find_flag(match[1].str());
        CAPTURE(told);
        REQUIRE(meant != nullptr);
        if (meant->status != FlagStatus::refused) continue;
        ++refused;
        CHECK(contains(told, fmt::format("({})?", meant->help)));
      }
    }
  }
  CHECK(refused > 100);
}
