"""Parts of one's own that return what cannot be used are told of by name and place, and nothing is learned from it."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import running
import torch

import assay
from assay.errors import RunError, UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.objectives.policy_loss import PolicyLoss

PARTS = """
import torch
from dataclasses import dataclass
from assay import Batch, Loss, Reward
from assay.objectives.policy_loss import PolicyLoss


class Credit:
    def __init__(self, how: str):
        self.how = how

    def __call__(self, batch):
        flat = batch.rewards - batch.rewards.mean()
        good = flat[:, None].expand(batch.tokens.shape).clone()
        if self.how == "raises":
            return good.nothing
        if self.how == "nan":
            good[1, 0] = torch.nan
        other = {"flat": flat, "list": good.tolist(), "none": None, "whole": good.long()}
        return other.get(self.how, good)


class Select:
    def __init__(self, how: str):
        self.how = how

    def __call__(self, batch):
        one = torch.ones(len(batch))
        return {"flat": one[:, None], "below": -one, "nan": one * torch.nan, "good": one}[self.how]


def changed(made, **fields):
    # Fields of other types than those that are checked where it is made.
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class Given:
    def __init__(self, how: str):
        self.how = how

    def __call__(self, batch):
        one = torch.arange(float(len(batch)))
        made = {
            "tensor": lambda: one,
            "short": lambda: Reward(one[1:]),
            "whole": lambda: changed(Reward(one), values=one.long()),
            "list": lambda: changed(Reward(one), values=one.tolist()),
            "nan": lambda: Reward(one * torch.nan),
            "terms": lambda: Reward(one, terms={"a": one[1:]}),
            "tokens": lambda: changed(Reward(one), tokens=one),
            "left out": lambda: Reward(one * torch.nan, valid=one < 0),
            "good": lambda: Reward(one),
        }
        return made[self.how]()


class Objective:
    def __init__(self, how: str):
        self.how = how

    def __call__(self, logprobs, batch):
        value = logprobs.sum()
        made = {
            "tensor": lambda: value,
            "many": lambda: changed(Loss(value), value=logprobs),
            "cut": lambda: Loss(value.detach()),
            "good": lambda: Loss(value, {"mine": 1.0}),
            "named": lambda: Loss(value, {"grad_norm": 1.0}),
            "tensor metric": lambda: changed(Loss(value), metrics={"mine": logprobs}),
            "run's": lambda: Loss(value, {"reward/mean": 9.0}),
        }
        return made[self.how]()


@dataclass(frozen=True)
class Surrogate(PolicyLoss):
    how: str = "good"

    def surrogate(self, r):
        loss = -r.ratio * r.advantages
        return {"alone": loss, "one": (loss.mean(), {}), "swapped": ({}, loss), "good": (loss, {})}[self.how]
"""


def trained(folder: Path, seam: str, part: str, how: str) -> Path:
    (folder / "parts.py").write_text(textwrap.dedent(PARTS))
    spec = {"name": f"{folder / 'parts.py'}:{part}", "how": how}
    made = running.recipe(
        folder / "run", warmup={"steps": 0}, train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"samples": 0, "every": 0},
    )  # fmt: skip
    made["method"] |= {seam: spec}
    assay.train(made, quiet=True)
    return folder / "run"


@pytest.mark.parametrize(
    ("seam", "part", "how", "words"),
    [
        ("credit", "Credit", "flat", r"credit Credit: returned a tensor \(12,\); return a tensor \(N, T\), here"),
        ("credit", "Credit", "list", "credit Credit: returned a list; return a tensor"),
        ("credit", "Credit", "none", "credit Credit: returned a NoneType; return a tensor"),
        ("credit", "Credit", "whole", r"credit Credit: returned numbers of type torch\.int64"),
        ("credit", "Credit", "nan", r"credit Credit gave nan for 1 of \d+, first for sample 1 \(task .*\), token 0;"),
        ("credit", "Credit", "raises", r"credit Credit raised AttributeError at parts\.py:\d+: 'Tensor' object has no"),
        ("select", "Select", "flat", r"select Select: returned a tensor \(12, 1\); return a tensor \(N,\), here"),
        ("select", "Select", "below", "select Select gave a weight of -1; 0 leaves a sample out"),
        ("select", "Select", "nan", "select Select gave nan for 12 of 12, first for sample 0"),
        ("reward", "Given", "tensor", r"reward Given returned a Tensor; return assay\.Reward\(values"),
        ("reward", "Given", "short", r"reward Given, values: returned a tensor \(11,\); return a tensor \(N,\)"),
        ("reward", "Given", "whole", r"reward Given, values: returned numbers of type torch\.int64"),
        ("reward", "Given", "list", "reward Given, values: returned a list"),
        ("reward", "Given", "nan", "reward Given gave nan for 12 of 12, .*; valid=... leaves out samples without one"),
        ("reward", "Given", "terms", r"reward Given, term 'a': returned a tensor \(11,\)"),
        ("reward", "Given", "tokens", r"reward Given, tokens: returned a tensor \(12,\); return a tensor \(N, T\)"),
        ("objective", "Objective", "tensor", r"objective Objective returned a Tensor; return assay\.Loss\(value"),
        ("objective", "Objective", "many", r"objective Objective: its loss is a Tensor \(12, \d\); return"),
        ("objective", "Objective", "cut", "objective Objective: its loss has no gradient"),
        ("objective", "Objective", "named", "its metric 'grad_norm' has the name of the update's own"),
        ("objective", "Objective", "tensor metric", "its metric 'mine' is a Tensor; make it a float"),
        ("objective", "Objective", "run's", "metric 'reward/mean' of the method has the name of the run's own"),
        ("objective", "Surrogate", "alone", r"Surrogate\.surrogate returned a Tensor; return \(losses \(12, \d"),
        ("objective", "Surrogate", "one", r"Surrogate\.surrogate returned losses \(\); return \(losses \(12"),
        ("objective", "Surrogate", "swapped", r"Surrogate\.surrogate returned a tuple; return"),
    ],
)  # fmt: skip
def test_it_is_said_what_was_returned_and_what_is_wanted(
    seam: str, part: str, how: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises((UsageError, RunError), match=words):
        trained(tmp_path, seam, part, how)


@pytest.mark.parametrize(
    ("seam", "part", "how"),
    [
        ("credit", "Credit", "good"),
        ("select", "Select", "good"),
        ("reward", "Given", "good"),
        ("reward", "Given", "left out"),
        ("objective", "Objective", "good"),
        ("objective", "Surrogate", "good"),
    ],
)
def test_what_is_right_is_taken(seam: str, part: str, how: str, tmp_path: Path) -> None:
    rows = running.metrics(trained(tmp_path, seam, part, how))
    assert len(rows) == 1 and ("mine" in rows[0]) == (part == "Objective")


def test_signals_of_ones_own_come_beside_those_of_inherited_options() -> None:
    class Mine(ClippedSurrogate):
        needs = frozenset({"policy_entropy"})  # type: ignore[assignment]

    class Further(Mine):
        needs = frozenset({"policy_logit"})  # type: ignore[assignment]

    assert Mine().needs == {"policy_entropy"}
    assert Mine(kl_weight=0.1, correction="token_truncate").needs == {
        "policy_entropy", "reference_logprobs", "policy_logprobs",
    }  # fmt: skip
    assert Further(kl_weight=0.1).needs == {"policy_entropy", "policy_logit", "reference_logprobs"}
    assert PolicyLoss.needs.fget(ClippedSurrogate()) == frozenset()  # type: ignore[attr-defined]


def test_errors_of_the_packages_own_parts_stay_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are ours to mend: their traceback is wanted."""
    from assay.credit.grpo import GRPO

    def broken(self: Any, batch: Any) -> torch.Tensor:
        raise KeyError("ours")

    monkeypatch.setattr(GRPO, "__call__", broken)
    with pytest.raises(Exception, match="ours") as found:
        running.run(tmp_path / "run", warmup={"steps": 0}, train={"steps": 1})
    assert not isinstance(found.value, UsageError)
