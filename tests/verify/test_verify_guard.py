"""One rule for every verifier: a verdict, a truth value or a score in [0, 1]; anything else abstains, and says why."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import recipe

from assay.api import train
from assay.audit.outcome import outcome
from assay.audit.worker import judged
from assay.batch import Batch
from assay.cli import main
from assay.cli.train import _outcome
from assay.errors import RunError, UsageError
from assay.rewards.function import FunctionReward
from assay.scale.divided import DividedVerifier
from assay.scale.ranks import Ranks
from assay.types import Episode, Task, Verdict
from assay.verify.episodes import judge_episodes
from assay.verify.guard import judge
from assay.verify.isolate.pool_worker import _VERIFIER, check
from assay.verify.kind import KindVerifier

NAN = math.nan
TASK = Task("t", "1+1=", "2", kind="own")

SOUND: list[tuple[Any, float, bool | None]] = [
    (True, 1.0, True),
    (False, 0.0, False),
    (0.75, 0.75, True),
    (0.25, 0.25, False),
    (1, 1.0, True),
    (Fraction(1, 4), 0.25, False),
    (np.bool_(True), 1.0, True),
    (np.float32(0.5), 0.5, True),
    (torch.tensor(0.25), 0.25, False),
    (Verdict(0.5, False, {"a": 0.5}), 0.5, False),
    (Verdict(1, np.bool_(True)), 1.0, True),  # type: ignore[arg-type]
    (Verdict.abstain("cannot tell"), 0.0, None),
]

UNSOUND: list[tuple[Any, str]] = [
    (None, "returned a NoneType"),
    ("right", "returned a str"),
    ({"score": 1.0}, "returned a dict"),
    (10**400, "the score 1000"),
    (2, "the score 2, which is not in"),
    (-0.1, "the score -0.1"),
    (NAN, "the score nan"),
    (Verdict(NAN, True), "the score nan"),
    (Verdict(math.inf, True), "the score inf"),
    (Verdict("1", True), "the score '1'"),  # type: ignore[arg-type]
    (Verdict(1.0, "yes"), "passed='yes'"),  # type: ignore[arg-type]
    (Verdict(1.0, True, {"a": NAN}), "its part 'a' the value nan"),
    (Verdict(1.0, True, [1]), "its part '' the value"),  # type: ignore[arg-type]
]


def says(value: Any) -> Callable[[Task, str], Any]:
    return lambda task, response: value


def leaves(task: Task, response: str) -> Verdict:
    raise SystemExit(0)


def raises(task: Task, response: str) -> Verdict:
    raise ValueError("no such\n luck")


def episode(text: str = "2") -> Episode:
    none = np.zeros(0, dtype=np.int64)
    return Episode(none, none, none.astype(bool), None, text, "eos")


def alone() -> Ranks:
    return Ranks()


WAYS: dict[str, Callable[[Any], Verdict]] = {
    "one": lambda verifier: judge(verifier, TASK, "2"),
    "episodes": lambda verifier: judge_episodes(verifier, [(TASK, episode())])[0],
    "by kind": lambda verifier: KindVerifier({"own": verifier})(TASK, "2"),
    "ranks": lambda verifier: DividedVerifier(verifier, alone())(TASK, "2"),
    "ranks together": lambda verifier: next(DividedVerifier(verifier, alone()).map([(TASK, "2")])),
}
"""Where verifiers are asked in this process."""


@pytest.mark.parametrize("way", WAYS)
class TestEveryWay:
    @pytest.mark.parametrize(("said", "score", "passed"), SOUND, ids=lambda v: repr(v)[:30])
    def test_a_sound_answer_is_a_verdict(self, way: str, said: Any, score: float, passed: bool | None) -> None:
        found = WAYS[way](says(said))
        assert (found.score, found.passed) == (score, passed)
        assert type(found.score) is float and (passed is None or type(found.passed) is bool)

    @pytest.mark.parametrize(("said", "reason"), UNSOUND, ids=lambda v: repr(v)[:30])
    def test_anything_else_abstains_with_the_reason(self, way: str, said: Any, reason: str) -> None:
        found = WAYS[way](says(said))
        assert found.passed is None and found.score == 0.0 and reason in found.feedback

    def test_one_that_raises_or_leaves_abstains(self, way: str) -> None:
        assert WAYS[way](raises).feedback.endswith("raised ValueError: no such luck")
        found = WAYS[way](leaves)
        assert found.passed is None and found.feedback.endswith("raised SystemExit: 0")

    def test_an_interrupt_still_stops(self, way: str) -> None:
        def interrupted(task: Task, response: str) -> Verdict:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            WAYS[way](interrupted)


@pytest.mark.parametrize(("said", "score", "passed"), SOUND, ids=lambda v: repr(v)[:30])
def test_a_worker_and_an_audit_take_the_same(said: Any, score: float, passed: bool | None) -> None:
    _VERIFIER[:] = [says(said)]
    assert check((TASK.id, TASK.prompt), "2")[:2] == [score, passed]
    status = {True: "accepted", False: "rejected", None: "abstained"}[passed]
    assert (outcome(said, 0.0).status, outcome(said, 0.0).score) == (status, score)


@pytest.mark.parametrize(("said", "reason"), UNSOUND, ids=lambda v: repr(v)[:30])
def test_a_worker_and_an_audit_refuse_the_same(said: Any, reason: str) -> None:
    _VERIFIER[:] = [says(said)]
    assert check((TASK.id, TASK.prompt), "2")[1] is None
    if said is not None and not isinstance(said, dict):  # which an audit reads as programs answer
        assert outcome(said, 0.0).status == "crashed" and reason in outcome(said, 0.0).feedback


def test_an_audited_verifier_that_leaves_crashes_on_that_row() -> None:
    found = judged(leaves, TASK, "2", 0.5)
    assert found.status == "crashed" and "SystemExit: 0" in found.feedback


def test_a_kind_that_no_verifier_judges_is_still_refused() -> None:
    with pytest.raises(UsageError, match="kind 'own', which no verifier judges"):
        judge(KindVerifier(), TASK, "2")


class TestRewardsThatLeave:
    def test_a_function_of_one_response_is_named_with_row_and_value(self, make_batch: Callable[..., Batch]) -> None:
        def own(task: Task, response: str) -> float:
            if response == "b":
                raise SystemExit(0)
            return 1.0

        with pytest.raises(RunError, match=r"own raised SystemExit: 0 .*for row 1 \(task .*, response 'b'\)"):
            FunctionReward(own)(make_batch([1, 1], texts=["a", "b"]))

    def test_a_function_of_a_batch_is_named_with_row_and_value(self, make_batch: Callable[..., Batch]) -> None:
        def own(completions: list[str]) -> list[float]:
            if "b" in completions:
                raise SystemExit(0)
            return [1.0] * len(completions)

        with pytest.raises(RunError, match=r"own raised SystemExit: 0 .*for row 1 \(task .*, response 'b'\)"):
            FunctionReward(own)(make_batch([1, 1], texts=["a", "b"]))

    def test_a_file_that_leaves_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "own.py").write_text("import sys\nsys.exit(0)\n")
        with pytest.raises(UsageError, match="raised SystemExit: 0"):
            FunctionReward(f"{tmp_path}/own.py:reward")


OWN = """
import math, sys
from assay.types import Verdict

def nan(task, response): return Verdict(math.nan, True)
def leave(task, response): sys.exit(0)
def score(task, response): return 0.25
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("own") / "own.py"
    file.write_text(OWN)
    return file


def exits(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


class TestACommandWhoseEveryVerdictAbstains:
    @pytest.fixture
    def rows(self, tmp_path: Path) -> Path:
        file = tmp_path / "rows.jsonl"
        file.write_text(
            '{"id": "a", "reference": "1", "response": "1"}\n{"id": "b", "reference": "2", "response": "3"}\n'
        )
        return file

    @pytest.mark.parametrize(("name", "reason"), [("nan", "the score nan"), ("leave", "raised SystemExit: 0")])
    @pytest.mark.parametrize("workers", ["0", "1"])
    def test_eval(self, own: Path, rows: Path, name: str, reason: str, workers: str, capfd: Any) -> None:
        judges = [
            "--verifier",
            f"{own}:{name}",
            "--reference",
            "reference",
            "--fields",
            "task=id",
            "--workers",
            workers,
        ]
        assert exits("eval", str(rows), *judges) == 1
        line = capfd.readouterr().err.splitlines()[-1]
        assert line.startswith("assay: nothing was judged: all 2 verdicts abstained; the first:") and reason in line

    def test_verify_of_a_file(self, own: Path, rows: Path, capfd: Any) -> None:
        assert exits("verify", f"{own}:leave", str(rows), "--out", f"{rows}.out", "--workers", "1") == 3
        assert "nothing was judged: every verdict abstained; the first, line 1: " in capfd.readouterr().err

    @pytest.mark.parametrize(("name", "reason"), [("nan", "the score nan"), ("leave", "raised SystemExit: 0")])
    def test_train(self, own: Path, tmp_path: Path, name: str, reason: str) -> None:
        short = {"train": {"steps": 1}, "warmup": {"steps": 0}, "evaluate": {"every": 0, "samples": 1}}
        plain = recipe(tmp_path / "run", tasks={"verify": f"{own}:{name}"}, method={"reward": "verdict"}, **short)
        found = train(plain, quiet=True)
        with pytest.raises(RunError, match=f"nothing could be learned: every verdict abstained.*{reason}"):
            _outcome(found)

    def test_train_goes_on_with_scores(self, own: Path, tmp_path: Path) -> None:
        short = {"train": {"steps": 1}, "warmup": {"steps": 0}, "evaluate": {"every": 0, "samples": 1}}
        plain = recipe(tmp_path / "run", tasks={"verify": f"{own}:score"}, method={"reward": "verdict"}, **short)
        result = train(plain, quiet=True)
        found = result.after
        assert (
            _outcome(result) == 0
            and found is not None
            and {(s.score, s.passed) for s in found.samples} == {(0.25, False)}
        )
