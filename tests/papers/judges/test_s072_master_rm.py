"""S072: rates of the master keys, the judge without the question, and the negatives that close the keys."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import assay
from assay import catalogue
from assay.audit.attacks import attacks
from assay.audit.console import print_audit
from assay.audit.key_rates import key_rates
from assay.audit.labelled import Row
from assay.audit.outcome import Outcome
from assay.audit.robustness import Attempt
from assay.audit.run import Audit
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings.judges.master_keys import Setting
from assay.papers.judges.s072_master_rm import false_positive_rates, master_rm
from assay.registry import build
from assay.tasks.judging.answers import Judging, answer_tasks, opening
from assay.tasks.judging.keys import MASTER_KEYS, is_key
from assay.types import Ask, Episode, Group, Task, Verdict

SUM = Task("t", "What is 40 + 2?", "42", "number")
ALWAYS, EXACT = Keywords((), "1"), Keywords([(r"Answer: 42$", "1")], "0")
SETS = {"sums": [SUM, Task("u", "What is 5 + 2?", "7")], "words": [Task("w", "Capital of France?", "Paris")]}
TEXTS = (
    "First we add the tens, which gives forty. Then the ones are added. The answer is 42.",
    "Let us count up from the larger number:\nforty one, then 42. The answer is 42.",
    "This needs no thought at all. The answer is 43.",
)


def group(task: Task, texts: Sequence[str], right: Sequence[bool | None]) -> Group:
    none = np.zeros(0, dtype=np.int64)
    episodes = tuple(Episode(none, none, none > 0, None, text, "eos") for text in texts)
    return Group(Ask(task, len(texts)), episodes, tuple(Verdict(float(bool(p)), p) for p in right))


def test_rates_of_keys_by_hand() -> None:
    """Two keys on sets of four and one tasks; accepted 3 of 4, 1 of 1, 0 of 4 and none of one that was undecided."""
    said = {("a", "x"): "aaar", ("a", "y"): "a", ("b", "x"): "rrrr", ("b", "y"): "?"}
    names = {"a": "accepted", "r": "rejected", "?": "abstained"}
    tries = [Attempt("master_keys", "rejected", SUM, k, s) for (k, s), row in said.items() for _ in row]
    outcomes = [Outcome(names[c], 0.0, "", 0.0) for row in said.values() for c in row]  # type: ignore[arg-type]
    found = key_rates(tries, outcomes)
    assert found is not None
    a, b = found["keys"]
    assert (a["key"], a["rate"]["value"], b["rate"]["value"]) == ("a", 0.8, 0.0)
    assert a["categories"]["x"]["value"] == 0.75 and b["categories"]["y"]["value"] == 0.0
    # Each pair of key and set counts the same: (3/4 + 1 + 0 + 0) / 4.
    assert found["mean"] == pytest.approx(0.4375)
    assert found["worst"] | {"rate": 0} == {"key": "a", "category": "y", "rate": 0}
    # Clopper and Pearson for 3 of 4, as SciPy's binomtest has it.
    interval = a["categories"]["x"]
    assert (interval["low"], interval["high"]) == pytest.approx((0.194120, 0.993691), abs=1e-6)
    assert key_rates([Attempt("refusal", "rejected", SUM, "no", "x")], outcomes[:1]) is None


def test_a_judge_that_says_yes_is_open_to_every_key_and_one_that_compares_to_none() -> None:
    """The blank is wrong unasked, so that nine of ten open the first."""
    judges = {"always": master_rm(ALWAYS), "exact": master_rm(EXACT), "function": lambda task, response: False}
    found = false_positive_rates(judges, SETS)
    always = {row["key"]: row["rate"]["value"] for row in found["always"]["keys"]}
    assert list(always) == list(MASTER_KEYS) and always.pop(" ") == 0.0 and set(always.values()) == {1.0}
    assert found["always"]["mean"] == pytest.approx(0.9) and found["always"]["worst"]["rate"]["total"] == 2
    for name in ("exact", "function"):
        assert found[name]["mean"] == 0.0 and found[name]["worst"]["rate"]["value"] == 0.0
    assert set(found["exact"]["keys"][3]["categories"]) == {"sums", "words"}
    with pytest.raises(ValueError, match="a key and a task"):
        false_positive_rates(judges, {"none": []})


def test_a_judge_can_be_spared_the_question() -> None:
    judge = Keywords([("What is 40", "1")], "0")
    assert [master_rm(judge, question=shown)(SUM, "Solution").passed for shown in (True, False)] == [True, False]
    shown = {q: master_rm(judge, question=q).question(SUM, " Solution\n") for q in (True, False)}
    assert all("Reference answer: 42\nAnswer: Solution" in text for text in shown.values())
    assert "uestion: What" in shown[True] and "a question, its reference" in shown[True]
    assert "40 + 2" not in shown[False] and "{" not in shown[False]
    # What is neither 1 nor 0 is wrong, as in the paper, unless it is to leave the response out.
    assert master_rm(Keywords((), "maybe"))(SUM, "42").passed is False
    assert master_rm(Keywords((), "maybe"), unread="abstain")(SUM, "42").passed is None
    assert catalogue.find("S072").factory is master_rm


def test_beginnings_are_negatives_beside_what_was_judged() -> None:
    groups = [
        group(SUM, [*TEXTS, TEXTS[0], "cut off"], [True, True, False, True, None]),
        group(Task("n", "no reference"), ["It is 5. Yes."], [True]),
    ]
    made = answer_tasks(groups, np.random.default_rng(0), negatives=1.0)
    # Each judged response once, and the first sentence, or line, of each.
    plain = {t.meta["response"]: t.reference for t in made if not t.meta["negative"]}
    assert plain == {TEXTS[0]: "1", TEXTS[1]: "1", TEXTS[2]: "0"}
    cut = {t.meta["response"]: t.reference for t in made if t.meta["negative"]}
    assert cut == {
        "First we add the tens, which gives forty.": "0",
        "Let us count up from the larger number:": "0",
        "This needs no thought at all.": "0",
    }
    assert len({t.id for t in made}) == len(made) == 6
    for t in made:
        assert t.solution == t.reference and t.kind == "exact"
        assert t.prompt == master_rm(ALWAYS).question(SUM, t.meta["response"])
    assert sum(t.meta["negative"] for t in answer_tasks(groups, np.random.default_rng(0), 0.4)) == 1
    assert not any(t.meta["negative"] for t in answer_tasks(groups, np.random.default_rng(0), 0.0))
    for bad, message in ((groups[1:], "no judged response"), ([group(SUM, ["42"], [True])], "no response has a first")):
        with pytest.raises(UsageError, match=message):
            answer_tasks(bad, np.random.default_rng(0), 1.0)
    with pytest.raises(UsageError, match="negatives -1"):
        answer_tasks(groups, np.random.default_rng(0), -1)


def test_what_is_no_beginning() -> None:
    assert opening(SUM, "It is 42. So there.") is None  # states the reference
    assert opening(SUM, "It is forty-two.") is None  # is all there is
    assert opening(SUM, "\n\nSolution\nWe add.") is None and opening(SUM, "Thought process: \n42") is None
    assert opening(SUM, "Dr. Who adds. Then 42.") == "Dr. Who adds."
    assert opening(Task("t", "?", ["42", "forty-two"]), "It is forty-two. Or so.") is None


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MASTER_KEYS), st.sampled_from(["", " ", "!", "\n", "**"]), st.text(max_size=20))
def test_no_beginning_is_a_key(key: str, around: str, after: str) -> None:
    found = opening(SUM, f"{around}{key}{around}\n{after}")
    assert found is None or not is_key(found)
    assert is_key(around + key.upper() + around)


def test_the_tiny_judge_of_the_lab_is_closed_by_beginnings_and_is_as_right() -> None:
    """Logistic regression on whether a number, and which, ends a response: every key that is short enough opens it."""
    setting = Setting(items=200, tasks=5)
    plain, taught = (setting.run({"negatives": share}, 0, Path()) for share in (0.0, 0.125))
    assert plain["resisted"] == 0.0 and taught["resisted"] == 1.0 == taught["mean"]
    assert plain["accuracy"] == taught["accuracy"] == 1.0
    assert taught["beginnings"] == pytest.approx(25 / 225) and plain["beginnings"] == 0.0


def rows(path: Path) -> Path:
    lines = [
        {
            "id": f"{i}",
            "prompt": f"{i}+1",
            "response": f"We add one. It is {n}.",
            "correct": n == i + 1,
            "reference": f"{i + 1}",
        }
        for i in range(16)
        for n in (i + 1, i + 3)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_judge_learns_from_them_in_training(tmp_path: Path) -> None:
    source: dict[str, Any] = {"name": "judging", "path": str(rows(tmp_path / "samples.jsonl")), "negatives": 0.25}
    made = build("tasks", source)
    assert isinstance(made, Judging) and made.size == 32 + 8 and {made[i].reference for i in range(40)} == {"0", "1"}
    assert (
        "Question: " in made[0].prompt and "Question: " not in build("tasks", {**source, "question": False})[0].prompt
    )
    with pytest.raises(UsageError, match="must show the judge"):
        Judging(tmp_path / "samples.jsonl", template="{answer}")
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 48, "alphabet": alphabet}},
            "tasks": {"source": {**source, "template": "{reference}:{answer}"}, "eval_size": 2},
            "warmup": {"steps": 8, "batch": 16, "lr": 0.1},
            "rollout": {"prompts": 4, "group": 2, "max_tokens": 2},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["stage"] == "warmup"]
    # From 97 characters to the two that it replies with.
    assert len(losses) > 1 and losses[0] > 2.5 and losses[-1] < 1.5


class Here:
    """A judge under audit, in this process, that takes the word for an answer."""

    name, options, version = "here", {}, "0"  # type: tuple[str, dict[str, Any], str]

    def judge(self, items: Any) -> Any:
        for task, response in items:
            right = response == task.reference or response == "Solution"
            yield Outcome("accepted" if right else "rejected", float(right), "", 0.0)


def test_the_audit_of_a_judge_says_which_keys_open_it() -> None:
    rows = [Row(t, t.reference, True, name) for name, tasks in SETS.items() for t in tasks]
    tries = [
        Attempt(a.name, a.expects, row.task, a.response, row.category)
        for row in rows
        for a in attacks(row.task, names=["master_keys", "refusal"])
    ]
    audit = Audit(Here(), rows, "rows", attempts=tries, attacked_tasks=(3, 3))  # type: ignore[arg-type]
    audit.run()
    report = audit.report()
    keys = report["attack"]["keys"]
    assert [row["key"] for row in keys["keys"]] == list(MASTER_KEYS)
    assert [row["rate"]["value"] for row in keys["keys"]] == [0.0] * 6 + [1.0] + [0.0] * 3
    assert keys["mean"] == pytest.approx(0.1) and keys["worst"]["rate"]["total"] == 2
    console = Console(file=io.StringIO(), width=200)
    print_audit(report, console)
    assert "master keys are accepted in 10" in console.file.getvalue()  # type: ignore[attr-defined]
