#pragma once
#include <string>
#include <utility>
#include <vector>

namespace dstrain::launcher::doctor {

enum class Level {
  ok,      ///< as it should be; a fact
  note,    ///< works, but a user should know
  problem  ///< something will fail, or already does
};

/// One result of a check, in one line. `fix` says what to do; never empty for a problem.
struct Finding {
  std::string check;
  Level level = Level::ok;
  std::string what;
  std::string fix{};
};

/// Collects what a check finds.
class Findings {
 public:
  explicit Findings(std::string check) : check_(std::move(check)) {}

  void ok(std::string what) { add(Level::ok, std::move(what), ""); }
  void note(std::string what, std::string fix = "") {
    add(Level::note, std::move(what), std::move(fix));
  }
  void problem(std::string what, std::string fix) {
    add(Level::problem, std::move(what), std::move(fix));
  }
  [[nodiscard]] bool empty() const { return list_.empty(); }
  [[nodiscard]] const std::vector<Finding>& list() const { return list_; }

 private:
  void add(Level level, std::string what, std::string fix) {
    list_.push_back({check_, level, std::move(what), std::move(fix)});
  }
  std::string check_;
  std::vector<Finding> list_;
};

/// "problem" and the like, for tables and JSON.
const char* name_of(Level level);
/// Throws Error{remote} for an unknown name.
Level level_of(const std::string& name);

}  // namespace dstrain::launcher::doctor
