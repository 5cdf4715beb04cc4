#!/usr/bin/env python3
"""Makes elasticity.json beside this script: batches as DeepSpeed's own elasticity finds them.

    pip download --no-deps --no-binary :all: deepspeed==0.19.6 && tar xzf deepspeed-0.19.6.tar.gz
    python3 tests/golden/make_elasticity.py deepspeed-0.19.6

Needs numpy and packaging. Each case: the section, the number of ranks, and what came of it: batch,
valid counts and, without model parallelism, the micro batch; or null where DeepSpeed found none.
"""
import importlib.util
import json
import logging
import os
import pathlib
import random
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
CASES = 250


def load(root):
    """The module without the package around it, which would build its operators."""
    package = types.ModuleType("deepspeed")
    package.__path__ = []
    version = types.ModuleType("deepspeed.git_version_info")
    version.version = "0.19.6"
    utils = types.ModuleType("deepspeed.utils")
    utils.logger = logging.getLogger("deepspeed")
    inner = types.ModuleType("deepspeed.elasticity")
    inner.__path__ = [str(root / "deepspeed" / "elasticity")]
    sys.modules.update({"deepspeed": package, "deepspeed.git_version_info": version,
                        "deepspeed.utils": utils, "deepspeed.elasticity": inner})
    name = "deepspeed.elasticity.elasticity"
    path = root / "deepspeed" / "elasticity" / "elasticity.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(draw):
    section = {"max_train_batch_size": draw.choice([4, 32, 100, 500, 2000, 10000, 65536]),
               "micro_batch_sizes": draw.sample([1, 2, 3, 4, 6, 7, 8, 10, 12, 16, 17],
                                                draw.randint(1, 4)),
               "min_gpus": draw.choice([1, 1, 2, 8]), "max_gpus": draw.choice([8, 16, 40, 64]),
               "version": draw.choice([0.1, 0.2]),
               "prefer_larger_batch": draw.random() < 0.7}
    per_node = 1
    if section["version"] == 0.2:
        per_node = draw.choice([1, 2, 4, 8])
        section["num_gpus_per_node"] = per_node
        section["model_parallel_size"] = draw.choice([m for m in (1, 1, 2, 4) if m <= per_node])
    return section, per_node * draw.randint(1, 8)


def outcome(module, section, gpus):
    parallel = section.get("model_parallel_size", 1)
    config = {"elasticity": {"enabled": True, **section}}
    # Given as an argument, DeepSpeed would compare GPUs with ranks of data parallelism.
    os.environ["WORLD_SIZE"] = str(gpus)
    try:
        batch, counts = module.compute_elastic_config(config, "0.19.6")
        if not counts:
            return None
        micro = None
        if parallel == 1 and gpus in counts:
            micro = module.compute_elastic_config(config, "0.19.6", world_size=gpus)[2]
        return {"batch": batch, "counts": counts, "micro": micro}
    except (ValueError, ZeroDivisionError, module.ElasticityError):
        return None


def main():
    module = load(pathlib.Path(sys.argv[1]))
    draw = random.Random(7)
    cases = []
    while len(cases) < CASES:
        section, gpus = made_up(draw)
        result = outcome(module, section, gpus)
        # A batch of nothing, which DeepSpeed takes for one where it prefers small ones.
        if result is not None and result["batch"] == 0:
            continue
        ranks = gpus // section.get("model_parallel_size", 1)
        cases.append({"elasticity": section, "ranks": ranks, "found": result})
    lines = ",\n".join(json.dumps(case, separators=(",", ":"), default=int) for case in cases)
    (HERE / "elasticity.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
