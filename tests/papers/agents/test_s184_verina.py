"""S184: scores of three values, how a test is settled, and that what nobody can tell never pays."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import metrics, run
from scripted import Scripted

from assay import catalogue, cli
from assay.inference.named import make_strategy
from assay.lab.settings.reasoning.contracts import UNTOLD
from assay.papers.agents.s184_verina import cascade
from assay.registry import build
from assay.statistics.pass_at_k import pass_at_k
from assay.tasks.contracts import Contracts, made, problems
from assay.types import Task, Verdict
from assay.verify.formal.backends import BuiltIn
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.spec_tests import WORKERS, Broken
from assay.verify.formal.ternary import Cascade, entails, equivalence, literal, together
from assay.verify.formal.verina import Verina
from assay.verify.isolate.workers import Failure

pytest.importorskip("z3")
NEXT = "exists i :: 0 <= i < |s| - 1 && s[i] + 1 == s[i + 1]"
HEAD = "method consecutive(s: seq<int>) returns (r: bool) "
SOURCE = next(p.source for p in problems() if "consecutive" in p.source)
POSITIVE = [([[1, 2, 3, 5]], [True]), ([[1, 3, 5, 7]], [False]), ([[]], [False])]
NEGATIVE = [(x, [not y]) for x, [y] in POSITIVE]
SMALL: dict[str, Any] = {"effort": 100_000, "instances": 50}


def task(ask: str = "spec", **more: Any) -> Task:
    reference = {"ask": ask, "source": SOURCE, "positive": POSITIVE, "negative": NEGATIVE, **more}
    return Task("t", "?", reference, "verina")


def judged(post: str, **options: Any) -> Verdict:
    return Verina(**{**SMALL, **options})(task(), f"{HEAD} ensures {post}")


def test_scores_add_up() -> None:
    assert together(["pass", "unknown", "fail"]) == "fail"
    assert together(["pass", "unknown", "pass"]) == "unknown"
    assert together(["pass", "pass"]) == "pass" == together([])


@pytest.mark.parametrize(
    ("post", "complete", "sound"),
    [
        (f"r <==> ({NEXT})", 1, 1),
        (f"r ==> ({NEXT})", 1, 0),
        (f"!r && !({NEXT})", 0, 1),
        ("true", 1, 0),
        ("false", 0, 1),
        (UNTOLD, None, None),
    ],
)
def test_specifications_of_consecutive_numbers(post: str, complete: float | None, sound: float | None) -> None:
    verdict = judged(post)
    assert verdict.parts == {
        **{"compiles": 1, "pre sound": 1, "pre complete": 1},
        **{"post complete": complete, "post sound": sound},
    }
    assert verdict.passed is (complete == sound == 1)


def test_one_wrong_output_of_three_is_accepted_by_the_weak_one() -> None:
    weak = parse(f"{HEAD} ensures r ==> ({NEXT})")
    source = f"{HEAD} ensures r ==> ({NEXT})"
    found = Cascade().scores(source, weak, "ensures", [x + y for x, y in NEGATIVE], wanted=False)
    assert found == ["fail", "pass", "pass"]


def test_preconditions_are_tested_in_both_directions() -> None:
    source = next(p.source for p in problems() if "triangular" in p.source)
    tests = {"positive": [([0], [0]), ([3], [6])], "negative": [([3], [5])], "reject": [[-1], [-5]]}
    for pre, sound, complete in (("n >= 0", 1, 1), ("n >= -3", 1, 0), ("n > 0", 0, 1), ("n < 0", 0, 0)):
        text = f"method triangular(n: int) returns (s: int) requires {pre} ensures 2 * s == n * (n + 1)"
        verdict = Verina(**SMALL)(Task("t", "?", {"ask": "spec", "source": source, **tests}, "verina"), text)
        assert (verdict.parts["pre sound"], verdict.parts["pre complete"]) == (sound, complete)
        assert verdict.passed is (sound == complete == 1)


def scores(post: str, case: list[Any], wanted: bool, **options: Any) -> str:
    text = f"method m(x: int) returns (r: int) ensures {post}"
    options = {"prover": BuiltIn(effort=100_000), **options}
    [found] = Cascade(**options).scores(text, parse(text), "ensures", [case], wanted)
    return found


def test_the_cascade_settles_by_the_cheapest() -> None:
    assert scores("r == x + 1", [1, 2], True) == "pass" and scores("r == x + 1", [1, 2], False) == "fail"
    assert scores("r == x + 1", [1, 3], True) == "fail" and scores("r == x + 1", [1, 3], False) == "pass"
    # No bounds: an instance is found.
    assert scores("forall k :: k < 20 || r == 2", [0, 1], True, proofs=0) == "fail"
    assert scores("forall k :: k < 20 || r == 2", [0, 1], False, proofs=0) == "pass"
    assert scores("exists k :: k > 20 && r == 1", [0, 1], True, proofs=0) == "pass"
    assert scores("exists k :: k > 20 && r == 1", [0, 1], False, proofs=0) == "fail"
    # None is found, and the prover is asked for the statement and for its negation.
    for post, truth in (("forall k :: k < 2000 || k > r", True), ("forall k :: k < 2000 || k > 3000", False)):
        assert scores(post, [0, 1], True, proofs=0) == "unknown"
        assert scores(post, [0, 1], True) == ("pass" if truth else "fail")
        assert scores(post, [0, 1], False) == ("fail" if truth else "pass")
    assert scores(UNTOLD, [0, 1], True, instances=50) == "unknown" == scores(UNTOLD, [0, 1], False, instances=50)


def test_the_prover_is_asked_about_few_cases() -> None:
    text = "method m(x: int) returns (r: int) ensures forall k :: k < 2000 || k > r"
    found = Cascade(proofs=2).scores(text, parse(text), "ensures", [[0, i] for i in range(4)], True)
    assert found == ["pass", "pass", "unknown", "unknown"]
    # What a search has settled does not count among them.
    text = "method m(x: int) returns (r: int) ensures forall k :: k < 20 || r == 2"
    assert Cascade(proofs=1).scores(text, parse(text), "ensures", [[0, 1], [0, 2]], True) == ["fail", "pass"]


def test_a_search_that_spends_too_much_has_found_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    call = WORKERS.call
    failed = [Failure("took 60 s", "time")]
    monkeypatch.setattr(WORKERS, "call", lambda name, *a, **k: failed[0] if name == "searched" else call(name, *a, **k))
    assert scores("forall k :: k < 20 || r == 2", [0, 1], True, proofs=0) == "unknown"
    failed[0] = Failure("gone", "killed")
    with pytest.raises(Broken, match="gone"):
        scores("forall k :: k < 20 || r == 2", [0, 1], True)


def test_values_of_every_type_are_written_into_proofs() -> None:
    assert [literal(x).op for x in (True, -3, [1, 2])] == ["bool", "int", "seq"]
    text = "method m(s: seq<int>, b: bool) returns (r: int) ensures forall k :: k > 2000 ==> (k in s <==> b) || r < 0"
    ask = [[[1, 2], False, 1], [[1, 3000], False, 1], [[], True, -1]]
    assert Cascade(prover=BuiltIn()).scores(text, parse(text), "ensures", ask, True) == ["pass", "fail", "pass"]
    pre = "method m(s: seq<int>) returns (r: int) requires forall k :: k > 2000 ==> !(k in s)"
    assert Cascade().scores(pre, parse(pre), "requires", [[[1]], [[5000]]], True) == ["pass", "fail"]


def test_to_find_nothing_passes_only_if_that_is_allowed() -> None:
    for post, wanted in (("forall k :: k < 2000 || k > r", True), ("exists k :: k > 2000 && r == 5", False)):
        assert scores(post, [0, 1], wanted, proofs=0) == "unknown"
        assert scores(post, [0, 1], wanted, proofs=0, plausible_pass=True) == "pass"
        assert scores(post, [0, 1], not wanted, proofs=0, plausible_pass=True) == "unknown", "nobody searched for that"
    assert scores("forall k :: k < 20 || r == 2", [0, 1], True, plausible_pass=True) == "fail"
    assert cascade(True, 0) == Cascade(plausible_pass=True, proofs=0)


def test_the_formal_route() -> None:
    truth = parse(f"{HEAD} ensures r <==> ({NEXT})")

    def of(text: str) -> dict[str, str]:
        return equivalence(parse(HEAD + text), truth)

    same = dict.fromkeys(("pre sound", "pre complete", "post complete", "post sound"), "pass")
    assert of(f"ensures r <==> !(forall i :: 0 <= i && i + 1 < |s| ==> s[i + 1] != s[i] + 1)") == same  # noqa: F541
    assert of(f"ensures r ==> ({NEXT})") == {**same, "post sound": "fail"}
    assert of(f"ensures !r && !({NEXT})") == {**same, "post complete": "fail"}
    assert of(f"requires |s| > 0 ensures r <==> ({NEXT})") == {**same, "pre sound": "fail"}
    stricter = parse(f"{HEAD} requires |s| > 1 ensures r <==> ({NEXT})")
    assert equivalence(truth, stricter) == {**same, "pre complete": "fail"}
    one, two = (parse(f"function f(x: int): int {{ x + {n} }} {HEAD} ensures r ==> |s| > f(1)") for n in (1, 2))
    assert equivalence(one, two) == dict.fromkeys(same, "unknown") and equivalence(one, one) == same
    assert judged(f"r ==> ({NEXT})", formal=True).parts["post sound"] == 0
    # Tests settle what proofs leave open, and proofs see what too few tests do not.
    few = task(negative=[NEGATIVE[0]])
    text = f"{HEAD} ensures ({NEXT}) ==> r"
    assert Verina()(few, text).passed and not Verina(formal=True)(few, text).passed
    assert Verina(formal=True, **SMALL)(task(), f"{HEAD} ensures {UNTOLD}").parts["post complete"] is None
    assert entails(truth, (("x", "int"),), [], []) == "pass"


@pytest.mark.slow
def test_unknown_never_pays() -> None:
    untold = judged(UNTOLD)
    assert untold.passed is False and untold.score == 0 and untold.feedback == "post complete: unknown"
    assert judged(UNTOLD, unknown="abstain").passed is None and judged(UNTOLD, unknown="abstain").score == 0
    assert judged(UNTOLD, unknown="right").score == 1, "what the paper warns of"
    assert judged(f"r && {UNTOLD}".replace("&& forall", "&& (forall") + ")", unknown="right").passed is False
    assert judged("true", unknown="right").passed is False, "what fails is wrong"


def test_code_and_proofs() -> None:
    verina = Verina(**SMALL)
    assert verina(task("code"), SOURCE).parts == {"compiles": 1, "code": 1}
    assert verina(task("code"), f"{HEAD} {{ r := true; }}").parts == {"compiles": 1, "code": 0}
    assert verina(task("code"), f"{HEAD} {{ r := }}").parts == {"compiles": 0}
    assert verina(task("code"), HEAD).passed is False is verina(task("code"), "?").passed
    assert (
        verina(task("code"), f"{HEAD}").parts == {"compiles": 0} == verina(task(), "method x() returns (r: bool)").parts
    )
    whole = verina(task("all"), SOURCE)
    assert whole.passed and whole.parts["proof"] == 1 and whole.parts["code"] == 1
    assert verina(task("proof"), SOURCE).parts == {"compiles": 1, "proof": 1}
    assert verina(task("proof"), SOURCE.replace("r := false;", "r := false; assume false;")).parts["proof"] == 0
    weaker = SOURCE.replace("ensures r <==>", "ensures |s| > 2 ==> r <==>")
    assert verina(task("proof"), weaker).parts["proof"] == 0, "another contract"
    nothing = re.sub("ensures.*", "ensures true", SOURCE)
    assert BuiltIn().check(nothing).proved and verina(task("proof"), nothing).parts["proof"] == 0
    weak = verina(task("all"), f"{HEAD} ensures true {{ r := true; }}")
    assert weak.parts["proof"] == 1 and weak.parts["code"] == 0 == weak.parts["post sound"] and not weak.passed


def test_a_machine_that_fails_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.verify.formal.backends.WORKERS.call", lambda *a, **k: Failure("gone", "killed"))
    for ask in ("code", "spec", "proof", "all"):
        verdict = Verina()(task(ask), SOURCE)
        assert verdict.passed is None and verdict.fault == "infrastructure"
    with pytest.raises(Broken):
        entails(parse(SOURCE), (), [], [])
    assert Verina()(Task("t", "?", {"ask": "?"}, "verina"), SOURCE).fault == "tests"


def test_refinement_shows_the_provers_message() -> None:
    wrong, right = f"{HEAD} ensures true", f"{HEAD} ensures r <==> ({NEXT})"
    engine = Scripted([(wrong, "eos"), (right, "eos"), (wrong, "eos")])
    strategy = make_strategy({"name": "refine", "scorer": Verina(**SMALL)})
    [answer] = strategy([task()], engine, 64, np.random.default_rng(0))  # type: ignore[arg-type]
    assert answer.text == right and len(engine.asked) == 2, "it stops where it is right"
    assert "post sound: fail" in str(engine.asked[1].prompt) and wrong in str(engine.asked[1].prompt)


def test_pass_at_k_by_hand() -> None:
    assert [round(float(pass_at_k(5, 1, k)), 4) for k in (1, 3)] == [0.2, 0.6]


def test_assay_eval_measures_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = made(problems()[0], "spec", 6, kind="verina")
    head = "method absolute(x: int) returns (r: int) ensures "
    said = [one.solution, head + "r >= 0", head + "exists k :: k > 2000 && r == k", head + "true", "?"]
    rows = [{"task": one.id, "prompt": "?", "reference": one.reference, "response": text} for text in said]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit) as end:
        cli.main(["eval", str(tmp_path / "samples.jsonl"), "--verifier", "verina", "--workers", "0", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert not end.value.code and found["samples"] == 5 and found["abstained"] == 0
    assert found["metrics"]["pass@1"]["value"] == pytest.approx(0.2)


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "contracts", "positive": 4, "ask": ["spec"], "kind": "verina"}, "eval_size": 2},
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        train={"steps": 1},
        warmup={"steps": 0},
        rollout={"max_tokens": 8},
        method={"reward": None},
        evaluate={"every": 0},
    )
    [row] = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert row["abstained"] == 0 and row["pass_rate"] == 0
    assert Contracts(kind="verina", positive=4)[0].kind == "verina"


def test_defaults_are_those_of_the_paper_where_it_has_them() -> None:
    assert Verina() == Verina("wrong", False, False, 8, 1000, 30.0, 3_000_000) == catalogue.make("S184")
    assert Cascade() == Cascade(False, 8, 1000, 100, 20, 42, BuiltIn(3_000_000, 30.0)) == cascade()
    assert Verina(**SMALL)(task(), "?").score == 0 == Verina(**SMALL)(task(), HEAD.replace("bool", "int")).score
    long = Verina(**SMALL)(task(), f"{HEAD} ensures {'!' * 20}{'r == ' * 3}" + "1 == " * 100 + "r").feedback
    assert len(long) <= 300


def test_the_row_makes_the_verifier() -> None:
    assert catalogue.make("S184", formal=True) == Verina(formal=True)
    assert build("verify", "verina") == Verina()
