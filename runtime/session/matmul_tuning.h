#pragma once
#include <string>

#include "runtime/backend/backend.h"
#include "runtime/comm/control/control_group.h"

namespace dstrain::session {

/// --tune_matmuls: which algorithms the matrix products of all ranks take. Rank 0 times them once,
/// after the first step of a run; one that goes on takes those of its checkpoint.
class MatmulTuning {
 public:
  /// All must outlive it.
  struct Parts {
    Backend& backend;
    Streams streams;
    comm::ControlGroup& control;
    Bytes room;  ///< of the device, that trying products may take
  };
  explicit MatmulTuning(Parts parts) : parts_(parts) {}

  /// Before the first step: the algorithms that a checkpoint has kept. Collective.
  void use_kept(const std::string& kept);
  /// After it: what checkpoints keep from now on, given what they have kept so far (empty:
  /// nothing). Collective.
  std::string settle(const std::string& kept);

 private:
  [[nodiscard]] bool speaks() const { return parts_.control.rank() == 0; }
  [[nodiscard]] std::string use(const std::string& algorithms);
  void tell_count(const char* rest) const;

  Parts parts_;
  bool uses_kept_ = false;
};

}  // namespace dstrain::session
