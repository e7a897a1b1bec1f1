"""BeamPERL: reactions worked out by hand, how answers are read, what each axis changes, and adapters that learn."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from running import metrics, run
from scripted import Scripted

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.lab.settings.beams import read
from assay.method import make_method
from assay.papers.data.s025_beamperl import Curve, curves, policies
from assay.registry import build
from assay.tasks.procedural.beams import AXES, Beams
from assay.types import Ask, Group, Task, Verdict
from assay.verify.kind import KindVerifier
from assay.verify.number.reactions import reactions

pytestmark = pytest.mark.usefixtures("one_thread")
TASK = Task("t", "", {"reactions": {"R_A": "3/5", "R_B": "7/5"}}, "reactions")


def judged(box: str, before: str = "<think>hm</think>so ") -> Verdict:
    return KindVerifier()(TASK, f"{before}\\boxed{{{box}}}")


def test_reactions_by_hand() -> None:
    assert reactions((0, 10), [(4, 12)]) == (Fraction(36, 5), Fraction(24, 5))
    assert [float(r) for r in reactions((0, 10), [(4, 12)])] == [7.2, 4.8]
    assert reactions((2, 8), [(4, 12), (9, 6)]) == (7, 11)
    # Beyond a support the other one pulls.
    assert reactions((0, 4), [(6, 2)]) == (-1, 3)
    with pytest.raises(ValueError, match="not in order"):
        reactions((3, 3), [])


@settings(deadline=None)
@given(
    st.integers(0, 20),
    st.integers(1, 20),
    st.lists(st.tuples(st.integers(-5, 40), st.integers(-9, 9)), min_size=1, max_size=6),
    st.integers(-9, 9),
)
def test_forces_and_moments_are_in_balance(first: int, span: int, loads: list[tuple[int, int]], about: int) -> None:
    left, right = reactions((first, first + span), list(loads))
    assert left + right == sum(p for _, p in loads)
    assert left * (first - about) + right * (first + span - about) == sum(p * (x - about) for x, p in loads)


@pytest.mark.parametrize(
    ("box", "right"),
    [
        ("R_A = 0.6P, R_B = 1.4P", True),
        ("R_B = 1.4P, R_A = 0.6P", True),
        (r"R_{A} = \frac{3}{5} P; R_{B} = \frac{7}{5}P", True),
        ("R_A = 3P/5, R_B = 7/5 P", True),
        ("RA: 0.6*P, RB: 1.4 P", True),
        (r"R_A = \frac{3P}{5}, R_B = \dfrac{7 P}{5}", True),
        (r"R_A = (3/5)P, R_B = \left(\frac{7}{5}\right) P", True),
        (r"R_A = 0.6 \times P, R_B = \frac{7P}{6}", False),
        ("R_A = \N{MINUS SIGN}0.6P, R_B = 1.4P", False),
        ("0.6P, 1.4P", True),
        ("0.60009P, 1.39991P", True),
        ("0.6002P, 1.4P", False),
        ("0.6P, 1.3998P", False),
        ("1.4P, 0.6P", True),
        ("0.6P, 0.6P", False),
        ("-0.6P, 1.4P", False),
        ("R_A = 1.4P, R_B = 0.6P", False),
        ("R_A = 0.62P, R_B = 1.4P", False),
        ("R_A = -0.6P, R_B = 1.4P", False),
        ("R_A = 0.6P", False),
        ("R_A = 0.6P, 1.4P", False),
        ("R_A = 0.6P, R_C = 1.4P", False),
        ("R_A = 0.6P, R_B = 1.4P, R_C = 0P", False),
        ("R_A = 0.6, R_B = 1.4", False),
        ("R_A = 3P/0, R_B = 1.4P", False),
    ],
)
def test_how_reactions_are_read(box: str, right: bool) -> None:
    verdict = judged(box)
    assert verdict.passed is right and verdict.parts == {"accuracy": float(right), "format": 1.0}


def test_what_else_is_a_reaction() -> None:
    nothing = Task("t", "", {"reactions": {"R_A": "0", "R_B": "1"}}, "reactions")
    for said in ("R_A = 0, R_B = P", "R_B = P, R_A = 0.0", "R_A = 0P, R_B = 1P"):
        assert KindVerifier()(nothing, f"\\boxed{{{said}}}").passed is True
    assert KindVerifier()(TASK, "R_A = 0.6P, R_B = 1.4P").feedback == "there is no box"
    assert KindVerifier()(Task("t", "", "x", "reactions"), "").passed is None


def test_two_binary_rewards() -> None:
    right, wrong = "R_A = 0.6P, R_B = 1.4P", "R_A = P, R_B = P"
    said = [judged(right), judged(right, ""), judged(wrong), judged(wrong, "<think></think>")]
    assert [v.parts["format"] for v in said] == [1, 0, 1, 0]
    twice = KindVerifier()(TASK, f"<think>x</think>\\boxed{{1}}\\boxed{{{right}}}")
    assert (twice.passed, twice.parts["format"]) == (True, 0.0)
    engine = Scripted([("a", "eos")] * 4)
    [group] = build("rollout", "single_turn", sampling=Sampling(8)).collect(
        [Ask(TASK, 4)], engine, np.random.default_rng(0)
    )
    batch = Batch.from_groups([Group(group.ask, group.episodes, tuple(said))], torch.float64)
    assert make_method("S025").reward(batch).values.tolist() == pytest.approx([1.0, 2 / 3, 1 / 3, 0.0])
    other = make_method("S025", options={"accuracy": 3.0, "form": 1.0})
    assert other.reward(batch).values.tolist() == pytest.approx([1.0, 0.75, 0.25, 0.0])
    equal = make_method("S025", options={"accuracy": 1.0, "form": 1.0})
    assert equal.reward(batch).values.tolist() == [1.0, 0.5, 0.5, 0.0]
    alone = make_method("S025", options={"accuracy": 0.0, "form": 0.5})
    assert alone.reward(batch).values.tolist() == [1.0, 0.0, 1.0, 0.0]
    # A verifier of one's own that does not look at the form has seen none.
    plain = Batch.from_groups([Group(group.ask, group.episodes, (Verdict.right(),) * 4)], torch.float64)
    assert equal.reward(plain).values.tolist() == [0.5] * 4
    for bad in ({"accuracy": -1.0, "form": 3.0}, {"form": -1.0}, {"accuracy": 0.0, "form": 0.0}):
        with pytest.raises(UsageError, match="S025"):
            make_method("S025", options=bad)


def test_what_each_axis_changes() -> None:
    source, judge = Beams(axes=AXES), KindVerifier()
    tasks = [source[i] for i in range(80)]
    assert tasks == [source[i] for i in range(80)]
    for task in tasks:
        assert judge(task, str(task.solution)).parts == {"accuracy": 1.0, "format": 1.0}, task
    by = {axis: [t for t in tasks if t.meta["axis"] == axis] for axis in AXES}
    assert [len(found) for found in by.values()] == [20] * 4
    assert {t.meta["difficulty"] for t in by["loads"]} == {2, 3}
    assert {t.meta["difficulty"] for axis in ("trained", "supports", "wording") for t in by[axis]} == {1}
    assert all(read(t)[0] == 0 and read(t)[1] in (1, 2, 3) for axis in ("trained", "loads") for t in by[axis])
    assert all(0 < read(t)[0] < read(t)[1] < 3 for t in by["supports"])
    assert any(Fraction(v) < 0 for t in by["supports"] for v in t.reference["reactions"].values())
    for bad in ({"axes": ["colour"]}, {"loads": 3}, {"parts": 3}, {"longest": 0}, {"heaviest": 0}):
        with pytest.raises(UsageError, match="beams"):
            build("tasks", {"name": "beams", **bad})


def test_the_authors_beams_are_what_is_drawn() -> None:
    """Three lengths, three loads and 21 places, both ends among them."""
    source, found = Beams(seed=1), set()
    for i in range(2500):
        left, right, [(load, place)] = read(source[i])
        assert left == 0
        found.add((right, load, place / right))
    assert {(length, load) for length, load, _ in found} == {(i, k) for i in (1, 2, 3) for k in (1, 2, 3)}
    assert len(found) == 9 * 21 and {place for *_, place in found} == {Fraction(i, 20) for i in range(21)}
    whole = Beams(longest=2, heaviest=5)
    told = [read(whole[i]) for i in range(300)]
    assert {right for _, right, _ in told} == {1, 2} and {loads[0][0] for *_, loads in told} == {1, 2, 3, 4, 5}


def test_near_the_model_it_began_with() -> None:
    objective = make_method("S025").objective
    assert (objective.kl_weight, objective.aggregation) == (0.04, "sequence_mean")


def test_wordings_are_kept_apart() -> None:
    first = {str(Beams()[i].prompt).split()[1] for i in range(60)}
    other = {str(Beams(axes=("wording",))[i].prompt).split()[1] for i in range(60)}
    assert len(first) == 3 and len(other) == 2 and first.isdisjoint(other)


def test_the_peak_beside_the_last() -> None:
    curve = Curve({0: 0.2, 10: 0.7, 20: 0.7, 30: 0.4})
    assert (curve.last, curve.peak) == (0.4, (10, 0.7))
    tasks = [Beams(axes=AXES)[i] for i in range(8)]
    solved = [(str(t.solution), "eos") for t in tasks]
    engines = {0: Scripted([("?", "eos")] * 8), 5: Scripted(solved), 9: Scripted([*solved[:4], *[("?", "eos")] * 4])}
    found = curves(engines, tasks, samples=1)
    assert {axis: (c.peak, c.last) for axis, c in found.items()} == dict.fromkeys(AXES, ((5, 1.0), 0.5))
    asked = Scripted([("?", "eos")] * 4)
    curves({0: asked}, tasks[:1])
    assert [(r.n, r.sampling) for r in asked.asked] == [(4, Sampling(1024))]
    for nothing in (({}, tasks), (engines, [])):
        with pytest.raises(UsageError, match="a checkpoint and a task"):
            curves(*nothing)
    # What nobody can judge is not wrong.
    unknown = Task("?", "", "no reference", "reactions", meta={"axis": "trained"})
    half = curves({1: Scripted([("?", "eos"), *solved[:1]])}, [unknown, tasks[0]], samples=1)
    assert half["trained"].last == 1.0


@pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="peft is not installed")
def test_adapters_learn(tmp_path: Path) -> None:
    """The reward for the form differs where an untrained model writes a box or not; here a bias of length does."""
    letters = "".join(map(chr, range(32, 127))) + "\n"
    folder = run(
        tmp_path / "run",
        model={
            "nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512, "alphabet": letters},
            "lora": {"rank": 2},
        },
        tasks={"source": {"name": "beams"}, "eval_size": 2},
        warmup={"steps": 1, "batch": 2},
        method={"name": "S025", "reward": {"name": "function", "function": f"{Path(__file__)}:length"}},
        rollout={"prompts": 2, "group": 3, "max_tokens": 12, "max_rows": 8},
        train={"steps": 1, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = metrics(folder)
    assert [row["stage"] for row in rows] == ["warmup", "rl"] and rows[-1]["grad_norm"] > 0
    assert list(policies(folder))[-1] == 1
    with pytest.raises(UsageError, match="no checkpoints of RL"):
        policies(tmp_path)


def length(task: Task, response: str) -> float:
    return len(response.split()) / 8
