"""A run goes back to its last checkpoint; one that is damaged, or not what a run writes, is passed over with a line."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from assay.config import RunConfig
from assay.errors import RunError, UsageError
from assay.records.checkpoints import checkpoints, no_checkpoint, whole_checkpoints
from assay.scale.checkpoint import SHARDS, load_shards, load_whole
from assay.tasks.split import TrainStream
from assay.training.state import State

STATE = {
    **{"stage": str, "step": int, "elapsed": float, "random": dict, "stream": dict, "curriculum": object},
    **{"method": object, "correction": str, "optimizer": dict, "learners": object, "watch": dict},
}
"""What ``trainer.pt`` holds."""


def restore(trainer: State) -> bool:
    """Bring a trainer to the last checkpoint of its folder that can be used, and forget what came after it.

    Returns:
        False if the run was stopped before its first checkpoint and first step: it is then to begin.

    Raises:
        UsageError: no checkpoint can be used, or the tasks are not those of the checkpoint.
        RunError: the reference policy is damaged; or, of several ranks, a checkpoint that is as it was written.
    """
    run, ranks, folder = trainer.folder.path, trainer.ranks, trainer.folder
    if not ranks.once(lambda: checkpoints(run)) and not folder.metrics():
        trainer.reporter.line(f"{run} was stopped before its first step; beginning")
        folder.forget_after("warmup", 0)
        return False
    broken: list[str] = []
    for stage, step, path in _candidates(trainer, broken):
        # A failed attempt leaves nothing behind in these; all else is written over by the next.
        method, correction, started = trainer.method, trainer.keeper.correction, trainer.started
        try:
            state = _state(path, stage, step)
            if trainer.stages:
                trainer.enter(*state.get("place", (0, 0))[:2])
            state |= _streams(trainer, state)
            _load(trainer, path, state)
        except (RunError, torch.OutOfMemoryError, ChangedTasks):
            raise
        except Exception as error:  # readers of what somebody else wrote raise whatever they trip over
            if ranks.size > 1:
                if ranks.lost(error):
                    raise
                raise RunError(f"checkpoint {path} cannot be used: {_words(error)}; remove it") from error
            broken.append(f"{path.name} cannot be used ({_words(error)})")
            trainer.method, trainer.keeper.correction, trainer.started = method, correction, started
            continue
        for line in [f"checkpoint {words} and is not used" for words in broken] + folder.forget_after(stage, step):
            trainer.reporter.line(line)
        trainer.reporter.line(f"resumed {run} at {stage} step {step}")
        for file in folder.changed_code():
            trainer.reporter.line(f"{file} is no longer what it was when the run began; going on with what is there")
        return True
    raise no_checkpoint(run, ranks.broadcast(broken))


class ChangedTasks(UsageError):
    """The tasks are not those that the run began with."""


def _candidates(trainer: State, broken: list[str]) -> Iterator[tuple[str, int, Path]]:
    """Checkpoints that are as they were written, the last first, as rank 0 finds them; ``broken`` takes the others."""
    found = whole_checkpoints(trainer.folder.path, broken.append)
    while (place := trainer.ranks.once(lambda: next(found, None))) is not None:
        yield place


def _state(path: Path, stage: str, step: int) -> dict[str, Any]:
    """Read ``trainer.pt``, running none of the code it may hold; raise ValueError for one that no run has written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd pickles, which are refused below or by what takes the state
        state = torch.load(path / "trainer.pt", map_location="cpu", weights_only=True)
    if not isinstance(state, dict):
        raise ValueError("trainer.pt holds no table")
    for key, kind in STATE.items():
        if key not in state or not isinstance(state[key], kind):
            raise ValueError(f"trainer.pt has no proper {key}")
    if (state["stage"], state["step"]) != (stage, step):
        raise ValueError(f"trainer.pt is of {state['stage']} step {state['step']}")
    return state


def _streams(trainer: State, state: Mapping[str, Any]) -> dict[str, Any]:
    """Where the streams of tasks stood, of the stages before too, as :func:`_stream` has each."""
    told: set[str] = set()
    earlier = zip(trainer.stages[: trainer.place], state.get("earlier_streams", ()), strict=False)
    return {
        "stream": _stream(trainer, trainer.stream, trainer.config, state["stream"], told),
        "earlier_streams": [_stream(trainer, x.stream, x.config, saved, told) for x, saved in earlier],
    }


def _stream(
    trainer: State, stream: TrainStream, config: RunConfig, state: Mapping[str, Any], told: set[str]
) -> Mapping[str, Any]:
    """Where a stream of tasks stood, if they are still the same; or where it goes on, if others are accepted, which is
    ``told`` once."""
    changed = stream.changed(state)
    if changed is None:
        return state
    run, source = trainer.folder.path, config.tasks.source
    name = source if isinstance(source, str) else source.get("path", source.get("name"))
    if config.run.changed_tasks == "refuse":
        raise ChangedTasks(
            f"the tasks of {name} are not those this run was trained on: {changed}; put them back, or go on with what "
            f"is there: assay train --resume {run} run.changed_tasks=accept"
        )
    line = f"the tasks of {name} have changed, {changed}; going on with what is there"
    if line not in told:
        trainer.reporter.line(line)
        told.add(line)
    return stream.adapted(state)


def _load(trainer: State, path: Path, state: dict[str, Any]) -> None:
    if not (path / SHARDS).is_dir():
        trainer.policy.load_weights(path / "policy")
    trainer.keeper.behind = True
    if state["learners"] is not None:
        trainer.load_reference()
        trainer.start_learners()
        for learner, saved in zip(trainer.method.learners, state["learners"], strict=True):
            learner.load_state_dict(saved)
    if trainer.partner is not None:
        trainer.partner.restore(path / "partner", state["partner"])
    trainer.load_cheap_state(state)
    trainer.watch.load_state_dict(state["watch"])
    trainer.optimizer = trainer.new_optimizer()
    if (path / SHARDS).is_dir():
        load_shards(path / SHARDS, trainer.policy, trainer.optimizer, state["optimizer"]["param_groups"])
    else:
        load_whole(state["optimizer"], trainer.policy, trainer.optimizer)


def _words(error: Exception) -> str:
    """An error in a few words on one line."""
    return textwrap.shorten(f"{type(error).__name__}: {error}", 160, placeholder=" ...")
