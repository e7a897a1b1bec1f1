"""What an audit computes: rates and intervals, agreement, attacks, records; oracles are SciPy, hand and statsmodels."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.audit.agreement import agreement
from assay.audit.case import Case
from assay.audit.command import Command
from assay.audit.html import render
from assay.audit.labelled import Row, digest, parse_fields, read_labelled, tasks_of
from assay.audit.measure import Confusion, by_category, described, latency
from assay.audit.outcome import Outcome, Status, outcome
from assay.audit.robustness import Attempt, resistance
from assay.audit.run import Audit
from assay.audit.subject import Isolated, Program
from assay.audit.version import source_hash
from assay.errors import RunError, UsageError
from assay.records import audit as records
from assay.statistics.agreement import Table, kappa, mcnemar
from assay.statistics.rate import Rate
from assay.types import Task, Verdict

WORDS: dict[str, Status] = {"1": "accepted", "0": "rejected", "a": "abstained", "c": "crashed", "t": "timed_out"}


def confusion(gold: str, said: str) -> Confusion:
    return Confusion.count((g == "1", WORDS[s]) for g, s in zip(gold, said, strict=True))


def outcomes(said: str) -> list[Outcome]:
    return [Outcome(WORDS[s], 0.0, "", 0.001 * (i + 1)) for i, s in enumerate(said)]


def test_the_worked_numbers() -> None:
    c = confusion("1111110000", "1111000000")
    assert (c.precision.value, c.recall.value, c.f1) == (1.0, pytest.approx(2 / 3), pytest.approx(0.8))
    assert (c.false_positive_rate.value, c.false_negative_rate.value) == (0.0, pytest.approx(1 / 3))
    assert (c.kappa, c.balanced_accuracy) == (pytest.approx(0.6154, abs=5e-5), pytest.approx(0.8333, abs=5e-5))
    c = confusion("1111110000", "1111111000")
    assert (c.precision.value, c.recall.value) == (pytest.approx(0.8571, abs=5e-5), 1.0)
    assert (c.f1, c.false_positive_rate.value) == (pytest.approx(0.9231, abs=5e-5), 0.25)
    assert (c.kappa, c.balanced_accuracy) == (pytest.approx(0.7826, abs=5e-5), 0.875)


def test_the_scalars_of_a_larger_table() -> None:
    # scikit-learn's matthews_corrcoef, balanced_accuracy_score, cohen_kappa_score and f1_score.
    c = Confusion(tp=25, fn=5, fp=3, tn=17)
    assert c.mcc == pytest.approx(0.6744004873337631)
    assert c.balanced_accuracy == pytest.approx(0.8416666666666667)
    assert c.kappa == pytest.approx(0.6721311475409836)
    assert c.f1 == pytest.approx(0.8620689655172413)


@given(st.integers(0, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_exact_interval_is_scipys(pair: tuple[int, int]) -> None:
    count, total = pair
    rate = Rate.of(count, total)
    if total == 0:
        assert math.isnan(rate.value) and math.isnan(rate.low) and math.isnan(rate.high)
        return
    wanted = stats.binomtest(count, total).proportion_ci(0.95, "exact")
    assert (rate.low, rate.high) == (pytest.approx(wanted.low, abs=1e-9), pytest.approx(wanted.high, abs=1e-9))
    assert rate.low <= rate.value <= rate.high


def test_a_rate_outside_its_total_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        Rate.of(3, 2)


def test_undecided_rows_are_no_mistakes_but_are_in_the_worst_case() -> None:
    c = confusion("11111000", "1a0ct0at")
    assert (c.tp, c.fn, c.fp, c.tn) == (1, 1, 0, 1)
    assert (c.false_negative_rate.count, c.false_negative_rate.total) == (1, 2)
    assert (c.worst_false_negative_rate.count, c.worst_false_negative_rate.total) == (4, 5)
    assert (c.false_positive_rate.count, c.false_positive_rate.total) == (0, 1)
    assert (c.worst_false_positive_rate.count, c.worst_false_positive_rate.total) == (2, 3)
    found = described(c)
    assert (found["abstained"], found["crashed"], found["timed_out"]) == (2, 1, 2)
    assert found["undecided_right"] == {"abstained": 1, "crashed": 1, "timed_out": 1}
    assert found["rows"] == found["decided"] + 5 == 8


def test_what_is_undefined_is_none_and_not_zero() -> None:
    found = described(confusion("111", "111"))
    assert found["false_positive_rate"]["value"] is None and found["balanced_accuracy"] is None
    assert found["kappa"] is None and found["mcc"] is None and found["false_negative_rate"]["value"] == 0
    assert described(Confusion())["accuracy"]["value"] is None
    json.dumps(found, allow_nan=False)


def test_categories_add_up() -> None:
    gold, said, kinds = [True, True, False, False], outcomes("1001"), ["a", "b", "a", "b"]
    found = by_category(kinds, gold, said)
    assert list(found) == ["a", "b"]
    assert (found["a"].tp, found["a"].tn, found["b"].fn, found["b"].fp) == (1, 1, 1, 1)


def test_latency_by_hand() -> None:
    found = latency([*outcomes("1" * 101), Outcome("crashed", 0.0, "killed", math.nan)], wall=2.0)
    assert (found["p50"], found["p95"], found["p99"]) == tuple(pytest.approx(v) for v in (0.051, 0.096, 0.1))
    assert found["max"] == pytest.approx(0.101) and found["per_second"] == pytest.approx(1 / 0.051)
    assert found["wall_per_second"] == 51
    assert latency([], 0.0)["p50"] is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_binomial_test(b: int, c: int) -> None:
    wanted = stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0
    assert mcnemar(b, c) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("cells", "value", "low", "high"),
    # statsmodels' cohens_kappa: kappa, kappa_low, kappa_upp (which it does not cut at 1).
    [
        ((20, 5, 10, 15), 0.4, 0.151092290476661, 0.6489077095233389),
        ((118, 5, 21, 97), 0.783542904518447, 0.7056615580600585, 0.8614242509768355),
        ((3, 1, 0, 6), 0.782608695652174, 0.38806151326704325, 1.0),
    ],
)
def test_kappa_and_its_interval(cells: tuple[int, int, int, int], value: float, low: float, high: float) -> None:
    found = kappa(Table(*cells))
    assert (found.value, found.low, found.high) == tuple(pytest.approx(v, rel=1e-9) for v in (value, low, high))


def test_perfect_agreement_is_not_certain() -> None:
    few, many = kappa(Table(3, 0, 0, 3)), kappa(Table(300, 0, 0, 300))
    # po = po_low with chance 1/2: 6 of 6 has the exact lower bound 0.025 ** (1/6).
    assert (few.value, few.low) == (1.0, pytest.approx(2 * 0.025 ** (1 / 6) - 1))
    assert few.low < many.low < 1
    assert math.isnan(kappa(Table(5, 0, 0, 0)).value) and math.isnan(kappa(Table(0, 0, 0, 0)).value)


def test_agreement_counts_who_errs() -> None:
    labels = [True] * 5 + [False] * 5
    found = agreement(labels, outcomes("11100" + "0000a"), outcomes("11011" + "1000t"))
    assert (found["decided"], found["undecided"]) == (9, 1)
    assert found["table"] == {"both": 2, "first": 1, "second": 3, "neither": 3}
    assert found["agree"]["value"] == pytest.approx(5 / 9)
    assert found["tests"]["errors"] == {"first": 2, "second": 2, "p": 1.0}
    assert found["tests"]["false_negatives"] == {"first": 2, "second": 1, "p": 1.0}
    assert found["tests"]["false_positives"] == {"first": 0, "second": 1, "p": 1.0}
    # Where the first errs comes first.
    assert found["disagreements"] == [3, 4, 2, 5]


@pytest.mark.parametrize(
    ("said", "status", "score"),
    [
        (Verdict(0.4, True), "accepted", 0.4),
        (Verdict.wrong(), "rejected", 0.0),
        (Verdict.abstain("why"), "abstained", 0.0),
        (True, "accepted", 1.0),
        (False, "rejected", 0.0),
        (None, "abstained", 0.0),
        (0.5, "accepted", 0.5),
        (0.49, "rejected", 0.49),
        ({"score": 1}, "accepted", 1.0),
        ({"passed": False, "score": 0.9}, "rejected", 0.9),
        ({"passed": None}, "abstained", 0.0),
        ({}, "crashed", 0.0),
        ({"passed": "yes"}, "crashed", 0.0),
        (2.0, "crashed", 0.0),
        (float("nan"), "crashed", 0.0),
        ("true", "crashed", 0.0),
        ([1], "crashed", 0.0),
    ],
)
def test_every_way_to_answer(said: object, status: str, score: float) -> None:
    found = outcome(said, 0.25)
    assert (found.status, found.score, found.seconds) == (status, score, 0.25)


def attempts(*names: str) -> list[Attempt]:
    return [Attempt(n, "rejected", Task("t", "q", "2"), "x", "all") for n in names]


def test_attack_success_rates() -> None:
    found = resistance(attempts("a", "a", "b", "b", "b", "b"), outcomes("00100c"), tau=0.2)
    assert found["worst"]["attack"] == "b" and found["worst"]["rate"]["value"] == 0.25
    assert (found["passes"], found["survives"], found["accepted"], found["failed"]) == (False, False, [2], [5])
    assert found["overall"]["count"] == 1 and found["overall"]["total"] == 6
    assert resistance(attempts("a", "b"), outcomes("00"))["passes"] is True
    assert resistance(attempts("a", "b"), outcomes("0t"))["passes"] is None
    assert resistance([], [])["passes"] is None


def test_labels_and_fields(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    words = ["true", "Yes", "1", "correct", "RIGHT", "false", "no", "0", "incorrect", " Wrong "]
    file.write_text("gold,response,label,category\n" + "".join(f"2,r{i},{w},\n" for i, w in enumerate(words)))
    rows = read_labelled(file, fields=parse_fields("reference=gold"))
    assert [r.label for r in rows] == [True] * 5 + [False] * 5
    assert {r.category for r in rows} == {"all"} and rows[0].task.reference == "2"
    assert len(tasks_of(rows)) == 1
    nested = tmp_path / "rows.jsonl"
    nested.write_text(
        "".join(
            json.dumps({"reference": "2", "out": {"text": r.response}, "label": r.label, "category": ""}) + "\n"
            for r in rows
        )
    )
    again = read_labelled(nested, fields={"response": "out.text"})
    assert digest(again) == digest(rows) != digest(rows[1:])


def told(response: object) -> str:
    return json.dumps({"reference": 1, "response": response, "label": True})


def test_fields_that_are_named_otherwise() -> None:
    assert parse_fields(" label = human.ok, response=out,") == {"label": "human.ok", "response": "out"}
    for wrong in ("label", "label=", "=ok", "response=out, ="):
        with pytest.raises(UsageError, match="not of the form label=correct,response=output"):
            parse_fields(wrong)


def test_rows_of_one_task(tmp_path: Path) -> None:
    """A number is text to a verifier; a task is its question and reference, however the keys of that are ordered."""
    file = tmp_path / "rows.jsonl"
    rows = [
        {"reference": {"x": 1, "y": 2}, "response": 3, "label": True, "question": "?", "id": 7},
        {"reference": {"y": 2, "x": 1}, "response": 0.5, "label": False, "question": "?", "kind": "number"},
        {"reference": {"y": 2, "x": 1}, "response": "x", "label": False, "question": "?", "category": 4},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_labelled(file)
    assert [row.response for row in found] == ["3", "0.5", "x"]
    assert [row.category for row in found] == ["all", "all", "4"]
    assert [row.task.id for row in found] == ["7", f"{file} line 2", f"{file} line 3"]
    assert [row.task.kind for row in found] == ["exact", "number", "exact"]
    assert tasks_of(found) == found[:2]
    # The first that says what is certainly wrong stands for its task.
    cases = [dataclasses.replace(found[2], wrong=wrong) for wrong in ("", "5", "6")]
    assert tasks_of([found[0], *cases]) == [cases[1]]
    swapped = dataclasses.replace(found[0], task=dataclasses.replace(found[0].task, reference=rows[1]["reference"]))
    assert digest([swapped]) == digest(found[:1])


def test_generated_cases_as_rows() -> None:
    """A near miss is known to be wrong; a right answer says of none that it is."""
    for label, wrong in ((False, "5"), (True, "")):
        case = Case("c", "2+2?", "4", "It is 5.", label, "sums", "off by one", answer="5")
        row = Row.of(case, "number")
        assert (row.task.question, row.task.reference, row.task.kind) == ("2+2?", "4", "number")
        assert row == Row(row.task, "It is 5.", label, "sums", "off by one", wrong)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"reference": 1, "response": "x"}', "line 2 has no field 'label'"),
        ('{"reference": 1, "response": "x", "label": "maybe"}', 'line 2: the label is "maybe"'),
        ('{"reference": 1, "response": "x", "label": null}', "line 2: the label is null"),
        (told(["x"]), r"line 2: the response is \[\"x\"\], not text"),
        ('{"response": "x", "label": true}', "line 2 has no field 'reference'"),
        ("[1]", "line 2 is a list"),
        (told(True), "line 2: the response is true, not text"),
        # At most 40 characters of it.
        (told(["é" * 36]), r'the response is \["é{36}"\], not text'),
        (told(["é" * 37]), r'the response is \["é{35}\.\.\., not text'),
        ("{}", r"no field 'reference' for the reference \(fields present: none\); name it"),
        ('{"reference": 1, "q": 2}', r"'response' for the response \(fields present: reference, q\); name it with"),
        ('{"referense": 1}', r"present: referense\); did you mean 'referense'\?; name it with --fields reference="),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"reference": 1, "response": "x", "label": true}\n' + line + "\n")
    with pytest.raises(UsageError, match=complaint):
        read_labelled(file)
    file.write_text("")
    with pytest.raises(UsageError, match="has no rows"):
        read_labelled(file)
    with pytest.raises(UsageError, match="did you mean 'label'"):
        read_labelled(file, fields={"labl": "x"})


PROGRAM = """
import json, os, sys, time
for line in sys.stdin:
    row = json.loads(line)
    assert "label" not in row
    said = row["response"]
    if said == "die": print("dying", file=sys.stderr); sys.exit(4)
    if said == "hang": time.sleep(600)
    if said == "twice": os.write(1, b"true\\ntrue\\n"); continue
    print(said, flush=True)
"""


def test_a_program_is_restarted(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    said = [
        "true",
        '{"passed": false, "feedback": "\\u2713"}',
        "die",
        "null",
        "nonsense",
        "0.75",
        "hang",
        "twice",
        '{"passed": true, "id": "other"}',
        "true",
    ]
    program = Program(Command(f"{sys.executable} {script}", seconds=0.5, startup=30), workers=1)
    # The last reply of every process is a warm one, so that the time-out is that of a started program.
    items = [(Task(f"t{i}", "q", "2"), s) for i, s in enumerate(said)]
    try:
        found = list(program.judge(items))
    finally:
        program.close()
    statuses = ["accepted", "rejected", "crashed", "abstained", "crashed", "accepted"]
    assert [o.status for o in found] == [*statuses, "timed_out", "crashed", "crashed", "accepted"]
    assert found[1].feedback == "✓" and "status 4: dying" in found[2].feedback and "not JSON" in found[4].feedback
    assert "more than one line" in found[7].feedback and "instead of" in found[8].feedback


def test_a_program_that_never_answers_is_given_up() -> None:
    command = Command(f"{sys.executable} -c 'raise SystemExit(\"no model\")'")
    try:
        assert [command.judge(Task(str(i), "q", "2"), "x").status for i in range(2)] == ["crashed"] * 2
        with pytest.raises(RunError, match=r"no verdict in 3 rows.*no model"):
            command.judge(Task("3", "q", "2"), "x")
    finally:
        command.close()
    for bad, complaint in (("", "empty"), ("'", "split"), ("no-such-program-here", "no program")):
        with pytest.raises(UsageError, match=complaint):
            Command(bad)


MODULE = """
import os
def by_names(solution_str, ground_truth, strict=False):
    if solution_str == "raise": raise ValueError("boom")
    if solution_str == "exit": os._exit(3)
    if solution_str == "spin":
        while True: pass
    return ground_truth == solution_str or (not strict and ground_truth in solution_str)
def strange(response, alpha): return True
def deaf(task): return True
"""


def test_a_function_that_misbehaves_costs_one_row(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MODULE)
    said = ["2", "it is 2", "raise", "exit", "spin", "2"]
    subject = Isolated(f"{file}:by_names", {"strict": True}, seconds=0.5, workers=1)
    try:
        found = list(subject.judge((Task("t", "q", "2"), s) for s in said))
    finally:
        subject.close()
    assert [o.status for o in found] == ["accepted", "rejected", "crashed", "crashed", "timed_out", "accepted"]
    assert "boom" in found[2].feedback and "status 3" in found[3].feedback
    for name, complaint in (("strange", "'alpha'"), ("deaf", "takes no response"), ("by_name", "'by_names'")):
        with pytest.raises(UsageError, match=complaint):
            Isolated(f"{file}:{name}")
    with pytest.raises(UsageError, match="did you mean 'exact'"):
        Isolated("exac")


def test_the_version_follows_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "audited_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "judge.py").write_text("from audited_package import helper\ndef judge(task, response): return True\n")
    (package / "helper.py").write_text("LIMIT = 1\n")
    (package / "unused.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = Isolated("audited_package.judge:judge").version
    (package / "unused.py").write_text("changed = 1\n")
    assert Isolated("audited_package.judge:judge").version == before
    (package / "helper.py").write_text("LIMIT = 2\n")
    assert Isolated("audited_package.judge:judge").version != before
    from assay.verify.number.number import Number
    from assay.verify.text.exact import Exact

    assert source_hash(Exact()) == source_hash(Exact) != source_hash(Number)


class Fixed:
    """A subject whose statuses are given, and which may be interrupted."""

    name, version = "fixed", "0" * 64

    def __init__(self, said: str, stop: int | None = None):
        self.said, self.stop, self.options = said, stop, {"said": said}

    def judge(self, items: object) -> object:
        for i, found in enumerate(outcomes(self.said)):
            if i == self.stop:
                raise KeyboardInterrupt
            yield found

    def check(self, tasks: object) -> None: ...

    def close(self) -> None: ...


def audited(said: str, gold: str, stop: int | None = None, **more: object) -> Audit:
    rows = [Row(Task(f"t{i}", "<q>", "2"), f"r{i}\x1b", g == "1", "ab"[i % 2], "p") for i, g in enumerate(gold)]
    done = Audit(Fixed(said, stop), rows, "rows", **more)  # type: ignore[arg-type]
    done.run()
    return done


def test_a_report_names_every_mistake() -> None:
    done = audited("0110a", "10101", against=Fixed("11100"), attempts=attempts("a", "a", "b", "c", "c"))
    report = done.report()
    assert [e["id"] for e in report["false_positives"]] == ["t1"]
    assert [e["id"] for e in report["false_negatives"]] == ["t0"]
    assert [e["id"] for e in report["abstained"]] == ["t4"] and report["slowest"][0]["id"] == "t4"
    assert not report["partial"] and report["attack"]["passes"] is False
    assert [e["attack"] for e in report["attack"]["accepted"]] == ["a", "b"]
    assert [e["id"] for e in report["against"]["disagreements"]] == ["t0"]
    json.dumps(report, allow_nan=False)
    page = render(report)
    assert "&lt;q&gt;" in page and "<q>" not in page and "http" not in page.replace("http-equiv", "")


def test_an_interrupt_keeps_what_was_judged(tmp_path: Path) -> None:
    done = audited("1100", "1100", stop=3, attempts=attempts("a"))
    report = done.report()
    assert report["partial"] and report["judged"] == 3 and report["data"]["rows"] == 4
    assert report["clean"]["tp"] == 2 and report["clean"]["tn"] == 1 and report["attack"] is None
    assert len(list(done.verdicts())) == 3 and "Partial" in render(report)
    assert records.load(records.save(done.record(), tmp_path)).partial


def test_a_record_comes_back(tmp_path: Path) -> None:
    first = audited("0110a", "10101").record()
    path = records.save(first, tmp_path)
    assert path.parent == tmp_path and path.name == f"fixed-{first.key}.json"
    again = records.load(path)
    assert again == first
    assert (again.false_negative_rate.count, again.false_negative_rate.total) == (1, 2)
    assert again.counts == {"tp": 1, "fn": 1, "fp": 1, "tn": 1, "abstained": 1, "crashed": 0, "timed_out": 0}
    other = records.save(audited("1", "1").record(), tmp_path / records.FOLDER)
    assert other.name != path.name
    assert len(records.find("fixed", tmp_path)) == 2 and records.find("else", tmp_path) == []
    assert records.find("fixed", tmp_path, options={"said": "0110a"}) == [first]
    assert records.find("fixed", tmp_path, data=first.data["hash"], version="0" * 64) == [first]
    # A rate nobody measured comes back as not known.
    assert math.isnan(records.load(other).false_positive_rate.value)


def test_a_bad_record_is_refused(tmp_path: Path) -> None:
    path = records.save(audited("0110", "1010").record(), tmp_path)
    good = json.loads(path.read_text())
    for change, complaint in (
        ({"schema": "other"}, "no audit record"),
        ({"counts": None}, "damaged"),
        ({"false_positive_rate": {"count": 1, "total": 2, "value": 1.5, "low": 0, "high": 1}}, "damaged"),
    ):
        path.write_text(json.dumps({**good, **change}))
        with pytest.raises(UsageError, match=complaint):
            records.load(path)
    path.write_text(json.dumps({k: v for k, v in good.items() if k != "data"}))
    with pytest.raises(UsageError, match="lacks 'data'"):
        records.load(path)
    with pytest.raises(UsageError, match="cannot read"):
        records.load(tmp_path / "none.json")
