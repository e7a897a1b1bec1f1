"""S188: self-consistency, rates by either convention, ensembles in numbers, and the search of prompts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay import catalogue
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.inference.scoring.scorers import as_scorer
from assay.lab.settings.judges.proof_judges import Chance, Setting
from assay.papers.judges.s188_proof_verify_small import GENERAL, PROMPTS, proof_rates, proof_verify_small
from assay.registry import build
from assay.statistics.judging import self_consistency
from assay.types import Episode, Task, Verdict
from assay.verify.compose import Ensemble, Need, tally

YES, NO = r"It holds. \boxed{True}", r"It does not. \boxed{False}"


def votes(text: str) -> list[bool | None]:
    return [{"1": True, "0": False, "?": None}[c] for c in text]


def test_consistency_by_hand() -> None:
    found = self_consistency([votes(row) for row in ("1111", "1010", "0001")])
    assert found.pairwise == pytest.approx((1 + 1 / 3 + 1 / 2) / 3) == pytest.approx(0.611111, abs=1e-6)
    assert found.majority == pytest.approx(0.75)
    # Of three, all agree or one pair in three does.
    three = {self_consistency([list(row)]).pairwise for row in itertools.product((True, False), repeat=3)}
    assert sorted(three) == pytest.approx([1 / 3, 1.0])
    # One judgment says nothing, nor does what cannot be read; a judge that does not vary agrees with itself.
    assert math.isnan(self_consistency([[True], [False, None]]).pairwise) and math.isnan(self_consistency([]).majority)
    assert self_consistency([votes("1?11"), votes("0")]) == self_consistency([votes("00")])


def test_consistency_is_the_chance_that_two_judgments_agree() -> None:
    """Over every pair of different judgments."""
    rows = np.random.default_rng(0).random((5, 7)) < 0.6
    pairs = [[a == b for a, b in itertools.combinations(row, 2)] for row in rows.tolist()]
    assert self_consistency(rows.tolist()).pairwise == pytest.approx(np.mean([np.mean(p) for p in pairs]))


@pytest.mark.parametrize(
    ("opinions", "need", "said"),
    [
        ("111", "all", "1"),
        ("110", "all", "0"),
        ("11?", "all", "?"),
        ("0??", "all", "0"),
        ("11?", "majority", "1"),
        ("1?0", "majority", "?"),
        ("00?", "majority", "0"),
        ("10", "majority", "0"),
        ("1???", 1, "1"),
        ("000?", 1, "?"),
        ("1100", 2, "1"),
        ("1000", 2, "0"),
        ("10?0", 2, "?"),
    ],
)
def test_what_opinions_come_to(opinions: str, need: Need, said: str) -> None:
    assert tally(votes(opinions), need) is votes(said)[0]
    # It stands whatever those that abstain would have said, and abstains where that decides.
    spots = [i for i, c in enumerate(opinions) if c == "?"]
    ways = set()
    for way in itertools.product((True, False), repeat=len(spots)):
        full = votes(opinions)
        for i, v in zip(spots, way, strict=True):
            full[i] = v
        ways.add(tally(full, need))
    assert (ways == {votes(said)[0]}) != (said == "?")

    def check(k: int) -> Any:
        return lambda task, response: Verdict(float(bool(votes(opinions)[k])), votes(opinions)[k])

    made = build("verify", {"name": "ensemble", "checks": [check(k) for k in range(len(opinions))], "need": need})
    verdict = made(Task("t", "?"), "x")
    assert isinstance(made, Ensemble) and verdict.passed is votes(said)[0] and len(verdict.parts) == len(opinions)
    known = [v for v in votes(opinions) if v is not None]
    assert verdict.score == (0.0 if verdict.passed is None else pytest.approx(sum(known) / len(known)))


@pytest.mark.parametrize("need", [0, 3, True, -1])
def test_needs_that_there_cannot_be(need: Any) -> None:
    with pytest.raises(UsageError, match="1 to 2 may be needed"):
        Ensemble(["exact", "number"], need)
    with pytest.raises(UsageError):
        proof_verify_small(Keywords((), YES), PROMPTS[:2], need)


def test_three_prompts_in_numbers() -> None:
    """Each objects to a flaw with chance .5, and to a sound proof with .03, over all eight outcomes."""

    def accepted(object_: float, n: int, need: Need) -> float:
        chance = {True: object_, False: 1 - object_}
        ways = itertools.product((True, False), repeat=n)
        return sum(math.prod(chance[o] for o in way) for way in ways if tally([not o for o in way], need))

    found = {}
    for name, n, need in (("veto", 3, "all"), ("majority", 3, "majority"), ("single", 1, "all")):
        flawed, sound = accepted(0.5, n, need), accepted(0.03, n, need)  # type: ignore[arg-type]
        found[name] = (1 - flawed, sound, (1 - flawed + sound) / 2)
    assert found["veto"] == pytest.approx((0.875, 0.912673, 0.893837), abs=1e-6)
    assert found["majority"] == pytest.approx((0.5, 0.997354, 0.748677), abs=1e-6)
    assert found["single"] == pytest.approx((0.5, 0.97, 0.735), abs=1e-6)


def test_the_convention_is_named() -> None:
    """Three flawed proofs, one accepted; four correct ones, one rejected and one without a verdict."""
    passed = votes("100" + "110?")
    items = [("s", "p", k >= 3) for k in range(7)]
    found = proof_rates(passed, items)
    assert found["false_accepts"] == pytest.approx(1 / 3) and found["false_rejects"] == pytest.approx(1 / 3)
    assert found["balanced"] == pytest.approx((2 / 3 + 2 / 3) / 2) and found["accuracy"] == pytest.approx(4 / 6)
    assert found["undecided"] == pytest.approx(1 / 7)
    lenient = proof_rates(votes("1110111"), items)
    # All flaws are missed: the paper's false-negative rate is 1; a quarter of the correct ones is rejected.
    assert (lenient["false_accepts"], lenient["false_rejects"]) == (1.0, 0.25)
    assert proof_rates([], [])["undecided"] == 0


class Careful(Keywords):
    """A judge that sees a flaw only if its prompt speaks of it, and can say nothing of what is blank."""

    def __init__(self) -> None:
        super().__init__(())
        self.asked = 0

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += sum(r.n for r in requests)
        out = []
        for r in requests:
            prompt = str(r.prompt)
            flaws = re.findall(r"flaw:(\w+)", prompt.partition("Proposed proof:")[2])
            seen = [f for f in flaws if f in prompt.partition("Statement:")[0]]
            text = "I cannot say." if "blank" in prompt else NO if seen else YES
            tokens = self.encode(text)
            out.append([Episode(tokens[:0], tokens, tokens > 0, None, text, "eos")] * r.n)
        return out


DEV = [
    ("A", "flaw:steps", False),
    ("B", "flaw:cases", False),
    ("C", "flaw:cases flaw:sums", False),
    ("D", "sound", True),
    ("E", "sound", True),
]


def test_the_ensemble_is_a_verifier() -> None:
    judge = Careful()
    v = proof_verify_small(judge, sampling=Sampling(16))
    assert proof_verify_small(judge).sampling.max_tokens == 8192
    assert v.prompts == (GENERAL, *PROMPTS) and (v.need, v.n) == ("all", 1)
    task = Task("t", "A")
    said = v.map([(task, "flaw:steps"), (task, "sound"), (task, "blank")])
    assert [s.passed for s in said] == [False, True, None] and judge.asked == 15
    assert said[0].score == pytest.approx(4 / 5) and said[0].feedback == "1 of 5 opinions object"
    assert v(task, "flaw:steps") == said[0] and said[2].feedback == "too few can be read" and said[2].score == 0
    assert said[0].parts == {"opinion 1": 1, "opinion 2": 0, "opinion 3": 1, "opinion 4": 1, "opinion 5": 1}
    most = proof_verify_small(judge, need="majority", n=2)
    assert most(task, "flaw:steps").passed is True and len(most(task, "flaw:steps").parts) == 10
    # As a scorer at test time it is asked like any verifier.
    none = np.zeros(0, dtype=np.int64)
    pairs = [(task, Episode(none, none, none > 0, None, text, "eos")) for text in ("sound", "flaw:steps")]
    scores = [s.value for s in as_scorer(v).score(pairs, judge, np.random.default_rng(0))]
    assert scores[0] is not None and scores[1] is not None and scores[0] > scores[1]
    assert type(catalogue.make("S188", judge=judge)) is type(v)
    for bad in (("no place",), (), (*PROMPTS, "{question}"), ("{response}", *PROMPTS)):
        with pytest.raises(UsageError, match="each with"):
            proof_verify_small(judge, bad)
    with pytest.raises(UsageError, match="an engine"):
        proof_verify_small(None)
    assert proof_verify_small(judge, PROMPTS[:2], need=4, n=2).need == 4, "of two opinions by each"
    with pytest.raises(UsageError, match="n 0 must be 1 or more"):
        proof_verify_small(judge, n=0)


def test_repeated_verdicts_are_of_other_opinions() -> None:
    """A chance judge: with one prompt two verdicts on a flaw agree half of the time, on a sound proof nearly always."""
    v = proof_verify_small(Chance(0.5, 0.0), PROMPTS[:1])
    flawed = v.consistency([(f"{i}", "Here is a gap.") for i in range(300)], repeats=3)
    assert flawed.pairwise == pytest.approx(0.5, abs=0.05)
    assert v.consistency([("x", "sound")], repeats=4).pairwise == 1.0
    assert math.isnan(v.consistency([("x", "sound")], repeats=1).pairwise)


def proposer(*texts: str) -> Any:
    class Next(Keywords):
        def __init__(self) -> None:
            super().__init__(())
            self.prompts: list[str] = []
            self.tokens: list[int] = []

        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            self.tokens += [r.sampling.max_tokens for r in requests]
            self.prompts += [str(r.prompt) for r in requests]
            tokens = self.encode(text := texts[len(self.prompts) - 1])
            return [[Episode(tokens[:0], tokens, tokens > 0, None, text, "eos")]]

    return Next()


ASKS = "Statement: {question} Proposed proof: {response}"


def test_the_search_keeps_what_helps() -> None:
    first = proof_verify_small(Careful(), [f"Look at steps. {ASKS}"])
    asks = [f"<prompt>{words}. {ASKS}</prompt>" for words in ("Look at sums", "Again steps", "Look at cases")]
    writer = proposer("no prompt", asks[0], "<prompt>{response}</prompt>", *asks[1:], "unasked")
    found = first.search(DEV, writer, rounds=6)
    assert [p.split(".")[0] for p in found.verifier.prompts] == ["Look at steps", "Look at sums", "Look at cases"]
    # One of three flaws is seen, then two, then all, and no sound proof is rejected.
    assert [h["balanced"] for h in found.history] == pytest.approx([2 / 3, 5 / 6, 1.0])
    assert len(writer.prompts) == 5
    asked = writer.prompts[0]
    assert "flaws that were missed" in asked and "Look at steps. Statement: {question}" in asked
    assert "Accepted, and flawed:\nStatement: B\nProof: flaw:cases" in asked and "Statement: A\n" not in asked
    # Failures come first in turn: of B and C the second, and then of B alone.
    assert "Statement: C" in asked and "Statement: B" not in writer.prompts[1] and "Statement: C" in writer.prompts[1]
    assert all("Statement: B" in p and "Statement: C" not in p for p in writer.prompts[2:])
    assert set(writer.tokens) == {2048}
    with pytest.raises(UsageError, match="correct and flawed"):
        first.search(DEV[:3], writer)


def test_the_search_is_told_of_the_commoner_failure() -> None:
    """Sound proofs are rejected for what their words look like; of as many failures of each kind, flaws come first."""
    first = proof_verify_small(Careful(), [f"Look at steps. {ASKS}"])
    rejected = [(f"R{k}", "flaw:steps", True) for k in range(4)]
    for n, aim in ((4, "sound proofs that were rejected"), (1, "flaws that were missed")):
        writer = proposer("no prompt")
        found = first.search([("B", "flaw:cases", False), *rejected[:n]], writer, rounds=1)
        [asked] = writer.prompts
        assert f"aimed at {aim}" in asked and found.verifier == first
        assert "Accepted, and flawed:\nStatement: B\n" in asked and "Rejected, and correct:\nStatement: R0\n" in asked
        assert [f"Statement: R{k}" in asked for k in range(4)] == [True, n > 1, n > 1, False], "three of a kind"


def test_what_was_searched_on_is_no_test() -> None:
    found = proof_verify_small(Careful(), [f"Look at steps. {ASKS}"]).search(DEV, proposer("-"), rounds=1)
    assert found.measure([("F", "flaw:steps", False), ("G", "sound", True)])["balanced"] == 1.0
    with pytest.raises(UsageError, match="1 statements of the test set are in the development set, as 'D'"):
        found.measure([("D", "another proof", True), ("F", "flaw:steps", False)])


def test_the_lab_draws_what_the_numbers_say() -> None:
    setting = Setting(proofs=600)
    arms: list[dict[str, Any]] = [{"count": 3, "need": "all"}, {"count": 3, "need": "majority"}, {"count": 1}]
    veto, most, one = (setting.run({"name": "S188", **arm}, 0, Path()) for arm in arms)
    for run, expected in ((veto, 0.8938), (most, 0.7487), (one, 0.735)):
        assert run["balanced"] == pytest.approx(expected, abs=0.05)
    assert veto["rollouts"] == 3 * one["rollouts"] and 0 < veto["consistent"] <= 1
