"""How a policy that learns judges the steps of solutions, looked at beside its own tasks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from running import recipe

import assay
from assay.config import RunConfig
from assay.engines.base import Request
from assay.errors import UsageError
from assay.records.evaluation import Evaluation
from assay.records.judging import looks
from assay.report import write_report
from assay.rewards.process.first_error import Found
from assay.training.looks.judging import JudgingOfSteps, judged
from assay.types import Episode

pytestmark = pytest.mark.usefixtures("one_thread")

ALPHABET = "0123456789+-*=<>/step\n"
CHAINS = {"name": "corrupted_chain", "length": 2}
CALLBACK = {"name": "judging_of_steps", "tasks": CHAINS, "count": 6, "max_tokens": 2, "template": "{problem}{steps}"}


def test_by_hand() -> None:
    """Three of five wrong solutions located and nine of ten right ones: F1 = 2 (.6) (.9) / 1.5 = .72."""
    found = [Found(k) for k in (2, 0, 1, 2, None)] + [Found(-1)] * 9 + [Found(0)]
    truth = [2, 0, 1, 1, 3] + [-1] * 10
    assert judged(found, truth) == pytest.approx(
        {"wrong": 0.6, "right": 0.9, "f1": 0.72, "judged": 15, "unreadable": 1, "failed": 0}
    )
    # A reply that could not be had is no judgement, and what cannot be told is left out.
    assert judged([Found(None, True), Found(-1)], [1, -1]) == {"right": 1, "judged": 1, "unreadable": 0, "failed": 1}
    assert judged([Found(1), Found(-1)], [0, -1])["f1"] == 0


class Judge:
    """Calls the second step wrong where it says so and all right otherwise; fails for one problem."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def encode(self, prompt: Any) -> np.ndarray:
        return np.arange(len(str(prompt)))

    encode_response = decode = encode

    def generate(self, requests: Any) -> list[list[Episode]]:
        self.asked += requests
        out, none = [], np.zeros(0, dtype=np.int64)
        for request in requests:
            text = r"\boxed{1}" if "bad" in str(request.prompt) else r"\boxed{-1}"
            stop: Any = "error" if "down" in str(request.prompt) else "eos"
            out.append([Episode(none, none, none > 0, None, text, stop)])
        return out


def test_an_evaluation_is_followed_by_a_look(tmp_path: Path) -> None:
    rows = [("p", ["fine", "bad"], 1), ("q", ["fine"], -1), ("r", ["bad", "fine"], 0), ("down", ["fine"], -1)]
    file = tmp_path / "known.jsonl"
    file.write_text("".join(json.dumps({"problem": p, "steps": s, "label": e}) + "\n" for p, s, e in rows))
    callback, judge, said = JudgingOfSteps({"name": "step_labels", "path": str(file)}, max_tokens=9), Judge(), []
    callback.check(RunConfig())
    policy = SimpleNamespace(encode=judge.encode, context=10_000)
    run: Any = SimpleNamespace(folder=tmp_path, policy=policy, models=SimpleNamespace(engine=judge), say=said.append)
    callback.on_start(run)
    assert not judge.asked
    evaluation: Any = SimpleNamespace(step=10, label="step-000010", pass_interval=lambda k: SimpleNamespace(value=0.25))
    callback.on_evaluation(run, evaluation)
    assert {(r.sampling.max_tokens, r.sampling.temperature) for r in judge.asked} == {(9, 0.0)}
    [row] = looks(tmp_path)
    assert row == pytest.approx(
        {"step": 10, "label": "step-000010", "pass@1": 0.25, "wrong": 0.5, "right": 1.0, "f1": 2 / 3}
        | {"judged": 3, "unreadable": 0, "failed": 1}
    )
    assert said == ["step-000010: judging of steps f1 0.667  wrong 0.500  right 1.000"]
    # A row that a crash cut short is none, and one that is measured again replaces the first.
    with (tmp_path / "judging.jsonl").open("a") as out:
        out.write('{"step": 10, "label": "after", "f1": 1.0}\n{"step": 20, "la')
    assert [(r["step"], r["label"]) for r in looks(tmp_path)] == [(10, "after")]
    policy.context = 100
    with pytest.raises(UsageError, match=r"known.jsonl/0 is asked in \d+ tokens, which with 9 more do not fit"):
        callback.on_start(run)


def run(folder: Path, **more: Any) -> Path:
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 128, "alphabet": ALPHABET}
    data = recipe(folder, model={"nano": nano}, warmup={"steps": 0}, train={"steps": 3}, run=more)
    assay.train(data, quiet=True)
    return folder


def test_a_run_has_both_curves_and_learns_as_without(tmp_path: Path) -> None:
    plain, looked = run(tmp_path / "plain"), run(tmp_path / "looked", callbacks=[CALLBACK])
    rows = looks(looked)
    assert [(row["step"], row["label"]) for row in rows] == [(0, "before"), (2, "step-000002"), (3, "after")]
    for row in rows:
        stored = Evaluation.from_parquet(looked / "evals" / f"{row['label']}.parquet").pass_interval(1)
        assert stored is not None and row["pass@1"] == stored.value and row["judged"] == 6 and "f1" in row
    a, b = (
        torch.load(next((f / "checkpoints" / "rl-000003").glob("trainer.pt")), weights_only=True)
        for f in (plain, looked)
    )
    assert str(a["optimizer"]) == str(b["optimizer"]), "a look changed what is learned"
    assert (
        "Judging of steps" in write_report(looked).read_text() and "Judging of" not in write_report(plain).read_text()
    )


@pytest.mark.parametrize(
    ("options", "sections", "words"),
    [
        ({"count": 0}, {}, "count 0 and max_tokens 2 must be 1 or more"),
        ({"max_tokens": 0}, {}, "max_tokens 0 must"),
        ({}, {"evaluate": {"samples": 0}}, "set evaluate.samples above 0"),
        ({}, {"scale": {"trainers": 2}}, r"set scale\.trainers=1"),
        ({"tasks": "arithmetic"}, {}, "has no steps and index of the first wrong one"),
        ({"tasks": CHAINS | {"wrong": 0.0}}, {}, "the first 6 solutions are all right or all wrong"),
        ({"tasks": CHAINS | {"wrong": 1.0}}, {}, "are all right or all wrong"),
    ],
)
def test_what_cannot_be_measured_is_said_before_the_run(options: Any, sections: Any, words: str) -> None:
    made, config = {k: v for k, v in (CALLBACK | options).items() if k != "name"}, RunConfig.model_validate(sections)
    with pytest.raises(UsageError, match=words):
        JudgingOfSteps(**made).check(config)


def test_a_policy_that_draws_is_refused() -> None:
    config = RunConfig.model_validate({"model": {"source": "flow"}})
    with pytest.raises(UsageError, match="wants a policy that writes text"):
        JudgingOfSteps(CHAINS, 6).check(config)
