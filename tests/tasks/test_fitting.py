"""Tasks with prompts that are too long are left out, by the model's own tokens and chat template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import running

import assay
from assay.config import load_config
from assay.errors import UsageError
from assay.policies.loading import ModelConfig
from assay.policies.policy import load_policy
from assay.tasks.configured import GIVEN, held_out, task_split
from assay.tasks.fitting import Fits
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream, beside
from assay.types import Message, Task

TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
PLAIN = {"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 24}}
CHAT = {**PLAIN, "template": TURNS, "system": "Add."}


def task(length: int, turns: int = 1) -> Task:
    text = "1" * length
    asked = text if turns == 1 else tuple(Message(role="user", content=text) for _ in range(turns))
    return Task(f"t{length}", asked, "1", solution="1")


@pytest.mark.parametrize("model", [PLAIN, CHAT])
@pytest.mark.parametrize("turns", [1, 3])
def test_it_counts_what_the_model_reads(model: dict[str, Any], turns: int) -> None:
    """At every length around the limit, as the policy itself encodes the prompt."""
    policy = load_policy(load_config({"model": model}).model, 0)
    fits = Fits(ModelConfig.model_validate(model), 60)
    said = [fits(task(n, turns)) for n in range(1, 80)]
    assert said == [len(policy.encode(task(n, turns).prompt)) <= 60 for n in range(1, 80)]
    assert True in said and False in said


def test_what_is_far_too_long_is_not_even_read() -> None:
    fits = Fits(ModelConfig.model_validate(PLAIN), 10)
    assert not fits(task(10**7))


def test_neither_side_has_tasks_that_are_too_long() -> None:
    tasks = [task(n) for n in range(1, 61)]
    config = load_config({"model": PLAIN, "tasks": {"source": GIVEN, "eval_share": 0.3, "max_prompt": 21}})
    stream, found = task_split(config, tasks)
    asked = {t.id for t in stream.all()}
    # A plain prompt begins with a token of its own.
    assert asked | {t.id for t in found} == {t.id for t in tasks[:20]} and not asked & {t.id for t in found}
    assert {t.id for t in stream.next(200)} == asked
    assert {t.id for t in beside(stream, Listed([task(5, 2), *tasks])).all()} == asked | {"t5"}
    apart = load_config({"model": PLAIN, "tasks": {"source": GIVEN, "eval_source": GIVEN, "max_prompt": 21}})
    assert [t.id for t in task_split(apart, tasks[:10], tasks[10:])[1]] == [t.id for t in tasks[10:20]]


def test_evaluation_leaves_them_out_too(tmp_path: Path) -> None:
    file = tmp_path / "asked.csv"
    file.write_text("prompt,answer\n" + "".join(f"{'1' * n},1\n" for n in range(1, 41)))
    tasks = {"source": {"name": "file", "path": str(file)}, "max_prompt": 11}
    for more in ({"eval_share": 1.0}, {"eval_source": str(file)}):
        found = held_out(load_config({"model": PLAIN, "tasks": {**tasks, **more}}))
        assert [len(t.question) for t in found] == list(range(1, 11))


@pytest.mark.parametrize(
    ("tasks", "most", "words"),
    [
        ([task(n) for n in range(30, 60)], 20, "max_prompt 20 leaves no held-out task; raise it"),
        ([task(1), *[task(n) for n in range(30, 60)]], 20, "leaves no (held-out task|task to train on); raise it"),
    ],
)
def test_what_leaves_nothing_is_said(tasks: list[Task], most: int, words: str) -> None:
    config = load_config({"model": PLAIN, "tasks": {"source": GIVEN, "max_prompt": most}})
    with pytest.raises(UsageError, match=words):
        task_split(config, tasks)


def test_a_stream_in_which_nothing_fits_says_so() -> None:
    stream = TrainStream(Listed([task(3)]))
    stream.fits = lambda each: False
    with pytest.raises(Exception, match=r"or too long; .* raise tasks\.max_prompt"):
        stream.next(1)


def test_a_run_on_tasks_of_which_some_do_not_fit(tmp_path: Path, capfd: Any) -> None:
    """Without it the run ends before it begins; with it the rest is trained on."""
    tasks = [task(n) for n in [*range(1, 13), 40, 50]]
    recipe = running.recipe(tmp_path / "run")
    del recipe["tasks"]
    with pytest.raises(UsageError, match=r"prompt of \d+ tokens does not fit .* leave it out with tasks\.max_prompt"):
        assay.train(recipe, tasks=tasks, quiet=True)
    assay.train(recipe, tasks=tasks, settings={"tasks.max_prompt": 16})
    assert "left out: 2 of 14 tasks, whose prompts have over 16 tokens (tasks.max_prompt)" in capfd.readouterr().err
