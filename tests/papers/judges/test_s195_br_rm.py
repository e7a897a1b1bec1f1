"""S195: the form of a verdict, two turns of which one follows from the other, penalties and advantages by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from acted import played
from claimed import learned
from grouped import grouped
from running import metrics, run, tables

from assay import catalogue
from assay.audit.environment import audit_environment
from assay.batch import Batch
from assay.credit.rloo import RLOO
from assay.environments.checking.rethinking import BRANCH, DEFAULT, DIMENSIONS, Rethinking, focus_of
from assay.environments.hosted.worlds import Worlds
from assay.environments.tools import say
from assay.errors import UsageError
from assay.method import Method
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.rewards.outcome.penalties import Penalties
from assay.types import Task, Verdict
from assay.verify.pair_verdict import PairVerdict, pair_verdict

FOCUS = "[Focus]\n{}\n[End of Focus]"
END = "So it is.\n[Verdict]\n\\boxed{{{}}}\n[End of Verdict]"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (END.format(1), 1),
        (END.format(2) + "\n ", 2),
        (END.format(" 2 "), 2),
        (END.format(1).replace("]\n", "]  \n\n"), 1),
        (END.format(1) + "\nor not", None),
        (END.format("1, 2"), None),
        (END.format(3), None),
        (END.format(""), None),
        (END.format(1).replace("[Verdict]\n", "[Verdict] "), None),
        (END.format(1).replace("\n[End", " [End"), None),
        (END.format(1) + "\n" + END.format(2), None),
        (r"\boxed{1}", None),
    ],
)
def test_the_form_of_a_verdict(reply: str, said: int | None) -> None:
    assert pair_verdict(reply) == said
    verdict = PairVerdict()(Task("t", "q", "1"), reply)
    assert verdict.passed is (said == 1) and verdict.score == float(said == 1)
    assert verdict.parts == {"readable": float(said is not None)}


def test_swapped_answers_swap_the_label() -> None:
    one, other = (Rethinking().tasks()[k] for k in (6, 7))
    right, wrong = (
        text.partition(f"<answer-{k}>\n")[2].partition("\n")[0] for k, text in ((1, one.question), (2, one.question))
    )
    assert (one.reference, other.reference) == ("1", "2") and one.meta == other.meta == {"pair": 3}
    assert one.kind == "pair_verdict" and f"<answer-1>\n{wrong}\n</answer-1>\n<answer-2>\n{right}\n" in other.question
    a, b, found = (int(x) for x in right.replace("+", "").replace("=", "").split())
    assert a + b == found != int(wrong.split()[-1]) and f"What is {a} + {b}?" in one.question
    assert PairVerdict()(one, END.format(1)).passed and not PairVerdict()(other, END.format(1)).passed
    assert PairVerdict()(Task("t", "q", "3"), END.format(1)).passed is None
    draws = {Rethinking(seed=s).tasks()[k].question for s in (0, 1) for k in range(20)}
    assert len(draws) == 40 and Rethinking().tasks()[4] == Rethinking().tasks()[4]


def test_what_is_focused_on() -> None:
    """Three of the eight at most, in the order of the section; elsewhere they are not looked for."""
    assert len(DIMENSIONS) == 8 and all(name in BRANCH for name in DIMENSIONS)
    assert focus_of(FOCUS.format("Clarity, then Safety")) == ("clarity", "safety")
    said = "safety; completeness; clarity; logic of reasoning"
    assert focus_of(f"safety\n{FOCUS.format(said)}") == ("safety", "completeness", "clarity")
    assert focus_of("[focus] logic of reasoning [end of focus] safety") == ("logic of reasoning",)
    assert focus_of(FOCUS.format("style")) == focus_of("clarity") == focus_of("[Focus] clarity") == ()


def second(first: str) -> str:
    world = Rethinking()
    world.reset(world.tasks()[0], 0)
    step = world.step(say(first))
    assert not step.terminated
    [message] = step.observation.messages
    assert message["role"] == "user"
    return message["content"]


def test_the_second_turn_goes_by_the_first() -> None:
    assert second(FOCUS.format("safety and clarity")).startswith("Now read both answers again for: safety; clarity. ")
    assert f" for: {DEFAULT}. " in second("nothing of the kind") and r"\boxed{1 or 2}" in second("")
    world, task = Rethinking(), Rethinking().tasks()[1]
    for first, focus in ((FOCUS.format("clarity"), 1.0), ("?", 0.0)):
        *_, verdict = played(world, task, [say(first), say(END.format(2))])
        assert (verdict.passed, verdict.score, verdict.parts) == (True, 1, {"readable": 1.0, "focus": focus})
        *_, verdict = played(world, task, [say(first), say(END.format(1))])
        assert (verdict.passed, verdict.parts) == (False, {"readable": 1.0, "focus": focus})
    *_, verdict = played(world, task, [say(END.format(2)), say("2")])
    assert (verdict.passed, verdict.parts) == (False, {"readable": 0.0, "focus": 0.0})
    assert played(world, replace(task, reference=None), [say(""), say(END.format(2))])[-1].passed is None
    world.reset(task, 0)
    assert world.verdict().passed is False and world.verdict().parts == {"readable": 0.0, "focus": 0.0}
    chat = world.reset(replace(task, prompt=({"role": "user", "content": "q"},)), 0)
    assert [m["content"] for m in chat.messages] == ["q"]


def test_pairs_on_record(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps({"prompt": "Rhyme.", "chosen": "A cat, a hat.", "rejected": "</answer-1>No."}) + "\n")
    source = build("environment", {"name": "rethinking", "path": str(path)}).tasks()
    assert {source[k].reference for k in range(source.size)} == {"1", "2"} and source[0].kind == "pair_verdict"
    assert all("<request>\nRhyme.\n" in source[k].question and ">\nNo.\n<" in source[k].question for k in (0, 1))
    with pytest.raises(UsageError, match="seed -1"):
        Rethinking(seed=-1)


@pytest.mark.slow
def test_the_audit_passes() -> None:
    source = Rethinking().tasks()
    worlds = Worlds("rethinking", 1)
    try:
        findings = audit_environment(worlds, [source[k] for k in range(3)])
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings)


def test_its_plan_passes() -> None:
    source = Rethinking().tasks()
    for k in range(2):
        world = Rethinking()
        world.reset(source[k], 0)
        plan = world.gold()
        _, *steps, verdict = played(Rethinking(), source[k], list(plan))
        assert verdict.passed and verdict.parts["focus"] == 1 and len(steps) == len(plan) == 2
        world.step(plan[0])
        assert list(world.gold()) == [plan[1]]


def judged(*said: float | None) -> Batch:
    """Verdicts that are right (1), wrong (0), or say nothing (None)."""
    batch = grouped(["x"] * len(said))
    parts = [{"readable": float(x is not None)} for x in said]
    batch.verdicts = [Verdict(x or 0.0, x == 1, p) for x, p in zip(said, parts, strict=True)]
    return batch


SAID: Sequence[float | None] = (1, 1, 0, None, 1, 0, 1, 1)


def test_penalties_by_hand() -> None:
    found = Penalties()(judged(*SAID))
    assert found.values.tolist() == [0, 0, -10, -100, 0, -10, 0, 0]
    assert {k: v.tolist() for k, v in found.terms.items()} == {
        "right": [1, 1, 0, 0, 1, 0, 1, 1],
        "readable": [1, 1, 1, 0, 1, 1, 1, 1],
    }
    alike = Penalties(-1.0, -1.0)(judged(*SAID))
    assert alike.values.tolist() == [0, 0, -1, -1, 0, -1, 0, 0] and alike.terms["readable"].tolist()[3] == 0
    plain = grouped(["x", "broken"], passed=False)
    assert Penalties(-2.0)(plain).values.tolist()[0] == -2
    assert Penalties()(plain).valid.tolist() == [True, False]  # type: ignore[union-attr]


def advantages(rewards: Sequence[float], credit: RLOO) -> list[float]:
    batch = grouped(["x"] * len(rewards))
    batch.rewards = torch.tensor(rewards, dtype=torch.float64)
    return credit(batch)[:, 0].tolist()


def test_advantages_by_hand() -> None:
    """A wrong verdict is better than its siblings' mean where one of these is malformed; with penalties alike it is
    not. Siblings of the malformed one are 0 five times and -10 twice, whose deviation is sqrt(20000) / 7 / sqrt(10)."""
    released = Penalties()(judged(*SAID)).values.tolist()
    plain = [17.142857, 17.142857, 5.714286, -97.142857, 17.142857, 5.714286, 17.142857, 17.142857]
    assert advantages(released, RLOO()) == pytest.approx(plain, abs=1e-6)
    alike = Penalties(-1.0, -1.0)(judged(*SAID)).values.tolist()
    low, high = -0.714286, 0.428571
    assert advantages(alike, RLOO()) == pytest.approx([high, high, low, low, high, low, high, high], abs=1e-6)
    found = advantages(released, RLOO(normalise=True))
    assert found[3] == pytest.approx(-97.142857 / 4.517540, abs=1e-4)
    spread = float(np.std([0, 0, -10, -100, 0, -10, 0]))
    assert found[0] == pytest.approx(17.142857 / spread, abs=1e-6)
    assert advantages([0.1] * 7 + [2.0], RLOO(normalise=True))[7] == pytest.approx(1.9)  # siblings that are alike
    assert advantages([0.1] * 3, RLOO(normalise=True)) == pytest.approx([0] * 3) and advantages([3], RLOO(True)) == [0]
    apart = grouped(["x", "x", "broken"], ["x", "x"])
    apart.rewards, apart.valid = torch.tensor([1.0, 0.0, 9.0, 5.0, 2.0]).double(), torch.tensor([1, 1, 0, 1, 1]).bool()
    assert RLOO(normalise=True)(apart)[:, 0].tolist() == [1, -1, 0, 3, -3]
    assert RLOO().summary["normalisation"] == "none" != RLOO(True).summary["normalisation"]


def test_the_papers_numbers() -> None:
    made = catalogue.make("S195")
    assert isinstance(made, Method) and made.rollout == {"name": "multi_turn", "environment": "rethinking", "turns": 2}
    assert made.reward == Penalties(-10.0, -100.0) and made.credit == RLOO(normalise=True)
    loss: Any = made.objective
    assert isinstance(loss, ClippedSurrogate) and (loss.clip_low, loss.clip_high, loss.kl_weight) == (0.2, 0.2, 0.001)
    assert (loss.correction, loss.correction_cap, loss.aggregation) == ("token_truncate", math.inf, "token_mean")
    other = catalogue.make("S195", environment={"name": "rethinking"}, wrong=-1.0, unreadable=-2.0, kl_weight=0.02)
    assert isinstance(other, Method) and other.reward == Penalties(-1.0, -2.0)
    assert other.rollout["environment"] == {"name": "rethinking"} and other.objective.kl_weight == 0.02  # type: ignore


def test_it_trains(tmp_path: Path) -> None:
    """Tokens of both turns are trained, those of the second prompt are not."""
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 2300, "alphabet": alphabet}},
        tasks={"source": {"name": "environment", "environment": "rethinking"}, "eval_size": 1},
        warmup={"steps": 1, "batch": 2},
        method={"name": "S195", "reward": None},
        rollout={"prompts": 1, "group": 2, "max_tokens": 6, "stop": ["[End of Verdict]"]},
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    [row] = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert row["reward/readable"] == 0 and row["reward/mean"] == -100
    for file in tables(folder, "rollouts").values():
        for sample in file:
            assert "Now read both answers again" in sample["response"]
            first, last = json.loads(sample["turns"])
            assert (first["start"], first["end"], sample["length"]) == (0, 6, 12) and last["end"] - last["start"] == 6
            assert last["start"] > 500


def test_a_bandit_of_malformed_verdicts() -> None:
    found = learned("S195", "alike", steps=5, pairs=2)
    assert found["rollouts"] == 80 and 0 < found["area"] < 1 and 0 < found["formed"] < 1
