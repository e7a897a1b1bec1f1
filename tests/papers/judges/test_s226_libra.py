"""S226: items of solved problems, balance, traces, lengths, accuracy, pairs and ranks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import assay
from assay import catalogue
from assay.batch import Batch
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings.judges.styled_items import Setting
from assay.method import Method
from assay.papers.judges.s226_libra import accuracy, agreement, libra, pairs_of
from assay.registry import build
from assay.tasks.judging import libra_bench
from assay.tasks.judging.pointwise import Judged, pointwise_items, with_traces
from assay.types import Ask, Episode, Group, Task, Verdict

NONE = np.zeros(0, np.int64)


def group(name: str, texts: Sequence[str], right: Sequence[bool | None]) -> Group:
    episodes = tuple(Episode(NONE, NONE, NONE > 0, None, text, "eos") for text in texts)
    task = Task(name, f"{name}?", "7", meta={"subset": "easy"})
    return Group(Ask(task, len(texts)), episodes, tuple(Verdict(float(bool(p)), p) for p in right))


def test_items_of_solved_problems() -> None:
    texts = ["<think>long</think> 7", "<think>only thoughts", "<think>a</think>\n", "8", "9", "7"]
    made = pointwise_items(
        {"g": [group("p", texts, [True, True, False, False, False, None])]}, np.random.default_rng(0), 5
    )
    assert Counter(i.right for i in made) == {True: 1, False: 1}
    assert made[0].response == texts[0] and made[1].response in "89" and made[0].generator == "g"
    task = made[0].task("t")
    assert task.reference == "True" and task.kind == "critique" and "p?" in task.prompt and texts[0] in task.prompt
    assert made[0].subset == "easy" and "\n7" not in task.prompt.replace(texts[0], "")
    # A problem with fewer judged responses is left out.
    assert pointwise_items({"g": [group("p", texts, [True] * 5 + [None])]}, np.random.default_rng(0), 6) == []


def test_balance_is_of_each_generator() -> None:
    rng = np.random.default_rng(0)
    good = [group("p", [f"good {k}" for k in range(10)], [True] * 8 + [False] * 2)]
    bad = [group("p", [f"bad {k}" for k in range(10)], [True] * 3 + [False] * 7)]
    made = pointwise_items({"good": good, "bad": bad}, rng, 10)
    assert Counter((i.generator, i.right) for i in made) == {
        **{("good", right): 2 for right in (True, False)},
        **{("bad", right): 3 for right in (True, False)},
    }
    # One that accepts everything, and one that goes by style, are at chance with each.
    for said in ([True] * 10, [i.generator == "good" for i in made]):
        assert set(accuracy(made, said).generators.values()) == {0.5}


def test_traces_are_those_that_are_right() -> None:
    tasks = [
        Judged("q", text, right, "g").task(text) for text, right in (("good", True), ("bad", False), ("odd", True))
    ]
    judge = Keywords(
        [("Response:\ngood", r"Yes. \boxed{True}"), ("Response:\nbad", r"\boxed{False}")], r"\boxed{False}"
    )
    made = with_traces(tasks, judge, tries=2)
    assert {t.id: t.solution for t in made} == {"good": r"Yes. \boxed{True}", "bad": r"\boxed{False}"}
    later = Keywords([(r"odd\n(.|\n)*\.  $", r"\boxed{True}")], r"\boxed{False}")
    assert [len(with_traces(tasks[2:], later, tries=n)) for n in (2, 3)] == [0, 1]


def lengths(method: Method, tokens: Sequence[int]) -> list[float]:
    ones = [np.ones(n, np.int64) for n in tokens]
    episodes = tuple(Episode(NONE, x, x > 0, None, "", "eos") for x in ones)
    made = Group(Ask(Task("t", "?"), len(tokens)), episodes, (Verdict.wrong(),) * len(tokens))
    return method.reward(Batch.from_groups([made], torch.float64)).values.tolist()  # type: ignore[operator, union-attr]


def test_lengths_by_hand() -> None:
    found = lengths(libra(), [4000, 8000, 10000, 12000, 16000, 17000])
    assert found == pytest.approx([0, 0, -0.25, -0.5, -1, -1])
    assert lengths(libra(9000, 9000), [9000, 9001]) == pytest.approx([0, -1])
    assert lengths(libra(1, 3), [1, 2, 3]) == pytest.approx([0, -0.5, -1])
    made = catalogue.make("S226")
    assert isinstance(made, Method) and made.objective.kl_weight == 0.0  # type: ignore[union-attr]
    for pair in ((0, 5), (6, 5)):
        with pytest.raises(UsageError, match="lengths"):
            libra(*pair)


def test_its_benchmark_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records as its page lists their fields; a judge that always says True has a half of one right and one wrong."""
    row = {"index": 7, "question": "2+2?", "response": "So 4.", "label": 1, "model": "R1", "source": "AIME"}
    path = tmp_path / "rows.jsonl"
    other = {**row, "index": 8, "response": "5", "label": "0", "model": "QwQ"}
    path.write_text("".join(json.dumps(x) + "\n" for x in (row, other)))
    made = build("tasks", {"name": "libra_bench", "path": str(path)})
    assert made.items == [Judged("2+2?", "So 4.", True, "R1", "AIME"), Judged("2+2?", "5", False, "QwQ", "AIME")]
    assert [(t.id, t.reference, t.kind) for t in made.tasks] == [
        ("libra/7", "True", "critique"),
        ("libra/8", "False", "critique"),
    ]
    assert "Response:\nSo 4.\n" in made[0].question and made.size == 2
    assert accuracy(made.items, [True, True]).mean == 0.5
    asked = []
    monkeypatch.setattr(
        "assay.tasks.files.huggingface.load", lambda *place: asked.append(place) or [{**row, "subset": "hard"}]
    )
    assert libra_bench.LibraBench().items[0].subset == "hard" and asked == [
        ("meituan/Libra-Bench", None, "train", None)
    ]
    for wrong, message in (
        ({"question": "q"}, "has not the fields"),
        ({**row, "label": 2}, "the label is 2"),
        ({**row, "label": [1]}, "the label is"),
    ):
        path.write_text(json.dumps(wrong) + "\n")
        with pytest.raises(UsageError, match=message):
            libra_bench.LibraBench(str(path))
    path.write_text("")
    with pytest.raises(UsageError, match="has no rows"):
        libra_bench.LibraBench(str(path))


def test_accuracy_by_hand() -> None:
    items = [
        Judged("", "", r, g, s) for r, g, s in ((True, "a", "x"), (False, "a", "x"), (True, "b", "x"), (True, "b", "y"))
    ]
    found = accuracy(items, [True, True, None, True])
    assert found.subsets == {"x": pytest.approx(1 / 3), "y": 1.0} and found.generators == {"a": 0.5, "b": 0.5}
    assert found.mean == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="no items"):
        accuracy([], [])


def test_pairs_by_verdicts() -> None:
    found = pairs_of("p", ["a", "b", "c", "d"], [None, False, True, True])
    assert found == {"prompt": "p", "chosen": "c", "rejected": "b"}
    assert pairs_of("p", ["a", "b"], [True, None]) is None and pairs_of("p", ["a", "a"], [True, False]) is None


def test_ranks_by_hand() -> None:
    bench = {"a": 0.5, "b": 0.6, "c": 0.7, "d": 0.8}
    assert agreement(bench, {"a": 0.0, "b": 2.0, "c": 1.0, "d": 3.0}) == pytest.approx(0.8)
    assert agreement(bench, {"d": 0.0, "c": 1.0, "b": 2.0, "a": 3.0}) == pytest.approx(-1)
    assert agreement({"a": 0.5, "b": 0.6, "c": 0.7}, {"a": 1.0, "b": 3.0, "c": 2.0}) == pytest.approx(0.5)
    with pytest.raises(UsageError, match="three or more"):
        agreement({"a": 1, "b": 2}, {"a": 1, "b": 2})


def test_it_trains(tmp_path: Path) -> None:
    rows = [
        {"id": f"{k}", "prompt": f"{k}+1", "response": f"{n}", "correct": n == k + 1, "reference": f"{k + 1}"}
        for k in range(30)
        for n in (k + 1, k + 2)
    ]
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source: dict[str, Any] = {"name": "pointwise_judging", "paths": {"g": str(file)}, "least": 2}
    made = build("tasks", source)
    assert made.size == 60 and Counter(made[k].reference for k in range(60)) == {"True": 30, "False": 30}
    assert made[0].meta["generator"] == "g" and build("tasks", {**source, "paths": str(file)}).size == 60
    for wrong, message in (({"least": 3}, "with 3 or more"), ({"template": "{question}"}, "must show")):
        with pytest.raises(UsageError, match=message):
            build("tasks", {**source, **wrong})
    alphabet = "".join(map(chr, range(32, 127))) + "\n"
    assay.train(
        {
            "model": {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64, "alphabet": alphabet}},
            "tasks": {"source": {**source, "template": "{question}={response}:"}, "eval_size": 2},
            "method": {"name": "S226", "options": {"expected": 2, "most": 4}},
            "rollout": {"prompts": 2, "group": 4, "max_tokens": 4},
            "train": {"steps": 1},
            "evaluate": {"samples": 1},
            "run": {"dir": str(tmp_path / "run"), "report": False, "tensorboard": False},
        },
        quiet=True,
    )
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert any(line["stage"] == "rl" for line in lines)


def test_a_judge_of_style_is_found_out_in_the_lab() -> None:
    each, over = (Setting().run({"balance": b}, 0, Path()) for b in ("each", "all"))
    assert each["accuracy"] == 0.5 and over["accuracy"] > 0.65 and each["honest"] == 0.0 > over["honest"]
