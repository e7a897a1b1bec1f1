"""S149: statuses, consensus, correction sets and scores by hand; refinement that ends; a context that contradicts
itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import metrics, run
from scripted import Scripted

from assay import catalogue
from assay.engines.base import Request, Sampling
from assay.errors import UsageError
from assay.inference.base import Budget
from assay.inference.sampling.refine_smt import RefineSmt
from assay.inference.scoring.formalised import Formaliser, Opinions, opinion
from assay.papers.agents.s149_verge import PARTS
from assay.registry import build
from assay.types import Episode, Task, Verdict
from assay.verify.isolate.workers import Failure
from assay.verify.logic.claims import (
    Claims,
    Theory,
    Translated,
    Unreadable,
    answer_score,
    assess,
    claim_score,
    claims_of,
    consensus,
    entailed_by,
    equivalent,
    theory_of,
    vote,
)
from assay.verify.logic.sentences import declared, formula
from assay.verify.logic.smt import WORKERS

pytest.importorskip("z3")
SORTS = {"age": "Int", "adult": "Bool", "tall": "Bool"}
GIVEN: dict[str, Any] = {"constants": SORTS, "context": ["if age is at least 18 then adult", "age = 20"]}
THEORY = theory_of(GIVEN)


def task(**more: Any) -> Task:
    return Task("t", "Who?", {**GIVEN, **more}, "claims")


def of(answer: str, **more: Any) -> Any:
    return Claims().assess(task(**more), answer)


def test_statuses_of_claims_by_hand() -> None:
    found = of("adult\nnot adult\nage > 10\ntall")
    assert found.statuses == ("entailed", "contradictory", "entailed", "possible")
    assert found.joint is False and found.removed == (1,) and found.core == (1,)
    three = of("age > 30\nage < 25\nadult")
    assert three.removed == (0,) and three.statuses[0] == "contradictory"
    assert "Claim 1 ('age > 30') contradicts what is given" in three.feedback()
    assert of("age > 30 or tall").statuses == ("possible",) and of("tall -> tall").statuses == ("entailed",)


@pytest.mark.parametrize(
    ("scores", "whole"),
    [
        ((1, 1, 1), 1),
        ((1, 0.9, 0.7), 0.7434),
        ((1, 1, 0), 0.3333),
        ((0.9, 0.9), 0.9),
        ((0.7, 0.7, 0.7), 0.7),
        ((1, 0, 1, 0.7), 0.3375),
        ((), 0),
        ((0, 0), 0),
    ],
)
def test_answer_scores_by_hand(scores: tuple[float, ...], whole: float) -> None:
    assert round(answer_score(scores), 4) == whole


def test_claims_are_worth_what_they_are() -> None:
    assert [claim_score(s) for s in ("entailed", "supported", "possible")] == [1.0, 0.9, 0.7]
    assert not any(claim_score(s) for s in ("contradictory", "unknown", "unsupported", "uncertain", "plausible"))  # type: ignore[arg-type]
    assert claim_score("plausible", 0.7) == 0.7
    asked = assess(task(), ["he plays well"], THEORY, judge=lambda task, claims: ["plausible"])
    judged = Claims(judge=lambda task, claims: ["plausible"])(task(), "he plays well")
    assert asked.statuses == ("plausible",) and asked.score == judged.score == 0.0


def test_an_answer_at_the_threshold_is_right() -> None:
    """The mean of an entailed claim alone is 1."""
    assert Claims(threshold=1.0)(task(), "adult").passed
    assert Claims(threshold=0.0)(task(), "not tall\nhe plays well").passed
    for wrong in ({"threshold": -0.1}, {"threshold": 1.1}, {"plausible": -0.1}, {"plausible": 1.1}):
        with pytest.raises(UsageError, match=r"in \[0, 1\]"):
            Claims(**wrong)
    assert Claims(plausible=1.0, judge=lambda task, claims: ["plausible"])(task(), "he plays well").passed


def test_an_inconsistent_context_is_reported_and_abstained_on() -> None:
    verdict = Claims()(task(context=["adult", "not adult"]), "adult")
    assert verdict.passed is None and verdict.fault == "tests" and "contradicts itself" in verdict.feedback
    assert verdict.score == 0.0
    found = of("adult\ntall", context=["adult", "not adult"])
    assert found.statuses == ("contradictory", "contradictory"), "which is looked for before entailment"
    assert not found.consistent and not found.accepted(0.0)


def test_claims_have_to_hold_together() -> None:
    both = of("tall\nnot tall")
    assert both.statuses == ("possible", "possible") and both.joint is False
    assert both.removed == (1,) and both.core == (0, 1) and both.score == pytest.approx(0.7)
    assert both.feedback().endswith("Claims 1 and 2 cannot all hold: change 2 ('not tall').")
    verdict = Claims(threshold=0.5)(task(), "tall\nnot tall")
    assert verdict.passed is False and verdict.parts["together"] == 0 and verdict.score == pytest.approx(0.7)
    # What no solver can judge stands in bridging axioms as the constant soft_i.
    bridged = of("tall\nhe plays basketball well", bridges=["soft_2 -> not tall"])
    assert bridged.joint is False and bridged.core == (0, 1) and bridged.removed == (1,)
    assert of("tall\nhe plays basketball well", bridges=["soft_2 -> tall"]).joint is True
    assert of("tall\nadult", bridges=["soft_2 -> not tall"]).joint is True, "claim 2 is a formula"


NAMES = "pqrs"
LITERALS = st.sampled_from(
    [*NAMES, *(f"not {n}" for n in NAMES), "p or q", "p -> r", "not p or not s", "q and r", "p <-> s"]
)


@given(st.lists(LITERALS, min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_correction_sets_are_minimal(claims: list[str]) -> None:
    theory = Theory(declared(dict.fromkeys(NAMES, "Bool")), "")

    def holds(chosen: Sequence[int]) -> bool:
        """By enumeration, and not by the solver."""
        for bits in range(2 ** len(NAMES)):
            values = {n: bool(bits >> k & 1) for k, n in enumerate(NAMES)}
            if all(truth(claims[i], values) for i in chosen):
                return True
        return False

    found = assess(Task("t", "?"), claims, theory)
    every = range(len(claims))
    kept = [i for i in every if i not in found.removed]
    assert found.joint is holds(every) and holds(kept)
    assert all(not holds([*kept, i]) for i in found.removed), "one removed could stay"
    assert not found.core or not holds(found.core)
    assert all(holds(c) for c in combinations(found.core, max(len(found.core) - 1, 0))), "the core is not minimal"


def truth(text: str, values: dict[str, bool]) -> bool:
    """Python's own reading of a sentence."""
    if "->" in text and "<->" not in text:
        left, right = text.split("->")
        return not truth(left.strip(), values) or truth(right.strip(), values)
    return bool(eval(text.replace("<->", "=="), {}, values))


def test_consensus_is_by_proved_equivalence() -> None:
    theory = Theory(declared({"A": "Bool", "B": "Bool", "x": "Int"}), "")
    one, two, other = (str(formula(s)) for s in ("A -> B", "not A or B", "B -> A"))
    assert (
        equivalent(theory, one, two) and not equivalent(theory, one, other) and not equivalent(theory, one, "(= A 3)")
    )
    assert consensus(theory, [other, one, two]) == (one, one)
    assert consensus(theory, [one, other, "(> x 2)"]) == (None, one), "2 of 3 are needed"
    assert consensus(theory, [one, other]) == (one, one), "half of 2, rounded up, is 1"
    assert consensus(theory, [one, "nonsense", "(+ x 1)"]) == (None, one)
    assert consensus(theory, ["nonsense"]) == (None, None)
    assert entailed_by(theory, str(formula("B")), one) and not entailed_by(theory, one, str(formula("B")))


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("x is not 3", "(not (= x 3))"),
        ("x is at least y + 2.5 and p", "(and (>= x (+ y 2.5)) p)"),
        ("x is not at least 3", "(< x 3)"),
        ("x is not at most 3", "(> x 3)"),
        ("x is at most 3 or x exceeds 2 * y - 1.", "(or (<= x 3) (> x (- (* 2 y) 1)))"),
        ("x is not more than 3", "(<= x 3)"),
        ("x is less than -3", "(< x (- 3))"),
        ("if p and q then r or not s", "(=> (and p q) (or r (not s)))"),
        ("p -> q -> r", "(=> p (=> q r))"),
        ("p if and only if not not q", "(= p q)"),
        ("it is not the case that x > 2", "(not (> x 2))"),
        ("(p or q) and r", "(and (or p q) r)"),
        ("(and p (not q))", "(and p (not q))"),
        ("TRUE", "true"),
        ("x != 2 - 1 - 1", "(not (= x (- (- 2 1) 1)))"),
    ],
)
def test_sentences_are_terms(text: str, term: str) -> None:
    assert formula(text) == term


@pytest.mark.parametrize(
    "text", ["the weather is nice today", "", "if p", "p and", "x = = 3", "(p", "p)", "50 %", "x" * 3000]
)
def test_what_is_no_sentence(text: str) -> None:
    assert formula(text) is None


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_text_is_a_sentence_or_not(text: str) -> None:
    assert formula(text) is None or isinstance(formula(text), str)
    assert formula("(" * 400 + text) is None


def test_how_deep_and_long_a_sentence_may_be() -> None:
    """50 formulas in each other, the whole one among them, and 2000 characters."""

    def nested(n: int) -> str:
        return f"not {'(' * n}p{')' * n}"

    assert formula(nested(49)) == "(not p)" and formula(nested(50)) is None
    beside = "q and " + "(p) and " * 60
    assert formula(beside + nested(49)) == f"(and q {'p ' * 60}(not p))" and formula(beside + nested(50)) is None
    assert formula(f"p{' ' * 1994}and q") == "(and p q)" and formula(f"p{' ' * 1995}and q") is None


def test_claims_are_the_lines_of_an_answer() -> None:
    assert claims_of("- a\n* b\n2. c\n\n  d") == ["a", "b", "c", "d"]
    assert claims_of("- age - 2 > 3\nage * 2 > 30\n1. - a") == ["age - 2 > 3", "age * 2 > 30", "- a"]
    assert claims_of("so\n<answer>a\nb</answer> c") == ["a", "b"]
    assert Claims()(task(), "adult\n" * 50).passed
    assert Claims()(task(), "adult\n" * 51).feedback == "more than 50 claims"
    long = "adult".ljust(200_000)
    assert Claims()(task(), long).passed and Claims()(task(), long + " ").passed is False
    assert Claims()(task(), "<think>not adult</think>\nadult").passed


def test_a_question_is_settled_by_the_claims_themselves() -> None:
    asked = task(question="adult")
    assert Claims()(asked, "adult").passed and Claims()(asked, "adult\nage = 20").passed
    truism = Claims()(asked, "age = age")
    assert truism.passed is False and "do not say whether" in truism.feedback
    assert Claims()(task(), "age = age").passed, "without a question nothing has to be said"
    assert Claims()(asked, "not adult").passed is False and of("not adult", question="adult").answers


def test_references_that_are_none_and_solvers_that_fail_abstain(monkeypatch: pytest.MonkeyPatch) -> None:
    for bad in (
        None,
        {"context": ["the weather is nice"]},
        {**GIVEN, "constants": {"age": "Text"}},
        {**GIVEN, "question": "?"},
    ):
        verdict = Claims()(Task("t", "?", bad, "claims"), "adult")
        assert verdict.passed is None and verdict.fault == "tests"
    monkeypatch.setattr("assay.verify.logic.claims.WORKERS.call", lambda *a, **k: Failure("took 10 s", "time"))
    verdict = Claims()(task(), "adult")
    assert verdict.passed is None and verdict.fault == "infrastructure"
    with pytest.raises(Unreadable):
        consensus(THEORY, ["adult"])


def test_claims_that_may_or_may_not_hold_together_abstain(monkeypatch: pytest.MonkeyPatch) -> None:
    """But those that are worth too little are wrong either way."""

    def told(function: str, *arguments: Any, seconds: float) -> Any:
        found = WORKERS.call(function, *arguments, seconds=seconds)
        return {**found, "joint": None} if function == "statuses" else found

    monkeypatch.setattr("assay.verify.logic.claims._asked", told)
    verdict = Claims(threshold=1.0)(task(), "adult")
    assert verdict.passed is None and verdict.score == 0.0 and verdict.parts["together"] is None
    assert verdict.feedback == "z3 cannot tell whether all claims hold together"
    verdict = Claims()(task(), "tall")
    assert verdict.passed is False and verdict.score == pytest.approx(0.7)


class Says:
    """An engine whose reply is a function of the prompt and of how often it was asked that."""

    def __init__(self, reply: Any):
        self.reply, self.asked = reply, list[Request]()

    def encode(self, prompt: Any) -> np.ndarray:
        return np.zeros(1, dtype=np.int64)

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def decode(self, tokens: Any) -> str:
        return ""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += requests
        none = np.zeros(0, dtype=np.int64)
        return [
            [Episode(none, none, none.astype(bool), None, self.reply(str(r.prompt), j), "eos") for j in range(r.n)]
            for r in requests
        ]


def formalised(candidates: list[str], corrected: str = "", said: str = "back", back: str = "") -> Translated:
    """What comes of replies: to the first question, after a disagreement, in words, and of those words."""

    def reply(prompt: str, j: int) -> str:
        if prompt.startswith("Say in one"):
            return said
        if f"Claim: {said}" in prompt:
            return f"\\boxed{{{back}}}"
        return f"so \\boxed{{{corrected if 'readings disagree' in prompt else candidates[j]}}}"

    return Formaliser(Says(reply), len(candidates))("he is grown up", THEORY)


def test_readings_that_agree_are_taken() -> None:
    assert formalised(["(not (not adult))", "adult", "tall"], back="adult") == Translated("(not (not adult))")
    assert formalised(["adult"], back="(or adult adult)") == Translated("adult")
    engine = Says(lambda p, j: "adult" if p.startswith("Say") else "\\boxed{adult}")
    assert Formaliser(engine, 1)("?", THEORY) == Translated("adult")
    assert [r.sampling.temperature for r in engine.asked] == [0.7, 0.0, 0.7], "the words are the likeliest"


def test_claims_are_routed() -> None:
    assert formalised(["soft", "soft", "adult"]) == Translated(None), "most readings call it soft"
    assert formalised(["soft", "adult"], back="adult") == Translated("adult"), "half of them is not most"
    found = of("adult\nhe plays basketball well")
    assert found.statuses == ("entailed", "uncertain") and found.score == pytest.approx(0.25)
    judge = Opinions(Says(lambda prompt, j: "\\boxed{supported} \\boxed{0.8}"))
    assert Claims(judge=judge)(task(), "adult\nhe plays basketball well").passed
    assert "he plays basketball well" in str(judge.engine.asked[0].prompt) and len(judge.engine.asked) == 1
    broken = Claims(judge=Opinions(Says(lambda prompt, j: "no idea")))(task(), "adult\nhe plays basketball well")
    assert broken.passed is None and broken.score == 0.0, "a judge that fails is no verdict"
    assert Claims(judge=judge, translate=Formaliser(Says(lambda p, j: "\\boxed{soft}")))(task(), "x").score == 0.9


def test_a_corrected_formula_has_to_entail_the_old_one() -> None:
    apart = ["(> age 10)", "adult", "tall"]
    assert formalised(apart, corrected="(> age 12)", back="(> age 12)") == Translated("(> age 12)")
    weaker = formalised(apart, corrected="(> age 8)", back="(> age 8)")
    assert weaker.formula is None and "readings of it disagree" in weaker.alert
    assert formalised(["?", "!", ""], corrected="tall", back="tall") == Translated("tall"), "there is no old one"
    assert formalised(["?", "!", ""], corrected="?").formula is None


def test_a_formula_that_reads_back_as_another_is_told() -> None:
    found = formalised(["adult"], back="(and adult tall)")
    assert found.formula is None and "read back" in found.alert
    assert Formaliser(Says(lambda p, j: "\\boxed{adult}"), 1, round_trip=False)("?", THEORY) == Translated("adult")
    alerted = Claims(translate=lambda claim, theory: found).assess(task(), "he is grown up")
    assert alerted.statuses == ("uncertain",) and found.alert in alerted.feedback()


def test_judges_vote_by_confidence() -> None:
    assert vote([("supported", 0.5), ("unsupported", 0.9), ("supported", 0.3)]) == "unsupported"
    assert vote([("supported", 0.5), ("unsupported", 0.5)]) == "supported" and vote([None]) is None
    assert opinion("\\boxed{Plausible} and \\boxed{0.4}") == ("plausible", 0.4)
    assert opinion("\\boxed{uncertain}") == ("uncertain", 1.0)
    assert opinion("\\boxed{supported}\\boxed{0}") == ("supported", 0.0)
    assert Opinions(Says(lambda p, j: "\\boxed{unsupported}"), 1)(task(), ["a"]) == ["unsupported"]
    for bad in ("", "\\boxed{maybe}", "\\boxed{supported}\\boxed{high}", "\\boxed{supported}\\boxed{1.2}"):
        assert opinion(bad) is None
    replies = ["\\boxed{unsupported}\\boxed{0.6}", "\\boxed{supported}\\boxed{0.4}", "\\boxed{supported}\\boxed{0.3}"]
    assert Opinions(Says(lambda p, j: replies[j]))(task(), ["a", "b"]) == ["supported", "supported"]
    with pytest.raises(UsageError):
        Opinions(Says(str), 0)
    with pytest.raises(UsageError):
        Formaliser(Says(str), 0)


def refined(*said: str, budget: int = 5, ask: Task | None = None, **options: Any) -> tuple[Any, Scripted]:
    engine = Scripted([(text, "eos") for text in said])
    [answer] = RefineSmt(**options)([ask or task()], engine, budget, np.random.default_rng(0))  # type: ignore[arg-type]
    return answer, engine


def test_refinement_names_claims_and_stops() -> None:
    answer, engine = refined("not adult\nage > 10", "adult\nage > 10", "never asked for")
    assert answer.text == "adult\nage > 10" and answer.meta["accepted"] and len(engine.asked) == 2
    assert engine.asked[0].prompt == "Who?"
    assert "Claim 1 ('not adult') contradicts what is given." in str(engine.asked[1].prompt)
    assert "not adult\nage > 10" in str(engine.asked[1].prompt)
    assert [round(s, 4) for s in answer.meta["scores"]] == [0.25, 1.0]
    same, engine = refined("tall", "not tall", "adult")
    assert len(engine.asked) == 2 and same.meta["scores"] == pytest.approx([0.7, 0.7])
    # Converged: the score stays.
    stuck, engine = refined("not adult", "age > 30", "adult")
    assert len(engine.asked) == 2 and not stuck.meta["accepted"] and stuck.text == "age > 30"
    on, engine = refined("not adult", "age > 30", "adult", delta=0.0)
    assert on.text == "adult" and len(engine.asked) == 3
    # Out of rounds: the best of what there is.
    best, engine = refined("adult\ntall\nnot adult", "not adult", "tall", budget=2)
    assert len(engine.asked) == 2 and best.text == "adult\ntall\nnot adult"
    _, engine = refined("not adult", "adult", feedback="bare")
    assert "Something in it is wrong." in str(engine.asked[1].prompt) and "Claim 1" not in str(engine.asked[1].prompt)
    strict, _ = refined("adult\ntall", "adult\nage = 20", threshold=0.95)
    assert strict.text == "adult\nage = 20"


def test_an_inconsistent_context_ends_the_search() -> None:
    answer, engine = refined("adult", "tall", ask=task(context=["adult", "not adult"]))
    assert len(engine.asked) == 1 and answer.meta["inconsistent"] and not answer.meta["accepted"]
    fine, _ = refined("adult")
    assert not fine.meta["inconsistent"]


def test_budgets_of_tokens_are_kept() -> None:
    """A draft of 9 tokens; another is begun only where its prompt and the 20 tokens it may have are left."""
    options: dict[str, Any] = {"delta": 0.0, "sampling": Sampling(max_tokens=20)}
    _, engine = refined("not adult", "adult", **options)
    needed = 9 + len(str(engine.asked[1].prompt)) + 20
    for tokens, rounds in ((needed, 2), (needed - 1, 1)):
        answer, engine = refined("not adult", "adult", budget=Budget(tokens=tokens), **options)  # type: ignore[arg-type]
        assert len(engine.asked) == rounds and answer.tokens <= tokens


def test_what_is_accepted_is_not_asked_again() -> None:
    engine = Scripted([(text, "eos") for text in ("adult", "not adult", "age = 20")])
    answers = RefineSmt()([task(), Task("u", "Whom?", GIVEN, "claims")], engine, 5, np.random.default_rng(0))  # type: ignore[arg-type]
    assert [a.text for a in answers] == ["adult", "age = 20"]
    assert [r.prompt for r in engine.asked[:2]] == ["Who?", "Whom?"] and "Whom?" in str(engine.asked[2].prompt)


def test_options_that_do_not_fit() -> None:
    for wrong in ({"delta": -0.1}, {"template": "again"}, {"threshold": 2.0}):
        with pytest.raises(UsageError):
            RefineSmt(**wrong)  # type: ignore[arg-type]


def test_engines_of_its_own_translate_and_judge() -> None:
    strategy = RefineSmt(translator=Says(lambda p, j: "\\boxed{adult}"), judge=Says(str), k=1, opinions=2)
    assert strategy.verifier.translate == Formaliser(strategy.translator, 1)
    assert strategy.verifier.judge == Opinions(strategy.judge, 2)
    [answer] = strategy([task()], Scripted([("he is grown up", "eos")]), 3, np.random.default_rng(0))  # type: ignore[arg-type]
    assert answer.meta["accepted"]


def paid(task: Task, response: str) -> Verdict:
    """What a model that has learned nothing says, as one of two answers."""
    return Claims()(task, "adult\ntall" if len(response) % 2 else "adult")


def test_the_score_is_a_reward_in_training(tmp_path: Path) -> None:
    assert build("verify", "claims") == Claims() and build("verify", {"name": "claims", "threshold": 0.9})
    rows = '{"question": "Who?", "answer": {"constants": {"adult": "Bool", "tall": "Bool"}, "context": ["adult"]}}\n'
    (tmp_path / "tasks.jsonl").write_text("".join(rows.replace("Who", f"Who {n}") for n in range(20)))
    folder = run(
        tmp_path / "run",
        tasks={
            "source": {
                "name": "file",
                "path": str(tmp_path / "tasks.jsonl"),
                "kind": "claims",
                "prompt": "question",
                "reference": "answer",
            },
            "verify": f"{Path(__file__)}:paid",
            "eval_size": 1,
            "eval_share": 0.3,
        },
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64}},
        train={"steps": 2},
        warmup={"steps": 0},
        method={"reward": None},
        evaluate={"every": 0},
    )
    row = next(r for r in metrics(folder) if r["stage"] == "rl")
    worth = {1.0, answer_score((1.0, 0.7))}
    assert min(worth) <= row["score/mean"] <= max(worth) and row["abstained"] == 0 and row["grad_norm"] > 0


def test_the_row_makes_the_strategy() -> None:
    paper = RefineSmt(k=3, threshold=0.75, plausible=0.0, delta=0.01)
    assert catalogue.make("S149") == RefineSmt() == paper and Formaliser(Says(str)).k == 3
    made = catalogue.make("S149", threshold=0.8, delta=0.0)
    assert made == RefineSmt(threshold=0.8, delta=0.0) and Claims in PARTS
