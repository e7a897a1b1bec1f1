"""Absolute Zero: what a proposal is worth, what is kept and solved next, and two roles that learn in one update."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, tables
from scripted import Scripted

from assay import catalogue
from assay.batch import Batch
from assay.credit.grpo import GRPO
from assay.curriculum.absolute_zero import AbsoluteZero
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.data.s076_azr import Composite, learnable
from assay.registry import build
from assay.types import Group, Task, Verdict
from assay.verify.episodes import judge_groups
from assay.verify.programs.language import LANGUAGES, MODES, Mode, Ran, Refused, Triplet, examined, language
from assay.verify.programs.steps import ALPHABET, Steps
from assay.verify.programs.verifier import KIND, ProgramIO, solving_reference

pytestmark = pytest.mark.usefixtures("one_thread")
STEPS = language("steps")
GOOD = "```python\ndef f(x):\n    return x + 1\n```\n```input\n3\n```"


def curriculum(**options: Any) -> AbsoluteZero:
    given = {"language": "steps", "shown": 2, **options}
    made = build("curriculum", {"name": "absolute_zero", **given}, stream=None, prompts=2, group=4)
    assert isinstance(made, AbsoluteZero)
    return made


def played(texts: list[str], learnability: bool = True, **options: Any) -> tuple[list[Group], AbsoluteZero, Scripted]:
    """A step whose responses are ``texts``, in order: proposals, answers that estimate, answers that are learned."""
    return measured(texts, learnability, **options)[:3]


def measured(
    texts: list[str], learnability: bool = True, **options: Any
) -> tuple[list[Group], AbsoluteZero, Scripted, dict[str, float]]:
    """The same, with what the rollout has measured."""
    catalogue.find("S076")
    engine, asked = Scripted((text, "eos") for text in texts), curriculum(**options)
    spec = {"name": "absolute_zero", "learnability": learnability}
    rollout = build("rollout", spec, sampling=Sampling(32), curriculum=asked, judge=partial(judge_groups, ProgramIO()))
    groups = rollout.collect(asked.next(7), engine, np.random.default_rng(0))
    return groups, asked, engine, rollout.metrics()


def test_answers_are_judged_by_running() -> None:
    """f(x) = x + 1: any input that gives 4 will do, and a program is tried on the half that was not shown."""
    triplet = Triplet("def f(x):\n    return x + 1", ("3",), ("4",))
    pairs = Triplet(triplet.program, ("1", "2", "3", "-1"), ("2", "3", "4", "0"))
    said = {
        ("deduction", "```output\n4\n```"): True,
        ("deduction", "```output\n4.0\n```"): True,
        ("deduction", "```output\n5\n```"): False,
        ("deduction", "4"): False,
        ("abduction", "```input\n3.0\n```"): True,
        ("abduction", "```input\n'3'\n```"): False,
        ("induction", "```python\ndef f(y):\n    return 1 + y\n```"): True,
        ("induction", "```python\ndef f(y):\n    return abs(y) + 1\n```"): False,
        ("induction", "```python\ndef f(y):\n    return {1: 2, 2: 3}[y]\n```"): False,
    }
    for (mode, response), right in said.items():
        given = pairs if mode == "induction" else triplet
        task = Task("t", "", solving_reference("python", mode, given, 2), KIND)  # type: ignore[arg-type]
        verdict = ProgramIO()(task, response)
        found = (verdict.passed, verdict.score, verdict.parts["format"])
        assert found == (right, right, float("```" in response)) and bool(verdict.feedback) != right, response


def test_proposals_are_judged_by_whether_they_can_be_asked() -> None:
    """Without ``seen`` a program is tried on every pair: +1 is *2 from 1 on, and not from 0."""
    asked = Task("t", "", {"language": "steps", "mode": "deduction", "propose": 2, "program": ""}, KIND)
    assert ProgramIO()(asked, "+3*2|4") == Verdict(1.0, True, {"format": 1.0})
    none = ProgramIO()(asked, "nonsense")
    assert (none.score, none.passed, none.parts) == (0, False, {"format": 0})
    pairs = solving_reference("steps", "induction", Triplet("+1", ("0", "1"), ("1", "2")), 1)
    assert ProgramIO()(Task("t", "", pairs, KIND), "*2").passed is True
    del pairs["seen"]
    assert ProgramIO()(Task("t", "", pairs, KIND), "*2").passed is False


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (GOOD, ""),
        ("I would write f.", "form"),
        (GOOD.replace("x + 1", "x +"), "exit code 1"),
        (GOOD.replace("x + 1", "x / 0"), "ZeroDivisionError"),
        (GOOD.replace("return x + 1", "x"), "returns nothing"),
        (GOOD.replace("3", "x"), "no list of literals"),
        (GOOD.replace("return", "import random; return"), "uses random"),
        (GOOD.replace("x + 1", "__import__('os').urandom(4).hex()"), "differ"),
        (GOOD.replace("x + 1", "'times'"), ""),
        (GOOD.replace("x + 1", "10 ** 5000"), "more than 20000 characters"),
        (GOOD.replace("x + 1", "'x' * 20000"), "more than 20000 characters"),
        (GOOD.replace("\n3\n", "\n...\n"), "no list of literals"),
        (GOOD.replace("\n3\n", "\n" + "[" * 150 + "]" * 150 + "\n"), "no list of literals"),
        (GOOD.replace("f(x)", "f()").replace("x + 1", "4").replace("\n3\n", "\n"), ""),
    ],
)
def test_what_makes_a_proposal_valid(response: str, reason: str) -> None:
    found = examined(language("python"), "deduction", response, "", 10)
    if not reason:
        assert isinstance(found, Triplet) and found.outputs in (("4",), ("'times'",))
    else:
        assert isinstance(found, Refused) and reason in found.reason and not found.ours


@pytest.mark.parametrize("given", ["0x" + "f" * 9000, "...", "[" * 150 + "]" * 150])
def test_an_input_that_cannot_be_written_is_wrong(given: str) -> None:
    """It is the response's fault: neither an error nor an abstention."""
    triplet = Triplet("def f(x):\n    return x", ("3",), ("3",))
    task = Task("t", "", solving_reference("python", "abduction", triplet, 0), KIND)
    assert ProgramIO()(task, f"```input\n{given}\n```").passed is False


def test_inputs_are_proposed_for_a_given_program() -> None:
    said = "".join(f"```input\n{i}\n```\n" for i in range(5)) + "```message\nadds one\n```"
    found = examined(language("python"), "induction", said, "def f(x):\n    return x + 1", 4)
    assert found == Triplet("def f(x):\n    return x + 1", ("0", "1", "2", "3"), ("1", "2", "3", "4"), "adds one")
    few = examined(STEPS, "induction", "071", "+1", 4)
    assert isinstance(few, Refused) and few.reason == "it has 3 inputs, not 4"
    assert examined(STEPS, "induction", "0719", "+1*2", 4) == Triplet("+1*2", tuple("0719"), tuple("2640"))


def test_the_reward_of_a_proposer() -> None:
    """Shares 0, 1/8, 1/2, 7/8, 1 of right answers."""
    worth = [learnable(a) for a in (0.0, 0.125, 0.5, 0.875, 1.0)]
    assert [v.score for v in worth] == [0.0, 0.875, 0.5, 0.125, 0.0]
    assert [Composite().grade(v) for v in worth] == [-0.5, 0.875, 0.5, 0.125, -0.5]
    assert [Composite(empty=0.0).grade(v) for v in worth] == [0.0, 0.875, 0.5, 0.125, 0.0]


def test_three_grades_of_reward() -> None:
    made = Composite()
    assert made.grade(Verdict(0.0, False, {"format": 0.0})) == -1.0
    # Section 3.1: of proposals only those that are valid count as correctly formatted.
    asked = Task("t", "", {"language": "python", "mode": "deduction", "propose": 2, "program": ""}, KIND)
    proposed = (
        GOOD.replace("x + 1", "x / 0"),
        GOOD.replace("return", "import random; return"),
        "I would write f.",
        GOOD,
    )
    assert [made.grade(ProgramIO()(asked, said)) for said in proposed] == [-1.0, -1.0, -1.0, 1.0]
    assert made.grade(Verdict(0.0, False, {"format": 1.0})) == -0.5
    assert made.grade(Verdict(1.0, True, {"format": 1.0})) == 1.0
    # The expected reward of proposing tasks of given solve rates p, of which 8 answers tell.
    expected = []
    for p in (0.0, 0.02, 0.25, 0.5, 0.75, 1.0):
        chances = [float(np.prod([(8 - j) / (j + 1) for j in range(k)])) * p**k * (1 - p) ** (8 - k) for k in range(9)]
        expected.append(sum(c * made.grade(learnable(k / 8)) for k, c in enumerate(chances)))
    assert expected == pytest.approx([-0.5, -0.2961, 0.5998, 0.4922, 0.1999, -0.5], abs=5e-5)


# Two proposals of deduction, of which the second is none; four answers to the first, two right; two answers that count.
STEP = ["+3*2|4", "nonsense", "4", "7+3=0\n4", "5", "?", "4", "0"]


def test_valid_proposals_are_kept_however_easy() -> None:
    groups, asked, engine = played(STEP, modes=["deduction"])
    assert asked.buffers["deduction"] == [STEPS.identity, Triplet("+3*2", ("4",), ("4",))]
    assert [v.score for g in groups[:2] for v in g.verdicts] == [0.5, 0.0]
    assert groups[0].verdicts[0].parts == {"format": 1.0, "accuracy": 0.5}
    assert groups[1].verdicts[0].parts == {"format": 0.0}
    # One that all solve earns nothing, and is kept.
    groups, asked, _ = played(["+3*2|4", "-1", *"4444", "4", "0"], modes=["deduction"])
    assert groups[0].verdicts[0].score == 0 and len(asked.buffers["deduction"]) == 2
    # Without learnability nothing is sampled to tell how hard it is.
    groups, asked, engine = played(["+3*2|4", "-1", "4", "0"], learnability=False, modes=["deduction"])
    assert groups[0].verdicts[0] == Verdict(1.0, True, {"format": 1.0}) and [r.n for r in engine.asked] == [1] * 4


def test_what_a_step_says_of_its_proposals() -> None:
    """Shares valid, and of those that some solve and some do not; tokens are characters here."""
    found = [
        measured(texts, modes=["deduction"])[3]
        for texts in (
            STEP,
            ["+3*2|4", "+1|1", *"4444", *"2255", "2", "4"],
            ["+3*2|4", "+1|1", *"5555", *"2255", "2", "4"],
            ["no", "no", "0", "0"],
        )
    ]
    assert [m["propose/valid"] for m in found] == [0.5, 1, 1, 0]
    assert [m["propose/learnable"] for m in found] == [1, 0.5, 0.5, 0]
    assert [m["propose/accuracy"] for m in found] == [0.5, 0.75, 0.25, 0]
    assert [m["propose/tokens"] for m in found] == [10, 8, 8, 0]
    assert [(m["derived/asked"], m["derived/left_out"], m["derived/tokens"]) for m in found] == [(2, 0, 2)] * 4


def test_the_newest_are_solved_first() -> None:
    groups, asked, _ = played(STEP, modes=["deduction"])
    assert [g.task.prompt for g in groups[2:]] == ["d+3*2|4=", "d+0|0="]
    assert [g.task.id for g in groups[2:]] == ["solve/deduction/7-0", "solve/deduction/7-1"]
    assert groups[2].task.reference["seen"] == 0, "half of the pairs are shown in induction alone"
    assert [v.passed for g in groups[2:] for v in g.verdicts] == [True, True]
    asked.admit("deduction", [Triplet(f"+{i}", ("0",), (str(i),)) for i in range(3)])
    assert [t.prompt for t in asked.pick("deduction", "1")] == ["d+2|0=", "d+1|0="]
    asked.admit("deduction", [])
    assert len({asked.pick("deduction", "2")[0].prompt for _ in range(20)}) > 2, "nothing is new: any may come"
    full = curriculum(capacity=2, modes=["deduction"])
    full.admit("deduction", [Triplet(f"+{i}", ("0",), (str(i),)) for i in range(3)])
    assert [t.program for t in full.buffers["deduction"]] == ["+1", "+2"]


def test_solves_that_estimate_are_not_learned_from() -> None:
    groups, _, engine = played(STEP, modes=["deduction"])
    assert [r.n for r in engine.asked] == [1, 1, 4, 1, 1]
    assert [(len(g.episodes), g.derived) for g in groups] == [(1, False), (1, False), (1, True), (1, True)]


def test_each_cell_is_normalised_by_itself() -> None:
    proposed, solved = (0.875, 0.5, -0.5, -1.0), (1.0, 1.0, -0.5, 1.0)
    batch = Batch.from_groups(played(STEP, modes=["deduction"])[0], torch.float64)
    assert batch.group.tolist() == [0, 0, 1, 1]
    wide = batch.rows(torch.tensor([0, 0, 0, 0, 2, 2, 2, 2]))
    wide.rewards = torch.tensor([*proposed, *solved], dtype=torch.float64)
    found = GRPO()(wide)[:, 0]
    expected = [1.043733, 0.611843, -0.539862, -1.115714, 0.5, 0.5, -1.5, 0.5]
    assert found.tolist() == pytest.approx(expected, abs=5e-6)
    assert isinstance(make_method("S076").credit, GRPO)
    # Three modes and two roles are six cells.
    texts = ["+1|2", "-1|2", "+1|2", "-1|2", "0123456789", "0000000000", *"0" * 24, *"30", *"0000"]
    groups, _, _ = played(texts)
    assert len({e.advantage_group for g in groups for e in g.episodes}) == 6


def test_what_a_proposer_is_shown() -> None:
    asked = curriculum(inputs=4)
    prompts = [str(a.task.prompt) for a in asked.next(0)]
    assert prompts == ["D+0|0;+0|0="] * 2 + ["A+0|0;+0|0="] * 2 + ["I+0="] * 2
    asked.admit("deduction", [Triplet("-7", ("1",), ("4",))])
    later = [str(a.task.prompt) for i in range(9) for a in asked.next(i)]
    assert any(p == "I-7=" for p in later) and {p for p in later if p[0] == "D"} == {"D+0|0;-7|1=", "D-7|1;+0|0="}
    assert asked.task("induction", Triplet("+1", tuple("0123"), tuple("1234")), "t", "").prompt == "i0>1;1>2="
    again = curriculum(inputs=4)
    again.load_state_dict(asked.state_dict())
    assert again.next(3) == asked.next(3) and again.buffers == asked.buffers


def test_what_cannot_be_judged_is_no_failure() -> None:
    catalogue.find("S076")
    asked = curriculum(modes=["deduction"])
    engine = Scripted([("+1|1", "eos"), ("", "error"), *[("", "error")] * 4, ("2", "eos"), ("0", "eos")])
    asked.buffers["deduction"] = [STEPS.identity]
    rollout = build("rollout", "absolute_zero", sampling=Sampling(8), curriculum=asked, judge=list)
    groups = rollout.collect(asked.next(0), engine, np.random.default_rng(0))
    assert [g.verdicts[0].passed for g in groups] == [None, None, True, True]
    batch = Batch.from_groups(groups)
    reward = Composite()(batch)
    assert reward.valid is not None and reward.valid.tolist() == [False, False, True, True]
    assert reward.values.tolist()[:2] == [0, 0]


class Anything(Steps):
    """Whatever is said is a program, or inputs, or an answer; its length in characters decides what comes out."""

    def proposed(self, mode: Mode, response: str) -> Triplet:
        return Triplet(response, ("0",) * 10, (), "")

    def solve(self, mode: Mode, triplet: Triplet, seen: int) -> str:
        return f"{mode[0]}{len(triplet.program)}="

    def answer(self, mode: Mode, response: str) -> str | None:
        return (str(len(response) % 2) if mode == "deduction" else response) or None

    def run(self, program: str, inputs: Sequence[str]) -> list[Ran]:
        return [Ran(str(len(program + i) % 2)) for i in inputs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    LANGUAGES["anything"] = Anything
    return run(
        tmp_path_factory.mktemp("azr") / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 128, "alphabet": ALPHABET}},
        tasks={"source": {"name": "steps"}, "eval_size": 6},
        warmup={"steps": 0},
        method={"name": "S076", "reward": {"name": "composite"}, "options": {"language": "anything", "shown": 2}},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        rollout={"prompts": 4, "group": 3, "max_tokens": 6, "max_rows": 64},
        evaluate={"every": 0},
        run={"rollouts_every": 1},
    )


def test_it_trains_from_nothing(folder: Path) -> None:
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["derived/asked"] for row in rows] == [12, 12]
    assert all(row["propose/valid"] > 0.5 and 0 < row["propose/accuracy"] < 1 < row["propose/tokens"] for row in rows)
    assert all(row["grad_norm"] > 0 for row in rows)
    first, second = tables(folder, "rollouts").values()
    assert len(first) == len(second) == 24
    roles = [tuple(str(row["task_id"]).split("/")[:2]) for row in first]
    assert [roles.count((role, mode)) for role in ("propose", "solve") for mode in MODES] == [4] * 6
    assert {row["prompt"] for row in first if row["task_id"].startswith("propose/d")} == {"D+0|0;+0|0="}
    # What was proposed in the first step is solved in it, and shown to proposers of the second.
    shown = {row["prompt"] for row in second if row["task_id"].startswith("propose/d")}
    proposed = [row["response"] for row in first if row["task_id"].startswith("propose/d")]
    assert any(said and f"{said}|0" in prompt for said in proposed for prompt in shown)
    assert {row["reward"] for row in first if row["task_id"].startswith("solve")} <= {-1.0, -0.5, 1.0}


@pytest.mark.parametrize(
    "options",
    [
        *({"modes": []}, {"modes": ["reduction"]}, {"inputs": 1}, {"language": "cobol"}),
        *({"shown": 0}, {"capacity": 0}),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any]) -> None:
    least = curriculum(shown=1, inputs=2, capacity=1)
    assert (least.shown, least.inputs, least.capacity) == (1, 2, 1)
    with pytest.raises(UsageError, match=r"absolute_zero|cobol"):
        curriculum(**options)


def test_what_it_has_seen_is_no_option() -> None:
    for name in ("known", "buffers", "_fresh", "_rng"):
        with pytest.raises(UsageError, match="no option"):
            curriculum(**{name: {}})
    assert not any(name in repr(curriculum()) for name in ("buffers", "Generator", "known", "_fresh"))
    spec = {"name": "absolute_zero", "n": 2}
    more: dict[str, Any] = {"sampling": Sampling(8), "judge": list, "curriculum": curriculum()}
    assert "_valid" not in repr(build("rollout", spec, **more)), "two answers are enough to tell"
    with pytest.raises(UsageError, match="no option"):
        build("rollout", {**spec, "_valid": {}}, **more)


def test_the_papers_numbers() -> None:
    """Six shown, ten inputs, -0.5 for what is valid and worth nothing, as the released code has it."""
    method = make_method("S076")
    assert (method.curriculum["shown"], method.curriculum["inputs"], method.curriculum["capacity"]) == (6, 10, 16384)
    assert method.reward == Composite() == Composite(-0.5, -0.5, -1.0) and method.rollout["learnability"] is True
    usual = AbsoluteZero(None, 2, 4, language="steps")  # type: ignore[arg-type]
    assert (usual.shown, usual.inputs, usual.capacity, usual.seed) == (6, 10, 16384, 0)


def test_a_rollout_without_its_curriculum_is_refused() -> None:
    catalogue.find("S076")
    with pytest.raises(UsageError, match="curriculum 'absolute_zero'"):
        build("rollout", "absolute_zero", sampling=Sampling(8), judge=list)
    spec = {"name": "absolute_zero", "n": 1}
    with pytest.raises(UsageError, match="2 or more"):
        build("rollout", spec, sampling=Sampling(8), judge=list, curriculum=curriculum())


@pytest.mark.slow
def test_learnable_proposals_climb_further() -> None:
    found = {arm: learned("S076", arm, steps=20, lr=1.0) for arm in ("learnable", "valid")}
    assert found["learnable"]["learned"] == found["valid"]["learned"] == 20 * 32
    assert found["valid"]["rollouts"] == 640 and found["learnable"]["rollouts"] == 640 + 20 * 16 * 8
    assert found["learnable"]["solved/start"] == pytest.approx(0.2205, abs=1e-4)
    assert found["learnable"]["learnable"] > found["valid"]["learnable"]
