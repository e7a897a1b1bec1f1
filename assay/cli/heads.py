"""``assay train-head``: what strategies such as S038 and S120 read their predictions off."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.conf import Positional

from assay.cli.common import AsJson, Overrides, Unprotected, print_table, protect, say
from assay.errors import RunError, UsageError

HEAD = "head.safetensors"
"""In the folder of a model that was tuned."""

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.inference.heads.fit import Gain
    from assay.inference.heads.train import Trained


def train_head(
    target: Annotated[str, Positional],
    overrides: Overrides = (),
    kind: Literal["joint", "value"] = "joint",
    out: Annotated[Path | None, tyro.conf.arg(metavar="HEAD.safetensors")] = None,
    tasks: int = 128,
    samples: int = 8,
    epochs: int | None = None,
    lr: float | None = None,
    tune: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    as_json: AsJson = False,
    unsafe_no_sandbox: Unprotected = False,
) -> int:
    """Train a head on a model's own states, for strategies at test time, from judged responses to training tasks.

    assay train-head runs/gsm8k --kind joint --out head.safetensors

    assay eval runs/gsm8k --strategy "sample,S038(head=head.safetensors)"

    The model itself is not changed; --tune writes a changed copy beside the head. A quarter of the tasks is kept back
    to say what the head is worth; the tasks held out for evaluation are not used.

    Example: assay train-head runs/gsm8k --out head.safetensors

    Args:
        target: a run folder, a checkpoint in one, a recipe, or a model (hub id, folder, GGUF file), whose weights a
            head then belongs to.
        overrides: changes to its configuration, e.g. tasks.source=countdown rollout.max_tokens=512.
        kind: joint predicts reward and remaining length, for adaptive (S038) and scorer=joint; value the chance of a
            right answer, for S120 and scorer=value.
        out: file to write, head.safetensors unless given; with --tune a folder, tuned unless given.
        tasks: different training tasks to ask, as many as there are if fewer.
        samples: responses to each.
        epochs: passes over the responses; 200 full batches for joint, 20 for value, 10 with tune, unless given.
        lr: of the head; 0.05 for joint, 0.03 for value, 0.01 with tune, unless given.
        tune: train a copy of the model under the joint head too, held to the original by the divergence of its next
            tokens; out is then a folder with both, which assay eval takes as it takes a run.
        as_json: print what the head is worth as JSON.
    """
    from assay.console import Reporter
    from assay.engines.target import resolve
    from assay.inference.heads import train as heads

    protect(unsafe_no_sandbox)
    out = out or Path("tuned" if tune else "head.safetensors")
    (_check_folder if tune else _check_out)(out)
    found = resolve(target, overrides)
    with Reporter(as_json).progress("responses to tasks", tasks) as tick:
        trained = heads.train_head(
            found, kind, tasks=tasks, samples=samples, epochs=epochs, lr=lr, tune=tune, tick=tick
        )
    _write(trained, out, found.config)
    if as_json:
        plain = {"kind": kind, "out": str(out), "tasks": trained.tasks, "responses": trained.responses}
        more = {"left_out": trained.left_out, "divergence": trained.divergence, "fit": asdict(trained.fit)}
        print(json.dumps({**plain, **more}))
        return 0
    _print(trained)
    strategy = {"joint": "S038", "value": "S120"}[kind]
    # The tasks and the sampling that it was trained for are part of the command.
    same = shlex.join([str(out)] if tune else [target, *overrides])
    file = out / HEAD if tune else out
    name = str(file) if re.fullmatch(r"[\w./-]+", str(file)) else f"'{file}'"
    say(f'{out}\nassay eval {same} --strategy "sample,{strategy}(head={name})"')
    return 0


def _check_out(out: Path) -> None:
    """Find out before anything is sampled whether the file can be written."""
    if out.suffix != ".safetensors" or out.is_dir():
        raise UsageError(f"--out {out}: a head is a file whose name ends in .safetensors")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: its folder cannot be made: {error.strerror or error}") from None
    if not os.access(out.parent, os.W_OK):
        raise UsageError(f"--out {out}: its folder cannot be written to")


def _check_folder(out: Path) -> None:
    """Find out before anything is sampled whether the folder is free."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out {out} is there already; with --tune it is a new folder, for the model and its head")
    parent = next(p for p in out.absolute().parents if p.exists())
    if not os.access(parent, os.W_OK):
        raise UsageError(f"--out {out}: {parent} cannot be written to")


def _write(trained: Trained, out: Path, config: RunConfig) -> None:
    from assay.config import dump_config
    from assay.records.files import disk_failure, write_file, write_folder

    def tuned(folder: Path) -> None:
        assert trained.model is not None
        (folder / "config.toml").write_text(dump_config(config), encoding="utf-8")
        trained.model.save(folder / "policy")
        trained.head.save(folder / HEAD)

    try:
        if trained.model is None:
            write_file(out, trained.head.save)
        else:
            write_folder(out, tuned)
    except Exception as error:  # safetensors has errors of its own for what the disk does
        if (reason := disk_failure(error)) is None:
            raise
        raise RunError(f"could not write {out}: {reason}") from None


def _print(trained: Trained) -> None:
    fit = trained.fit
    left = f"; {trained.left_out} responses without a known outcome left out" if trained.left_out else ""
    say(f"trained on {trained.responses} responses to {trained.tasks} tasks{left}")
    say(f"on {fit.responses} responses to {fit.tasks} tasks kept back, mean reward {fit.right:.3f}:")
    rows = [("reward, squared error", *_cells(fit.reward))]
    if fit.length is not None:
        rows.append(("remaining length, nats", *_cells(fit.length)))
    print_table(("", "head", "a constant", "difference", "95% interval"), rows)
    apart = "" if fit.auroc is None else f", tells right from wrong with AUROC {fit.auroc:.3f}"
    say(f"at the end of a response it predicts {fit.predicted:.3f}, calibration error {fit.ece:.3f}{apart}")
    if trained.divergence is not None:
        now, before = trained.divergence
        print(
            f"its next tokens diverge by {now:.4f} nats from the original's likeliest 32, those of that by {before:.4f}"
        )
    if not fit.helps:
        print("it is not certain that the head is better than a constant; more --tasks or --samples may help")


def _cells(gain: Gain) -> tuple[str, str, str, str]:
    d = gain.difference
    return f"{gain.head:.4f}", f"{gain.constant:.4f}", f"{d.value:+.4f}", f"{d.low:+.4f} to {d.high:+.4f}"
