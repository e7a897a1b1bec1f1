"""S181: specifications tested in both directions, proofs that may change nothing, and what a weak contract earns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from formal.support import needs
from running import metrics, run

from assay import catalogue, cli
from assay.errors import UsageError
from assay.registry import build
from assay.statistics.pass_at_k import pass_at_k
from assay.tasks.contracts import Contracts, Problem, generator, made, positives, problems, proven
from assay.types import NOTE, Task, Verdict
from assay.verify.formal.backends import BACKENDS, BuiltIn, Checked, External, backend
from assay.verify.formal.coq import COQC
from assay.verify.formal.imperative.parse import parse
from assay.verify.formal.imperative.run import holds
from assay.verify.formal.imperative.syntax import written
from assay.verify.formal.imperative.variants import variants
from assay.verify.formal.prover import Prover, likeness, spec_hash
from assay.verify.formal.spec_tests import WORKERS, Broken, negatives, outputs, perturbed, tried
from assay.verify.formal.tool import Result, Syntax
from assay.verify.isolate.workers import Failure

pytest.importorskip("z3")
POST = "r >= 0 && (r == x || r == -x)"
BODY = "{ if x >= 0 { r := x; } else { r := -x; } }"
HEAD = "method abs(x: int) returns (r: int) ensures "
ABS = f"{HEAD}{POST} {BODY}"
DOUBLE = "{ r := 2 * x; }"
POSITIVE = [([-3], [3]), ([0], [0]), ([5], [5])]
NEGATIVE = [([-3], [-3]), ([-3], [4]), ([0], [1]), ([5], [-5]), ([5], [6])]


def task(ask: str, **more: Any) -> Task:
    return Task("t", "?", {"ask": ask, "source": ABS, "positive": POSITIVE, "negative": NEGATIVE, **more}, "prover")


def judged(ask: str, response: str, **more: Any) -> Verdict:
    return Prover()(task(ask, **more), response)


@pytest.mark.parametrize(
    ("post", "accepted", "rejected"),
    [
        (POST, 3, 5),
        ("r >= 0", 3, 2),
        ("r > 0 && (r == x || r == -x)", 2, 5),
        ("true", 3, 0),
        ("r == (if x >= 0 then x else -x)", 3, 5),
    ],
)
def test_specifications_by_hand(post: str, accepted: int, rejected: int) -> None:
    verdict = judged("spec", f"{HEAD}{post}")
    assert verdict.parts["accepts"] == pytest.approx(accepted / 3)
    assert verdict.parts["rejects"] == pytest.approx(rejected / 5)
    assert verdict.passed is (accepted == 3 and rejected == 5) and verdict.score == float(verdict.passed)
    assert ("too strong" in verdict.feedback) is (accepted < 3)
    assert ("too weak" in verdict.feedback) is (accepted == 3 and rejected < 5)


def test_preconditions_have_to_admit_every_input() -> None:
    narrow = judged("spec", f"{HEAD.replace('ensures', 'requires x >= 0 ensures')}{POST}")
    assert narrow.passed is False and narrow.parts["admits"] == pytest.approx(2 / 3)
    assert "the precondition refuses [-3]" in narrow.feedback
    assert judged("spec", f"{HEAD.replace('ensures', 'requires x > -4 ensures')}{POST}").passed


def test_a_copy_of_the_code_passes_and_is_told() -> None:
    copied, other = parse(f"{HEAD}r == (if x >= 0 then x else -x)"), parse(f"{HEAD}{POST}")
    assert likeness(copied, parse(ABS)) > likeness(other, parse(ABS))
    verdict = judged("spec", f"{HEAD}if x >= 0 then r == x else r == -x")
    assert verdict.passed and (verdict.parts[f"rejects{NOTE}like the code"] or 0) > 0.6
    assert likeness(parse(f"{HEAD}true"), parse(ABS)) == 0
    # Of r, == and x two stand in this order in the code; a contract of one word, or of none.
    assert likeness(parse(f"{HEAD}r == x"), parse(ABS)) == pytest.approx(2 / 3)
    flag = "method m() returns (b: bool)"
    assert likeness(parse(f"{flag} ensures b"), parse(f"{flag} {{ b := true; }}")) == 1
    assert likeness(parse(flag), parse(f"{flag} {{ b := true; }}")) == 0


def test_likeness_is_to_what_runs() -> None:
    """Not to invariants or the contract, also behind a function; a word that is frequent counts as others do."""
    loop = parse(
        "method m(n: int) returns (s: int) ensures s == 7 { s := n; while s > 9 invariant s == 8 { s := 5; } }"
    )
    called = parse("function f(x: int): int { x } method m(n: int) returns (s: int) ensures f(s) == 7 { s := n; }")
    contract = "method m(n: int) returns (s: int) ensures "
    assert likeness(parse(f"{contract}8 == s"), loop) == likeness(parse(f"{contract}7 == s"), called) == 1 / 3
    long = "method m(n: int) returns (s: int) { " + "s := n; " * 80 + "}"
    assert likeness(parse(f"{contract}s == n"), parse(long)) == pytest.approx(2 / 3)


def test_code_is_run_on_the_positive_tests() -> None:
    assert judged("code", f"{HEAD}false {BODY}").passed, "its own contract does not matter"
    wrong = judged("code", f"{HEAD}true {{ r := x; }}")
    assert wrong.passed is False and wrong.parts["code"] == pytest.approx(2 / 3)
    assert wrong.feedback == "on [-3] it returns [-3], not [3]"
    fails = judged("code", f"{HEAD}true {{ r := 10 / x; }}")
    assert "on [0] it fails" in fails.feedback or "on [-3] it returns" in fails.feedback
    assert judged("code", f"{HEAD}true {{ while true {{ }} }}").feedback.startswith(
        "on [-3] it fails: it takes too many"
    )
    assert judged("code", f"{HEAD}true").feedback == "the method has no body"
    assert judged("code", ABS.replace("x: int", "y: int").replace("x", "y")).parts["signature"] == 0
    assert judged("code", "no program").parts == {"reads": 0.0}
    assert judged("code", f"Here it is:\n```dafny\n{ABS}\n```").passed


LOOP = next(p.source for p in problems() if "triangular" in p.source)


def test_a_proof_may_add_annotations_and_nothing_else() -> None:
    bare = written(parse(LOOP), proof=False)
    ask = Task("t", "?", {"ask": "proof", "source": LOOP}, "prover")
    assert Prover()(ask, LOOP).passed
    unproved = Prover()(ask, bare)
    assert unproved.passed is False and unproved.parts["unchanged"] == 1 and unproved.parts["proof"] == 0
    assert unproved.feedback.startswith("not proved: ")
    assert Prover()(ask, LOOP.replace("s := 0;", "s := 0; assert s == 0;")).passed
    assert Prover()(ask, LOOP.replace("s := 0;", "s := 0; assert s == 1;")).parts["proof"] == 0
    for edit in (
        ("ensures 2 * s ==", "ensures s >= 0 || 2 * s =="),
        ("requires n >= 0", "requires n == 0"),
        ("i := i + 1;", "i := n;"),
        ("s := 0;", "s := 0; assume s == 0;"),
    ):
        changed = Prover()(ask, LOOP.replace(*edit))
        assert changed.passed is False and changed.parts["unchanged"] == 0 and "proof" not in changed.parts
    assert spec_hash(bare) == spec_hash(LOOP) != spec_hash(ABS)


def test_what_takes_for_granted_has_proved_nothing() -> None:
    weak = ABS.replace("{ if", "{ assume false; if")
    found = BACKENDS["builtin"].check(weak)
    assert found.verified and not found.proved and found.escapes == ("line 1: assume",)
    assert judged("proof", weak).parts["unchanged"] == 0
    whole = judged("all", weak)
    assert whole.passed is False and whole.feedback == "takes for granted: line 1: assume"


@needs(COQC)
def test_other_provers_tell_escapes_too() -> None:
    coq = backend("coq")
    assert coq.check("Lemma a : 1 + 1 = 2. Proof. reflexivity. Qed.").proved
    granted = coq.check("Axiom b : False. Lemma a : 1 = 2. Proof. destruct b. Qed.")
    assert granted.verified and granted.escapes == ("Axiom",) and not granted.proved
    assert coq.check("Lemma a : 1 = 2. Proof. reflexivity. Qed.").verified is False
    assert not coq.check("Lemma a : 1 = 2. Proof. Admitted.").proved


def test_a_language_of_its_own_verifier_is_judged_by_that() -> None:
    found = Prover()(Task("t", "?", {"language": "fortran"}, "prover"), "x")
    assert found.passed is None
    if not COQC.missing:
        ask = {"language": "coq", "name": "a", "statement": "1 + 1 = 2"}
        assert Prover()(Task("t", "?", ask, "prover"), "Proof. reflexivity. Qed.").passed


def test_a_proof_of_a_weak_contract_earns_nothing() -> None:
    weak = judged("all", f"{HEAD}r >= 0 {BODY}")
    assert BACKENDS["builtin"].check(f"{HEAD}r >= 0 {BODY}").proved
    assert weak.passed is False and "too weak" in weak.feedback and "proof" not in weak.parts
    assert judged("all", f"{HEAD}true {{ r := 1; }}").passed is False
    assert judged("all", ABS).passed and judged("all", ABS).parts["proof"] == 1
    wrong = judged("all", f"{HEAD}{POST} {{ if x > -9 {BODY} }}")
    assert wrong.passed is False and wrong.parts["code"] == 1 and wrong.parts["proof"] == 0
    assert wrong.feedback.startswith("not proved: ") and "see x = -" in wrong.feedback
    alone = Prover(spec_tests=False)
    assert alone(task("all"), f"{HEAD}true {{ r := 1; }}").passed, "what the paper warns of"


def test_a_program_that_cannot_be_read_or_has_no_body_is_not_proved() -> None:
    for text, why in (("no program", "line 1"), ("method m() returns (r: int)", "no body")):
        found = BuiltIn().check(text)
        assert found.verified is False and why in found.errors[0]
    assert Prover().backend == BuiltIn(3_000_000, 30.0) and Prover(effort=7, seconds=2.0).backend == BuiltIn(7, 2.0)


def test_the_prover_that_is_named_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(External, "require", lambda self: None)
    assert Prover("dafny").backend is BACKENDS["dafny"]


class Said:
    """A tool that ends as it was told to, or is not there."""

    def __init__(self, *result: str, missing: str = ""):
        self.result, self.missing = result, missing

    def run(self, arguments: Any, files: Any, seconds: float) -> Result:
        self.ran = arguments, files, seconds
        return Result(*self.result)


def external(tool: Said, **more: Any) -> External:
    syntax = Syntax("//", ("/*", "*/"), nested=False, escape=True)
    return External(tool, "a.x", ("-c", "a.x"), syntax, re.compile(r"\bassume\s+\w+"), **more)  # type: ignore[arg-type]


def test_what_another_prover_says() -> None:
    tool, proof = Said("ok", "", "2 proofs, 0 errors"), "assume  it; assume it; // assume that\nx"
    assert external(tool).check(proof) == Checked(True, (), ("assume it",))
    assert tool.ran == (("-c", "a.x"), {"a.x": proof}, 120.0)
    wanted = re.compile(r"[1-9] proofs, 0 errors")
    assert external(tool, verified=wanted).check("x").proved
    assert external(Said("ok", "", "", "2 proofs, 0 errors"), verified=wanted).check("x").proved, "on either stream"
    for result, said in (
        (("ok", "", "0 proofs, 0 errors"), "0 proofs, 0 errors"),
        (("refused", "exit code 1", "reading\nError: no\n", "2 proofs, 0 errors"), "Error: no"),
        (("refused", "exit code 1"), "it is refused"),
        (("limit", "took 120 s", "error: none"), "took 120 s"),
    ):
        assert external(Said(*result), verified=wanted).check(proof) == Checked(False, (said,), ("assume it",))
    assert external(Said("fault", "no sandbox")).check("x") == Checked(None, fault="no sandbox")
    external(tool).require()
    with pytest.raises(UsageError, match="prover: it is not installed"):
        external(Said(missing="it is not installed")).require()


def test_feedback_is_short_and_what_abstains_scores_nothing() -> None:
    far = 10**400
    spec = f"{HEAD}forall k :: k > 0 ==> r != -k"
    untold = judged("spec", spec, positive=[([far], [far])], negative=[])
    assert untold.passed is None and untold.score == 0 and len(untold.feedback) == 300
    assert untold.parts["reads"] == untold.parts["signature"] == untold.parts["rejects"] == 1
    assert len(judged("code", f"{HEAD}true {{ r := 0; }}", positive=[([far], [far])]).feedback) == 300


def test_quantifiers_without_bounds_are_an_abstention() -> None:
    untold = judged("spec", f"{HEAD}forall k :: k > 0 ==> r != -k")
    assert untold.passed is None and "cannot be tried out" in untold.feedback
    assert Prover(untold="wrong")(task("spec"), f"{HEAD}forall k :: k > 0 ==> r != -k").passed is False
    failed = judged("spec", f"{HEAD}r > 0 && forall k :: k > 0 ==> r != -k")
    assert failed.passed is False, "a test that fails settles it"


def test_inputs_are_proved_and_not_filtered() -> None:
    for problem in problems():
        program = parse(problem.source)
        text = proven(problem)
        assert parse(text).method.ensures == program.method.requires
        assert BACKENDS["builtin"].check(text).proved
        names = [n for n, _ in program.method.params]
        for x, _ in positives(problem, 20):
            given = {n: tuple(v) if isinstance(v, list) else v for n, v in zip(names, x, strict=True)}
            assert holds(program, program.method.requires, given)
    loose = Problem("?", "method m(n: int) returns (r: int) requires n >= 0 { r := n; }")
    assert not BACKENDS["builtin"].check(written(generator(loose))).proved
    with pytest.raises(UsageError, match="not shown to keep to the precondition"):
        proven(loose)


def test_variants_count_only_if_their_fault_shows_and_is_not_total() -> None:
    """Pass rates on inputs -3, -1, 0, 2, 5."""
    positive = [([x], [abs(x)]) for x in (-3, -1, 0, 2, 5)]
    for body, rate, kept in (
        ("{ if x > 0 { r := x; } else { r := -x; } }", 1.0, False),
        ("{ r := x; }", 0.6, True),
        ("{ r := -1; }", 0.0, False),
        ("{ if x >= 0 { r := -x; } else { r := x; } }", 0.2, True),
        ("{ r := y; }", 0.0, False),
    ):
        found = tried(f"{HEAD}true {body}", positive)
        assert found.rate == pytest.approx(rate) and found.kept is kept
    from_code = negatives(ABS, positive, [f"{HEAD}true {{ r := x; }}", f"{HEAD}true {{ r := -1; }}"])[:2]
    assert from_code == [([-3], [-3]), ([-1], [-1])]


def test_ten_negative_tests_for_each_positive_one() -> None:
    positive = [([x], [abs(x)]) for x in range(-8, 7)]
    many = [f"{HEAD}true {{ if x > -8 {{ r := {k} + x * {k}; }} else {{ r := 8; }} }}" for k in range(2, 30)]
    found = negatives(ABS, positive, many)
    assert len(found) == 150 and len({repr(case) for case in found}) == 150
    right = {repr(x): y for x, y in positive}
    assert all(y != right[repr(x)] for x, y in found)
    values = [outputs(one, [x for x, _ in positive]) for one in many] + [
        outputs(written(p), [x for x, _ in positive], 500) for p in variants(parse(ABS))
    ]
    could = {repr((x, y)) for row in values for (x, _), y in zip(positive, row, strict=True)}
    assert sum(repr(case) in could for case in found[:120]) == 120, "at most eight in ten come from programs"
    assert [x for x, _ in found[120:]] == [x for x, _ in positive] * 2, "the others are changed outputs, input by input"
    assert negatives("method m(b: bool) returns (r: bool) ensures r { r := b || !b; }", [([True], [True])]) == [
        ([True], [False])
    ], "a truth has one wrong value"


def test_negative_tests_stop_where_there_are_enough() -> None:
    """One of a variant that is right of 0 and wrong of 5, and 19 of changed outputs, in turn and no more."""
    found = negatives(
        "method m(x: int) returns (r: int) { r := x; }", [([0], [0]), ([5], [5])], [f"{HEAD}true {DOUBLE}"]
    )
    assert found[0] == ([5], [10]) and len(found) == 20
    assert tried(ABS, [([5], [5])]).rate == 1 and tried(ABS, []).rate == 0


def test_a_variant_may_take_ten_times_the_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program takes 7 of them, hence 10 x 7 and 100 more."""
    fuel = []

    def call(name: str, source: str, inputs: Any, most: int, seconds: float) -> Any:
        fuel.append(most)
        return {"outputs": [[1]] * len(inputs), "steps": 7}

    monkeypatch.setattr(WORKERS, "call", call)
    negatives(ABS, [([1], [1])], [ABS])
    assert set(fuel[1:]) == {170}
    monkeypatch.undo()
    with pytest.raises(Broken, match=r"the right program cannot be run: .*no body"):
        negatives(f"{HEAD}true", [([1], [1])])
    monkeypatch.setattr(WORKERS, "call", lambda *a, **k: Failure("gone", "killed"))
    with pytest.raises(Broken, match="gone"):
        negatives(ABS, [([1], [1])])


def test_outputs_are_changed_by_their_type() -> None:
    assert [y for [y] in perturbed([7])] == [8, 6, 9, 5, 12, 2, 17, -3, 107, -93, -7, 0, 14, 3]
    assert list(perturbed([True])) == [[False]]
    # Its end left out, lengthened, turned round, nothing, twice; an element changed, left out, or one more.
    assert [y for [y] in perturbed([[1, 2, 4]])] == [
        *([1, 2], [1, 2, 4, 0], [4, 2, 1], [], [1, 2, 4, 1, 2, 4]),
        *([2, 2, 4], [0, 2, 4], [1, 3, 4], [1, 1, 4], [1, 2, 5], [1, 2, 3]),
        *([2, 4], [1, 4], [1, 2, 4, 1], [1, 2, 4, -1], [1, 2, 4, 2], [1, 2, 4, 7]),
    ]
    assert list(perturbed([0, True]))[-1] == [0, False]
    assert [0, 5] not in list(perturbed([0, 5]))


def test_variants_are_faults_of_what_runs() -> None:
    found = [written(v) for v in variants(parse(LOOP))]
    assert len(set(found)) == len(found) > 12
    assert all(f.partition("\n{")[0] == written(parse(LOOP)).partition("\n{")[0] for f in found), "a contract changed"
    assert all("invariant 0 <= i && i <= n && 2 * s == i * (i + 1)" in f for f in found), "an invariant changed"
    for fault in ("while i <= n", "while !(i < n)", "i := i - 1", "i := i + 2", "s := s - i", "s := 1", "i := i + 0"):
        assert any(fault in f.replace("(-1)", "-1") for f in found), fault
    assert any(f.count("s := ") == 1 for f in found), "a step left out"
    [one, two] = variants(parse("method m(x: int) returns (r: bool) { r := true; }"))
    assert {written(one), written(two)} == {
        "method m(x: int) returns (r: bool)\n{\n}\n",
        "method m(x: int) returns (r: bool)\n{\n  r := false;\n}\n",
    }


def test_worked_solutions_are_right_and_references_of_no_problem_abstain() -> None:
    source = Contracts(positive=6)
    assert source.size == 4 * len(problems()) == 56
    for i in range(source.size):
        assert Prover()(source[i], str(source[i].solution)).passed, source[i].id
    for reference in (
        None,
        {},
        {"ask": "poem", "source": ABS},
        {"ask": "code", "source": ABS},
        {"ask": "code", "source": "?"},
    ):
        verdict = Prover()(Task("t", "?", reference, "prover"), ABS)
        assert verdict.passed is None and verdict.fault == "tests"
    with pytest.raises(UsageError, match="ask"):
        Contracts(ask=("poem",))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="prover"):
        backend("z4")


def test_a_machine_that_fails_is_no_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise Broken("no worker process could be started")

    monkeypatch.setattr("assay.verify.formal.prover.truths", broken)
    verdict = judged("spec", ABS)
    assert verdict.passed is None and verdict.fault == "infrastructure"
    monkeypatch.undo()
    monkeypatch.setattr("assay.verify.formal.backends.WORKERS.call", lambda *a, **k: Failure("killed", "killed"))
    verdict = judged("proof", ABS)
    assert verdict.passed is None and verdict.fault == "infrastructure" and verdict.feedback == "z3: killed"
    monkeypatch.setattr("assay.verify.formal.backends.WORKERS.call", lambda *a, **k: Failure("took 30 s", "time"))
    assert judged("proof", ABS).feedback == "not proved: the proof took 30 s", "which is the proof's own doing"
    assert judged("code", ABS).feedback == "on [-3] it fails: took 30 s"


def test_pass_at_k_by_hand() -> None:
    assert [round(float(pass_at_k(20, 2, k)), 4) for k in (1, 5, 10)] == [0.1, 0.4474, 0.7632]


def test_the_row_makes_the_verifier() -> None:
    made_ = catalogue.make("S181", untold="wrong")
    assert made_.verifier == Prover(untold="wrong") and made_.provers() == list(BACKENDS)
    assert made_.verifier(task("spec"), f"{HEAD}{POST}").passed and made_.backend.check(ABS).proved
    assert build("verify", "prover") == Prover()


def test_assay_eval_measures_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for ask in ("code", "spec", "proof", "all"):
        one = made(problems()[0], ask, 6)  # type: ignore[arg-type]
        for n, response in enumerate(
            (one.solution, "method absolute(x: int) returns (r: int) ensures r >= 0 { r := 1; }")
        ):
            rows.append(
                {"task": one.id, "prompt": one.prompt, "reference": one.reference, "response": response, "n": n}
            )
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit) as end:
        cli.main(["eval", str(tmp_path / "samples.jsonl"), "--verifier", "prover", "--workers", "0", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert not end.value.code and found["samples"] == 8
    assert found["tasks"] == 4 and found["abstained"] == 0 and found["metrics"]["pass@1"]["value"] == 0.5


def test_it_trains(tmp_path: Path) -> None:
    """Two steps of GRPO; of what a model that has learned nothing says, every verdict is wrong, and none abstains."""
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "contracts", "positive": 4, "ask": ["code", "spec", "all"]}, "eval_size": 2},
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 512}},
        train={"steps": 2},
        warmup={"steps": 0},
        rollout={"max_tokens": 16},
        method={"reward": None},
        evaluate={"every": 0},
    )
    rows = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert len(rows) == 2
    assert all(r["abstained"] == 0 and r["pass_rate"] == 0 and r["reward/mean"] == 0 for r in rows)
