#pragma once
#include <memory>
#include <string>

#include <dstrain/export.h>

namespace dstrain {

/// This process as one of the ranks of a job. Its identity comes from the environment that
/// `dstrain --num_gpus 4 ./program`, mpirun, srun or torchrun gives its ranks; a process started by
/// hand is rank 0 of 1.
///
/// Make one per process, before any other thread starts, and use it and all that is made of it from
/// the same thread. It must outlive the engines.
class DSTRAIN_API Rank {
 public:
  /// Opens the device (--device, else DSTRAIN_DEVICE, else a GPU if there is one) and waits for the
  /// other ranks. Throws Error{usage} for an environment that contradicts itself, Error{timeout}
  /// that names the ranks that did not come, Error{comm}, or Error{config} where the ranks differ
  /// in what changes arithmetic.
  Rank();
  Rank(Rank&&) noexcept;
  Rank& operator=(Rank&&) noexcept;
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank();

  [[nodiscard]] int rank() const;            ///< 0 to world_size() - 1
  [[nodiscard]] int world_size() const;      ///< ranks of the job
  [[nodiscard]] int local_rank() const;      ///< among the ranks of this machine
  [[nodiscard]] std::string device() const;  ///< "cpu" or "cuda"
  /// Whether the launcher asks the job to stop (Ctrl-C, SLURM's signal, `dstrain stop`): the same
  /// on every rank. Save a checkpoint then and return 75, which a SLURM script takes as a request
  /// to be queued again. Collective: every rank must ask.
  [[nodiscard]] bool stop_requested();
  /// Whether someone waits in `dstrain save JOB` for a checkpoint: the same on every rank. The next
  /// save_checkpoint() of any engine answers, whether the program asks here or not. Collective.
  [[nodiscard]] bool save_requested();
  /// Returns once every rank has called it. Collective.
  void barrier();

  class DSTRAIN_INTERNAL Impl;
  /// For the library itself.
  [[nodiscard]] Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dstrain
