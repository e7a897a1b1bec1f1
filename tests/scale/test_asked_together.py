"""What ranks ask a judge together is asked once, and elsewhere each asks by itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from ranked import Seat, ranked, seated, train
from running import recipe, tables
from scripted import Scripted

from assay.batch import Batch, Reward
from assay.engines.asking import ask
from assay.engines.base import Sampling
from assay.engines.keywords import Keywords
from assay.learning.signals import compute_signals
from assay.learning.step import learn
from assay.method import Method
from assay.rewards.spec import reward_of
from assay.scale.divided import AgreedMethod, AskedTogether, DividedModels, asked_together
from assay.scale.ranks import Ranks
from assay.types import Ask, Episode, Group, Task, Verdict

SAID = ["fine", "poor", "good", "fine", "bad"]


def batch() -> Batch:
    none = np.zeros(0, dtype=np.int64)
    episodes = tuple(
        Episode(none, np.array([ord(c) for c in text]), np.ones(len(text), bool), np.zeros(len(text)), text, "eos")
        for text in SAID
    )
    return Batch.from_groups([Group(Ask(Task("t", ""), len(SAID)), episodes, (Verdict.wrong(),) * len(SAID))])


class Judge(Scripted):
    """Replies with the place of a prompt's first letter in the alphabet."""

    def generate(self, requests: Any) -> Any:
        self.asked += requests
        return [
            [Episode(np.zeros(0), np.zeros(0), np.zeros(0, bool), None, str(ord(r.prompt[0]) - 96), "eos")]
            for r in requests
        ]


def read(judge: Any, batch: Batch) -> torch.Tensor:
    return torch.tensor([float(r.text) for r in ask(judge, [e.text for e in batch.episodes], Sampling(1))])


@dataclass(frozen=True, slots=True)
class Letters:
    """A signal that a judge says."""

    judge: Any
    name = "letters"

    def __call__(self, batch: Batch, models: Any) -> torch.Tensor:
        return read(self.judge, batch)


class Asking:
    """A reward that a judge says, which it holds two levels deep, beside a signal that the same judge says."""

    def __init__(self, judge: Any):
        self.inner = {"judges": (judge,)}
        self.letters = Letters(judge)

    @property
    def needs(self) -> frozenset[Any]:
        return frozenset({self.letters})

    def __call__(self, batch: Batch) -> Reward:
        return Reward(read(self.inner["judges"][0], batch).to(batch.rewards))


def test_a_step_asks_each_question_once() -> None:
    """Four different responses, asked for a signal and for a reward: two for each rank each time."""
    judges = [Judge(), Judge()]

    def rank(seat: Seat) -> Batch:
        method = Method(reward=reward_of({"name": "weighted", "terms": {"a": Asking(judges[seat.rank])}}))
        agreed, mine = AgreedMethod.of(method, seat), batch()
        compute_signals(mine, agreed.needs, DividedModels(None, ranks=seat))  # type: ignore[arg-type]
        return agreed.value(mine)

    for found in seated(rank):
        assert found.rewards.tolist() == found.signals["letters"].tolist() == [6, 16, 7, 6, 2]
    assert [len(judge.asked) for judge in judges] == [4, 4]
    alone = Method(reward=Asking(Judge()))
    assert AgreedMethod.of(alone, Ranks()) is alone


@pytest.mark.parametrize("turn", ["before", "after"])
def test_a_learner_asks_each_question_once(turn: str) -> None:
    judges = [Judge(), Judge()]

    def rank(seat: Seat) -> dict[str, float]:
        @dataclass(frozen=True, slots=True)
        class Learning(Letters):
            """A signal that also learns from what the judge says."""

            turn: str = "after"

            def learn(self, batch: Batch, models: Any) -> dict[str, float]:
                return {"said": float(read(self.judge, batch).sum())}

        taught = Asking(judges[seat.rank])
        taught.letters = Learning(judges[seat.rank], turn)
        agreed, mine, models = AgreedMethod.of(Method(reward=taught), seat), batch(), DividedModels(None, ranks=seat)  # type: ignore[arg-type]
        compute_signals(mine, agreed.needs, models)
        valued = agreed.value(mine)
        judges[seat.rank].asked.clear()
        return learn(valued, agreed, models, np.random.default_rng(0), lambda objective, part: {})

    found = seated(rank)
    assert all(metrics["said"] == 6 + 16 + 7 + 6 + 2 for metrics in found)
    # Where it comes before the policy its signal and the reward are computed anew, which ask again.
    assert [len(judge.asked) for judge in judges] == ([6, 6] if turn == "before" else [2, 2])


def test_elsewhere_a_rank_asks_by_itself() -> None:
    """Before a step, in work that one rank does, and in a thread, of which nobody knows when it asks."""
    judges = [Judge(), Judge()]

    def rank(seat: Seat) -> int:
        asking = asked_together(Asking(judges[seat.rank]), seat)
        models = DividedModels(None, ranks=seat)  # type: ignore[arg-type]
        if seat.first:
            read(asking.letters.judge, batch())
        with models.together():
            models.once(lambda: read(asking.letters.judge, batch()).tolist())
        return len(judges[seat.rank].asked)

    assert seated(rank) == [8, 0]


@pytest.mark.parametrize("value", [None, "a", 3, [1, 2], (1, Asking(None)), {"a": [0]}, torch.zeros(2), Judge])
def test_what_asks_nobody_is_left_as_it_is(value: Any) -> None:
    assert asked_together(value, Seat(0, [], None)) is value  # type: ignore[arg-type]


def test_an_engine_is_itself_but_for_who_is_asked() -> None:
    judge, seat = Judge(), Seat(0, [], None)  # type: ignore[arg-type]
    found = asked_together(judge, seat)
    assert isinstance(found, AskedTogether) and found.engine is judge and asked_together(found, seat) is found
    assert found.decode([97]) == "a" and found.asked is judge.asked
    both = asked_together([judge, "b"], seat)
    assert isinstance(both[0], AskedTogether) and both[1] == "b"


class Author(Keywords):
    """Writes instructions that are of its process, as a service may answer each that asks; writes down that it did."""

    def __init__(self, log: str):
        super().__init__([], f"<instruction>{os.getpid() % 1000}</instruction>")
        self.log = Path(log)

    def generate(self, requests: Any) -> Any:
        with self.log.open("a") as file:
            file.write("asked\n" * len(requests))
        return super().generate(requests)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="ranks are started by forking")
def test_a_curriculum_asks_its_author_once(tmp_path: Path) -> None:
    """Two ranks that were told different instructions would ask the policy different things."""
    options = {"first": ["1", "2"], "period": 1, "questions": 2, "proposals": 1}
    author = {"name": f"{__file__}:Author", "log": str(tmp_path / "asked")}
    method = {"name": "S080", "options": {**options, "author": author}}
    data = recipe(
        tmp_path / "run", warmup={"steps": 0}, method=method, train={"steps": 4}, evaluate={"samples": 0, "every": 0}
    )
    (tmp_path / "run.toml").write_text(tomli_w.dumps(data))
    codes = ranked(2, train, tmp_path / "log", str(tmp_path / "run.toml"), "scale.trainers=2")
    assert codes == [0, 0], "\n".join((tmp_path / f"log.{i}").read_text() for i in range(2))
    steps = list(tables(tmp_path / "run", "rollouts").values())
    tried = [step for step in steps if not {row["instruction"] for row in step} <= {"1", "2"}]
    assert tried and len((tmp_path / "asked").read_text().splitlines()) == 2
