"""Held-out tasks from sources of their own: what names them, what training leaves out, and what is said of each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import assay
from assay.config import load_config
from assay.errors import UsageError
from assay.report.card import model_card
from assay.report.html import write_report
from assay.tasks.configured import GIVEN, held_out, held_out_of, task_split
from assay.tasks.eval_sources import eval_sources, specs
from assay.tasks.files.benchmark import expanded
from assay.tasks.listed import Listed
from assay.tasks.split import measured, without
from assay.types import Task


def sums(low: int, high: int) -> list[Task]:
    return [Task(f"sum/{n}", f"{n} + 1 =", str(n + 1), kind="exact", solution=str(n + 1)) for n in range(low, high)]


class Endless:
    """Two tasks in turn, for ever; and others after the first ten thousand."""

    size = None

    def __getitem__(self, index: int) -> Task:
        return sums(0, 2)[index % 2]


def write(path: Path, tasks: list[Task], prompt: str = "question", answer: str = "answer") -> str:
    path.write_text("".join(json.dumps({prompt: t.prompt, answer: t.reference}) + "\n" for t in tasks))
    return str(path)


FILE = {"name": "file", "path": "train.jsonl", "prompt": "q", "reference": "a", "kind": "number"}


@pytest.mark.parametrize(
    ("said", "source", "expected"),
    [
        ("test.jsonl", FILE, {"test": {**FILE, "path": "test.jsonl"}}),
        ({"path": "test.jsonl"}, FILE, {"test": {**FILE, "path": "test.jsonl"}}),
        ({"split": "test"}, {"name": "huggingface", "path": "a/b", "split": "train"},
         {"huggingface": {"name": "huggingface", "path": "a/b", "split": "test"}}),
        ({"digits": 3}, "arithmetic", {"arithmetic": {"name": "arithmetic", "digits": 3}}),
        ("countdown", FILE, {"countdown": "countdown"}),
        ("math-500", FILE, {"math-500": {"name": "benchmark", "which": "math-500"}}),
        ({"name": "benchmark", "which": "gsm8k", "path": "x"}, FILE,
         {"gsm8k": {"name": "benchmark", "which": "gsm8k", "path": "x"}}),
        (["a/test.jsonl", "b/test.jsonl", {"digits": 3, "name": "arithmetic", "as": "harder"}], FILE,
         {"test.1": {**FILE, "path": "a/test.jsonl"}, "test.2": {**FILE, "path": "b/test.jsonl"},
          "harder": {"name": "arithmetic", "digits": 3}}),
    ],
)  # fmt: skip
def test_what_stands_for_a_source(said, source, expected):
    assert specs(said, source) == expected
    config = load_config({"tasks": {"source": source, "eval_source": said}})
    several = [{"name": s, "as": k} if isinstance(s, str) else {**s, "as": k} for k, s in expected.items()]
    assert held_out_of(config) == (several if len(several) > 1 else next(iter(expected.values())))


def test_a_file_beside_tasks_of_another_kind_is_read_by_usual_names(tmp_path):
    path = write(tmp_path / "test.jsonl", sums(0, 5))
    config = load_config({"tasks": {"source": "arithmetic", "eval_source": path}})
    assert [t.prompt for t in held_out(config)] == [t.prompt for t in sums(0, 5)]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ([], "an empty list; leave it out"),
        (["countdown", "countdown"], "names countdown twice, and its tasks would count twice"),
        ({"split": "test"}, "has no name, and tasks.source is no part"),
        ("countdwn", "tasks.eval_source 'countdwn': no tasks part is called 'countdwn'; did you mean 'countdown'"),
        ("nowhere.jsonl", "tasks.eval_source 'nowhere': .*nowhere.jsonl"),
    ],
)
def test_what_stands_for_none(said, message):
    with pytest.raises(UsageError, match=message):
        eval_sources(said, [] if isinstance(said, dict) else "arithmetic")


def test_training_has_all_but_what_stands_in_both():
    stream = without(Listed(sums(0, 20)), sums(15, 40), seed=3)
    assert {t.prompt for t in stream.next(60)} == {t.prompt for t in sums(0, 15)} == {t.prompt for t in stream.all()}
    # The same answer to another question, and the same question with another answer, are other tasks.
    other = Task("x", "15 + 1 =", "17")
    assert without(Listed([other]), sums(15, 40)).next(1) == [other]
    for source, message in ((Listed([]), "empty"), (Listed(sums(0, 3)), "3 tasks all .* held out; train on others")):
        with pytest.raises(UsageError, match=message):
            without(source, sums(0, 9))


def test_a_run_is_not_continued_with_another_test_set():
    one, two, again = (without(Listed(sums(0, 9)), held) for held in (sums(20, 22), sums(20, 23), sums(20, 22)))
    again.load_state_dict(one.state_dict())
    with pytest.raises(UsageError, match="of other tasks"):
        two.load_state_dict(one.state_dict())


def test_what_is_measured_of_a_source():
    tasks = sums(0, 50)
    assert measured(Listed([*tasks, *tasks]), None) == tasks
    assert measured(Listed(tasks), 80) == tasks
    some = measured(Listed(tasks), 10, key=1)
    assert len(some) == 10 and some == [t for t in tasks if t in some]
    assert {t.id for t in some} == {t.id for t in measured(Listed(tasks[::-1]), 10, key=1)}
    assert some != measured(Listed(tasks), 10, key=2)
    assert measured(Endless(), 1) == sums(0, 1)
    assert measured(Endless(), None) == sums(0, 2)
    with pytest.raises(UsageError, match="source of held-out tasks is empty"):
        measured(Listed([]), None)


def test_an_unbiased_sample_of_each_source_and_nothing_of_them_is_trained_on(tmp_path):
    sources = ["one.jsonl", {"name": "arithmetic", "digits": 1, "seed": 5, "as": "digits"}]
    write(tmp_path / "one.jsonl", sums(10, 60))
    tasks = {"name": "file", "path": write(tmp_path / "train.jsonl", sums(0, 60)), "prompt": "question"}
    sources[0] = str(tmp_path / "one.jsonl")
    stream, found = task_split(load_config({"tasks": {"source": tasks, "eval_source": sources, "eval_size": 8}}))
    assert [t.meta["source"] for t in found] == ["one"] * 8 + ["digits"] * 8
    assert all(t.id.startswith(f"{t.meta['source']}:") for t in found)
    assert len({t.id for t in found}) == 16
    # All of a file is left out, not only what is measured.
    assert {t.prompt for t in stream.all()} == {t.prompt for t in sums(0, 10)}


def test_a_size_that_no_source_has(tmp_path):
    paths = [write(tmp_path / f"{n}.jsonl", sums(0, n)) for n in (3, 5)]
    config = {"source": "arithmetic", "eval_source": paths}
    assert len(held_out(load_config({"tasks": {**config, "eval_size": 4}}))) == 3 + 4
    with pytest.raises(UsageError, match="eval_size 6 of a source of 5 tasks is too large"):
        held_out(load_config({"tasks": {**config, "eval_size": 6}}))


def test_tasks_given_as_objects():
    config = load_config({"tasks": {"source": GIVEN, "eval_source": GIVEN}})
    stream, found = task_split(config, sums(0, 9), sums(5, 12))
    assert found == sums(5, 12) and {t.id for t in stream.all()} == {t.id for t in sums(0, 5)}
    with pytest.raises(UsageError, match="the eval_tasks of this run came as a Python object"):
        task_split(config, sums(0, 9))
    with pytest.raises(UsageError, match=r"stands in its config\.toml; leave out eval_tasks"):
        task_split(load_config({"tasks": {"source": GIVEN, "eval_source": "countdown"}}), sums(0, 9), sums(5, 12))


RUN = {
    "model": {"source": "nano", "nano": {"hidden": 32, "layers": 1, "heads": 2}},
    "warmup": {"steps": 2, "batch": 4},
    "rollout": {"prompts": 2, "group": 2, "max_tokens": 4},
    "train": {"steps": 2},
    "evaluate": {"samples": 1},
}


def test_a_run_on_one_task_measured_on_two_sources(tmp_path, capsys):
    """One example to learn from, as a list; a file and an endless source to be measured on, told one by one."""
    path = write(tmp_path / "test.jsonl", sums(0, 6))
    sources = [path, {"name": "arithmetic", "digits": 1, "as": "digits"}]
    settings = {"tasks.eval_size": 4, "run.dir": str(tmp_path / "run")}
    result = assay.train(RUN, tasks=sums(7, 8), eval_tasks=sources, settings=settings)
    said = "".join(capsys.readouterr())
    assert "held out to measure progress: 8 different tasks of their own (tasks.eval_source)" in said
    assert "after: held-out pass@1 " in said and "\nafter, digits: 0." in said
    numbers = result.after.metrics()
    assert numbers["tasks"] == 8 and numbers["test/pass@1/low"] <= numbers["test/pass@1"] <= 1
    parts = result.after.by_source()
    assert {k: len(e.by_task()) for k, e in parts.items()} == {"test": 4, "digits": 4}
    assert numbers["pass@1"] == pytest.approx((numbers["test/pass@1"] + numbers["digits/pass@1"]) / 2)
    page = write_report(result.folder).read_text()
    assert "pass@1 of test" in page and "pass@1 of digits" in page
    card = model_card(result.folder, "me/sums")
    assert card.count("type: pass@1") == 2 and "| after, digits | 2 | 4 | 1 |" in card
    resumed = assay.train(resume=result.folder, tasks=sums(7, 8), overrides=["train.steps=3"], quiet=True)
    assert resumed.after.by_source().keys() == {"test", "digits"}


def test_what_was_found_in_the_test_sets_file_is_said(tmp_path, capfd):
    """A column that is not taken for the answer would leave every verdict an abstention."""
    path = write(tmp_path / "test.jsonl", sums(0, 6), answer="wanted")
    settings = {"tasks.eval_source": path, "run.dir": str(tmp_path / "run")}
    train = {"name": "file", "path": write(tmp_path / "train.jsonl", sums(6, 9)), "prompt": "auto", "reference": "auto",
             "solution": "auto", "kind": "auto"}  # fmt: skip
    assay.train(RUN, tasks=train, settings=settings)
    said = capfd.readouterr().err
    assert f"{path}: 6 tasks, asked from 'question', judged by the reward alone" in said
    assert "none of its fields is taken for the answer (question, wanted): reference=FIELD names one" in said


def test_a_file_is_measured_on_where_a_benchmark_can_be(tmp_path):
    made = expanded(["my test.jsonl", "seed=3"])
    assert made == ['tasks.eval_source="my test.jsonl"', "tasks.eval_size=auto", "seed=3"]
    assert load_config({}, made).tasks.eval_source == "my test.jsonl"
    with pytest.raises(UsageError, match=r"to measure on test\.jsonl: tasks\.eval_source=test\.jsonl"):
        load_config({}, ["test.jsonl"])
    source = load_config({"tasks": write(tmp_path / "some.csv", sums(0, 3))}).tasks.source
    assert isinstance(source, dict) and (source["name"], source["prompt"]) == ("file", "auto")


class Dataset:
    """As a data set of the library ``datasets`` is read: neither a list, nor a source."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


@pytest.mark.parametrize("kind", [list, Dataset])
def test_tables_given_from_python_are_read_as_a_files_rows(kind):
    rows = [{"problem": f"{n} + 1 =", "answer": n + 1} for n in range(9)]
    config = load_config({"tasks": {"source": GIVEN, "eval_source": GIVEN}})
    stream, found = task_split(config, kind(rows[:6]), kind(rows[5:]))
    assert (found[0].id, found[0].prompt, found[0].reference, found[0].kind) == ("tasks/0", "5 + 1 =", 6, "math")
    assert {t.prompt for t in stream.all()} == {row["problem"] for row in rows[:5]}
    assert stream.described[0] == "tasks: 6 tasks, asked from 'problem', answered by 'answer', judged as math"
    with pytest.raises(UsageError, match=r"element 1 of tasks .*'problem'"):
        task_split(config, kind([rows[0], {"answer": 1}]), kind(rows))
    with pytest.raises(UsageError, match=r"element 1 of tasks is a dict; give assay.Task.*or tables alone"):
        task_split(config, [sums(0, 1)[0], rows[0]], kind(rows))
