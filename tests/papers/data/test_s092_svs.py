"""SvS: for whom problems are written, what is known of them, what writing one earns, and what is learned from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run, tables, weights
from scripted import Scripted

from assay import catalogue
from assay.batch import Batch
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.data.s092_svs import KIND, TEMPLATE, Variational, WithWriters
from assay.registry import build
from assay.types import Ask, Group, Task, Verdict
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")


def verifier(task: Task, response: str) -> Verdict:
    return Verdict.abstain("?") if "?" in response else Verdict(float("4" in response), "4" in response)


def made(**options: Any) -> Variational:
    catalogue.find("S092")
    rollout = build(
        "rollout",
        {"name": "variational", **options},
        sampling=Sampling(64),
        judge=partial(judge_groups, verifier),
    )
    assert isinstance(rollout, Variational)
    return rollout


def group(right: int, of: int = 8, name: str = "t") -> Group:
    texts = [f"so 4 ({i})" if i < right else "5" for i in range(of)]
    engine = Scripted((text, "eos") for text in texts)
    plain = build("rollout", "single_turn", sampling=Sampling(16))
    [found] = plain.collect([Ask(Task(name, f"2+2={name}", "4"), of)], engine, np.random.default_rng(0))
    return judge_groups(verifier, [found])[0]


def derived(*groups: Group, **options: Any) -> list[Ask]:
    return made(**options).derive(groups, Scripted(), np.random.default_rng(0))


def test_who_is_asked_to_write() -> None:
    """Of 0 to 8 right answers of 8, from 1 to 4; two problems with 3 and 6 right give three writers."""
    assert [len(derived(group(right))) for right in range(9)] == [0, 1, 2, 3, 4, 0, 0, 0, 0]
    asked = derived(group(3, name="a"), group(6, name="b"))
    assert [(a.task.id, a.n) for a in asked] == [("a/write-0", 8), ("a/write-1", 8), ("a/write-2", 8)]
    assert [len(derived(group(right), solved=(0.6, 0.9))) for right in (4, 5, 7, 8)] == [0, 5, 7, 0]
    assert len(derived(group(0, name="a"), group(3, name="b"))) == 3, "the next problem is looked at all the same"
    # What could not be judged does not count: 2 of 3.
    one = group(2, 4)
    unsure = one.judged([*one.verdicts[:3], Verdict.abstain("?")])
    assert derived(unsure) == [] and len(derived(one)) == 2


def test_the_writer_sees_the_response_alone() -> None:
    [ask] = derived(group(1))
    assert ask.task.prompt == TEMPLATE.format(response="so 4 (0)") and "2+2" not in str(ask.task.prompt)
    assert ask.task.kind == KIND and ask.task.parent == "t"
    chat = Task("t", ({"role": "system", "content": "s"}, {"role": "user", "content": "2+2="}), "4")
    [ask] = derived(Group(Ask(chat, 8), group(1).episodes, group(1).verdicts))
    assert [m["content"] for m in ask.task.prompt] == ["s", TEMPLATE.format(response="so 4 (0)")]  # type: ignore[index]


# One problem, four answers of which one is right; two are written: one is solved once in two, the other cannot be read.
STEP = ["4", "5", "6", "7", "```text\nthe half of 8?\n```", "half of 8", "4", "5"]


def step(texts: list[str], **options: Any) -> tuple[list[Group], Scripted, Variational]:
    engine, rollout = Scripted((text, "eos") for text in texts), made(n=2, **options)
    task = Task("t", "2+2=", "4", "exact", solution="4", hints=("h",), meta={"level": 3})
    return rollout.collect([Ask(task, 4)], engine, np.random.default_rng(0)), engine, rollout


def test_the_answer_stays_what_it_was() -> None:
    groups, engine, _ = step(STEP)
    answers = groups[2].task
    assert (answers.prompt, answers.reference, answers.kind, answers.parent) == ("the half of 8?", "4", "exact", "t")
    assert (answers.solution, answers.hints, answers.id) == (None, (), "t/write-0/0")
    assert [r.n for r in engine.asked] == [4, 2, 2]
    chat = Task("t", ({"role": "user", "content": "2+2="}, {"role": "user", "content": "?"}), "4")
    writing = Group(Ask(Task("w", "", chat, KIND), 1), groups[1].episodes[:1])
    posed = made().pose(writing, groups[1].episodes[0], 0)
    assert isinstance(posed, Task) and [m["content"] for m in posed.prompt] == ["2+2=", "the half of 8?"]  # type: ignore[index]


def test_the_reward_of_a_writer() -> None:
    rollout = made()
    scores = [rollout.worth(right / 8).score for right in range(9)]
    assert scores == [0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert rollout.worth(0.75).feedback == "too easy" and rollout.worth(0.0).feedback.startswith("hardly")
    groups, _, rollout = step(STEP)
    assert [v.score for v in groups[1].verdicts] == [1.0, 0.0]
    assert groups[1].verdicts[0].parts == {"format": 1.0, "accuracy": 0.5}
    assert groups[1].verdicts[1].parts == {"format": 0.0}
    assert rollout.metrics()["derived/left_out"] == 0
    assert rollout.metrics()["written/read"] == 0.5 and rollout.metrics()["written/accepted"] == 0.5


def test_three_kinds_of_groups() -> None:
    groups, _, _ = step(STEP)
    batch = Batch.from_groups(groups)
    assert batch.group.tolist() == [0] * 4 + [1] * 2 + [2] * 2
    assert [g.derived for g in groups] == [False, True, True]
    assert make_method("S092").credit.summary["baseline"] == "group mean"


def test_what_is_learned_from() -> None:
    """Of 8 answers 1 to 7 right; written problems likewise; writers from one success on, all of them too."""
    some = [group(right, name=str(right)) for right in (0, 1, 7, 8)]
    task = Task("w", "", some[0].task, KIND, parent="t")
    writers = [Group(Ask(task, 8), g.episodes, g.verdicts) for g in some]
    batch = Batch.from_groups([*some, *writers])
    weights = WithWriters()(batch).reshape(8, 8)
    assert weights[:, 0].tolist() == [0, 1, 1, 0, 0, 1, 1, 1] and bool((weights == weights[:, :1]).all())
    batch.valid = torch.tensor([v.passed is False for v in batch.verdicts])
    assert WithWriters()(batch).reshape(8, 8)[:, 0].tolist() == [0] * 8


def test_with_nothing_to_write_from_it_is_grpo() -> None:
    groups, engine, rollout = step(["4", "4", "4", "5"])
    assert len(groups) == 1 and len(engine.asked) == 1 and rollout.metrics()["derived/asked"] == 0
    assert rollout.metrics()["written/read"] == rollout.metrics()["written/accepted"] == 0
    half, _, _ = step(["4", "so 4", "6", "7", *"wxyz"], share=0.5)
    assert [g.derived for g in half] == [False, True], "of two writers one is learned from"
    kept, _, _ = step([*STEP[:4], "x", "y"], share=0.4)
    assert [g.derived for g in kept] == [False]  # one writer's group, 0.4 of it none


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    letters = f"{Path(__file__)}:even"
    return run(
        tmp_path_factory.mktemp("svs") / "run",
        warmup={"steps": 0},
        method={"name": "S092", "reward": "verdict", "options": {"template": "{response}+", "form": "whole", "n": 3}},
        tasks={"source": {"name": "arithmetic", "digits": 1}, "eval_size": 4, "verify": letters},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        rollout={"prompts": 4, "group": 4, "max_tokens": 3, "max_rows": 64},
        evaluate={"every": 0},
        run={"rollouts_every": 1},
    )


def even(task: Task, response: str) -> bool:
    """Something that an untrained policy does now and then."""
    return sum(map(ord, response)) % 4 == 0 and bool(response.strip())


def test_one_update_of_all_three(folder: Path) -> None:
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(row["grad_norm"] > 0 for row in rows)
    first = next(iter(tables(folder, "rollouts").values()))
    written = [row for row in first if row["parent"] is not None]
    writers = [row for row in written if row["task_id"].rpartition("/")[2].startswith("write-")]
    assert len(first) - len(written) == 16 and len(written) - len(writers) >= 3 and len(writers) % 3 == 0
    # A written problem is what the writer said, word for word, and is a group of its own.
    said = {row["response"].strip() for row in writers}
    answers = [row for row in written if row not in writers]
    assert {row["prompt"] for row in answers} <= said
    assert len({row["group"] for row in answers}) == len(answers) // 3 == rows[0]["derived/asked"] - len(writers) // 3
    assert all(bool(w.isfinite().all()) for w in weights(folder).values() if w.is_floating_point())


@pytest.mark.parametrize(
    "bad",
    [
        {"solved": (0.0, 0.5)},
        {"solved": (0.5, 1.0)},
        {"window": (0.5, 0.2)},
        {"share": 0.0},
        {"share": 1.5},
        {"template": "{question}"},
    ],
)
def test_options_that_cannot_be(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="variational"):
        made(**bad)


def test_the_papers_numbers() -> None:
    spec = make_method("S092").rollout
    assert (spec["solved"], spec["window"]) == ((0.125, 0.5), (0.125, 0.625)) and (spec["share"], spec["n"]) == (
        1,
        None,
    )
    assert made(solved=(0.25, 0.25)).solved == (0.25, 0.25), "a range may be a point"


def test_variations_are_learned_from() -> None:
    found = learned("S092", "svs", steps=4, lr=3.0)
    plain = learned("S092", "grpo", steps=4, lr=3.0)
    assert plain["rollouts"] == 4 * 32 < found["rollouts"]
    assert found["solved/start"] == plain["solved/start"] and found["solved"] > found["solved/start"]


def test_what_is_written_may_be_longer_than_what_is_asked() -> None:
    _, engine, _ = step(STEP, max_tokens=200)
    assert [r.sampling.max_tokens for r in engine.asked] == [64, 200, 200]
