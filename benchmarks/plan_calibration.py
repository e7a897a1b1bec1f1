"""How well `assay plan` foretells steps: fitted to some short runs here, it predicts others of other shapes.

    python benchmarks/plan_calibration.py [--steps 8] [--keep DIR]

Runs nano models of different widths, depths, numbers of rows and lengths of responses on this CPU, steps in turn, so
that other work disturbs all alike. Fits the shares of peak to half of them, and predicts generation and update of the
others from their shapes and response lengths; then fits to those and predicts the first. Printed per run and phase:
measured seconds of the median step, predicted seconds, their ratio, and what parts the prediction is made of; then the
table of docs/scaling.md; last, how many of the ratios are within 30 %. Exits 1 if fewer than three quarters are. With
``--keep``, the runs stay in a folder, or those that are there are used.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

WITHIN = 0.3

# Model; prompts x group, longest response. Random weights rarely end a response, so most run to the longest.
CASES: dict[str, tuple[dict[str, int], tuple[int, int, int]]] = {
    "small, few rows": ({"hidden": 64, "layers": 2, "heads": 4}, (8, 4, 32)),
    "small, many rows": ({"hidden": 64, "layers": 2, "heads": 4}, (32, 8, 24)),
    "middle": ({"hidden": 128, "layers": 3, "heads": 4}, (32, 8, 32)),
    "middle, long": ({"hidden": 128, "layers": 3, "heads": 4}, (8, 8, 160)),
    "deep": ({"hidden": 96, "layers": 8, "heads": 4}, (16, 8, 32)),
    "wide": ({"hidden": 384, "layers": 2, "heads": 6}, (16, 8, 32)),
    "wide, few rows": ({"hidden": 512, "layers": 4, "heads": 8}, (4, 4, 32)),
    "wide, long": ({"hidden": 256, "layers": 4, "heads": 8}, (8, 4, 96)),
}
FIRST = ("small, few rows", "middle", "deep", "wide, long")


def prepared(name: str, folder: Path) -> Any:
    """Return the trainer of one case, ready for its first step."""
    from assay.config import load_config
    from assay.console import Reporter
    from assay.training.build import build_trainer

    model, (prompts, group, longest) = CASES[name]
    config = load_config(
        {
            "model": {"nano": {**model, "context": 256}},
            "tasks": {"source": {"name": "arithmetic", "digits": 2}, "eval_size": 1},
            "rollout": {"prompts": prompts, "group": group, "max_tokens": longest},
            # Every response has an advantage, so that every one is learnt from.
            "method": {"reward": {"name": "function", "function": f"{__file__}:varied"}},
            "train": {"lr": 1e-6},
            "run": {"dir": str(folder), "tensorboard": False, "report": False},
        }
    )
    trainer = build_trainer(config, Reporter(quiet=True))
    trainer.start_rl()
    return trainer


def take_turns(folders: dict[str, Path], steps: int) -> None:
    """Take every case's steps in turn, so that whatever else the machine does disturbs all of them alike."""
    trainers = [prepared(name, folder) for name, folder in folders.items()]
    for _ in range(steps):
        for trainer in trainers:
            trainer.rl_step()
    for trainer in trainers:
        trainer.folder.close()


def varied(task: Any, response: str) -> float:
    """A reward that differs between responses."""
    return (sum(map(ord, response)) % 97) / 97


def main() -> int:
    from assay.planning.calibrate import PARTS, calibrate, measure
    from assay.planning.devices import measured_cpu
    from assay.planning.efficiency import assumed

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8, help="RL steps of each run")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder, or use those that are there")
    arguments = parser.parse_args()
    device = measured_cpu()
    print(f"this CPU: {device.flops / 1e9:.0f} GFLOP/s, {device.bandwidth / 1e9:.0f} GB/s")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        runs = {name: folder / name.replace(", ", "-").replace(" ", "-") for name in CASES}
        if not all(path.is_dir() for path in runs.values()):
            take_turns(runs, arguments.steps)
        second = tuple(n for n in CASES if n not in FIRST)
        ratios = []
        told: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
        for fitted, held_out in ((FIRST, second), (second, FIRST)):
            found = calibrate([runs[n] for n in fitted], device)
            print(f"\nfitted to: {'; '.join(fitted)}")
            print(f"{'run':18} {'phase':9} {'measured':>8} {'predicted':>9} {'ratio':>5}  of which")
            for name in held_out:
                for m in measure(runs[name], device, found.efficiency):
                    # The parts are of the fitted efficiencies, so that they add up to the prediction.
                    predicted = float(np.median(m.parts.sum(1)))
                    ratios.append(predicted / m.seconds)
                    told[name].append((m.seconds, predicted))
                    typical = np.median(m.parts, axis=0)
                    of = [f"{k} {v:.3f}" for k, v in zip(PARTS[m.phase], typical, strict=True) if v >= 0.0005]
                    seconds = f"{m.seconds:6.3f} s {predicted:7.3f} s {ratios[-1]:5.2f}"
                    print(f"{name:18} {m.phase:9} {seconds}  {', '.join(of)}", flush=True)
        plain = [
            float(np.median(m.parts.sum(1))) / m.seconds
            for path in runs.values()
            for m in measure(path, device, assumed("cpu", "hf"))
        ]
    print("\n| generation, update | measured | predicted | ratio |\n|---|---|---|---|")
    for name, pairs in told.items():
        measured, predicted = (", ".join(f"{pair[i]:.3f} s" for pair in pairs) for i in (0, 1))
        print(f"| {name} | {measured} | {predicted} | {', '.join(f'{p / m:.2f}' for m, p in pairs)} |")
    good = sum(1 / (1 + WITHIN) <= r <= 1 + WITHIN for r in ratios)
    before = sum(1 / (1 + WITHIN) <= r <= 1 + WITHIN for r in plain)
    print(
        f"\nwithin {WITHIN:.0%}: {good} of {len(ratios)} ({', '.join(PARTS)}); median ratio {np.median(ratios):.2f}, "
        f"from {min(ratios):.2f} to {max(ratios):.2f}; without calibration {before} of {len(plain)}"
    )
    return int(good < 0.75 * len(ratios))


if __name__ == "__main__":
    sys.exit(main())
