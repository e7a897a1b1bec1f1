"""Scorers of steps made new, written to a folder, and read from one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from assay.errors import UsageError
from assay.rewards.step_models.both_ways import BothWays, Gate
from assay.rewards.step_models.classifier import ClassifierPRM
from assay.rewards.step_models.on_states import StatesPRM, StepHead
from assay.rewards.step_models.probe import StepProbe
from assay.rewards.step_models.states import LAST, Stateful, width
from assay.rewards.step_models.traced import TracedRM
from assay.rewards.step_models.written import WrittenPRM

FILE = "prm.json"

Kind = Literal["head", "probe", "whole", "traced", "written"]


@dataclass(frozen=True, slots=True)
class PRMSettings:
    """What a scorer of steps is made of.

    Attributes:
        kind: ``head``: linear on the last state of a step; ``probe``: a small transformer on the states of all tokens;
            ``whole``: a token classifier that is a language model of its own; ``traced``: a language model that
            consults tools first, and a linear head; ``written``: one that writes why a step is right or wrong.
        both_ways: steps are read in reverse too, and the scores put together by their mean or a gate.
        separator: between steps of which there is only the text.
        layers: whose states a head or a probe reads.
        probe: options of :class:`~assay.rewards.step_models.probe.StepProbe`.
        traced: options of :class:`~assay.rewards.step_models.traced.TracedRM`.
        written: options of :class:`~assay.rewards.step_models.written.WrittenPRM`.
    """

    kind: Kind = "head"
    both_ways: Literal["no", "average", "gate"] = "no"
    separator: str = "\n"
    layers: tuple[str, ...] = LAST
    probe: Mapping[str, Any] = field(default_factory=dict)
    traced: Mapping[str, Any] = field(default_factory=dict)
    written: Mapping[str, Any] = field(default_factory=dict)

    def made(self, policy: Stateful | None, source: str | Path = "", fresh: bool = True) -> Any:
        """Return an untrained scorer, which at first gives every step 1/2 (a probe: about that).

        Args:
            policy: whose states a head or a probe reads.
            source: folder or hub id of the model that a classifier begins from.
            fresh: a classifier's last layer begins at 0, and not with what is in the folder.
        """
        if self.kind == "whole":
            base: Any = ClassifierPRM(source, self.separator)
            for name, parameter in base.model.named_parameters():
                if fresh and name.startswith(("score", "classifier")):
                    torch.nn.init.zeros_(parameter)
        elif self.kind == "written":
            if self.both_ways != "no":
                raise UsageError("a scorer that writes reads a solution from its beginning; leave out both_ways")
            base = WrittenPRM(policy, **self.written)
        elif self.kind == "traced":
            language: Any = policy
            base = TracedRM(language, StepHead(width(language)), **self.traced)
        else:
            assert policy is not None
            inputs = width(policy, self.layers)
            reader = StepHead(inputs) if self.kind == "head" else StepProbe(inputs, **self.probe)
            base = StatesPRM(policy, reader, self.layers, self.separator)
        if self.both_ways == "no":
            return base
        return BothWays(base, Gate(base.width) if self.both_ways == "gate" else None)

    def save(self, model: Any, folder: Path) -> None:
        """Write a scorer with these settings."""
        model.save(folder)
        (folder / FILE).write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")


def is_prm(folder: str | Path) -> bool:
    """Whether ``assay train-prm`` wrote a folder."""
    return (Path(folder).expanduser() / FILE).is_file()


def load_prm(folder: str | Path) -> Any:
    """Return the scorer of steps in a folder: what ``assay train-prm`` wrote, or a token classifier.

    Raises:
        UsageError: there is none, or it cannot be read.
    """
    if not is_prm(folder):
        return ClassifierPRM(folder)
    folder = Path(folder).expanduser()
    try:
        said = json.loads((folder / FILE).read_text(encoding="utf-8"))
        settings = PRMSettings(
            said["kind"],
            said["both_ways"],
            said["separator"],
            tuple(said["layers"]),
            dict(said["probe"]),
            dict(said.get("traced", {})),
            dict(said.get("written", {})),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{folder / FILE} cannot be read as that of a scorer of steps: {error}") from None
    if settings.kind == "whole":
        made = settings.made(None, folder, fresh=False)
    else:
        from assay.engines.target import resolve

        made = settings.made(resolve(str(folder)).load())
        base = made.model if isinstance(made, BothWays) else made
        if settings.kind != "written":
            _weights(base.reader, "reader", folder)
    if isinstance(made, BothWays) and made.gate is not None:
        _weights(made.gate, "gate", folder)
    return made


def _weights(module: torch.nn.Module, name: str, folder: Path) -> None:
    """Put a file's weights into a module."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / f"{name}.safetensors"
    try:
        module.load_state_dict(load_file(path))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
