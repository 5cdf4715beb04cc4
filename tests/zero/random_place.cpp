#include "tests/zero/random_place.h"

#include "tests/zero/memory_tiers.h"

namespace dstrain::test {

void draw_place(TrainingCase& settings,
                std::mt19937& random,
                const std::string& nvme_path,
                bool early) {
  settings.nvme_path = nvme_path;
  settings.persistence_threshold = draw(random, 0, 200, 1'000'000);
  settings.reduce_bucket_numel = draw(random, 0, 3000);
  settings.mode = draw(random, engine::FrameMode::training, engine::FrameMode::checkpointing,
                       engine::FrameMode::host_checkpointing);
  settings.overlap = {.enabled = draw(random, false, true), .prefetch_numel = 1'000'000};
  settings.reloads = draw(random, false, true);
  if (settings.stage > 0) settings.offload.optimizer = draw(random, device, host);
  if (settings.stage == 3) {
    settings.offload = {draw(random, device, host, nvme), draw(random, 0.5, 1.0),
                        draw(random, device, host, nvme)};
  }
  settings.offload.sub_group_numel = draw(random, 256, 4096);
  if (settings.offload.optimizer == nvme && early && draw(random, false, true)) {
    settings.offload.early = settings.clipping > 0 || settings.loss_scale != 1
                                 ? zero::EarlyUpdate::revocable
                                 : zero::EarlyUpdate::irrevocable;
  }
  if (draw(random, false, true)) settings.deferred = random();
}

}  // namespace dstrain::test
