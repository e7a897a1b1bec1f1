"""Training a verifier on a solver's rollouts: what its tasks are, what it is rewarded for, that a recipe trains it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import assay
from assay.config import load_config
from assay.credit.grpo import GRPO
from assay.engines.base import Request
from assay.errors import UsageError
from assay.lab.settings.reasoning._words import Words
from assay.method import make_method
from assay.records.sample import Sample, write_samples
from assay.registry import build
from assay.tasks.solutions.critique_data import balanced
from assay.tasks.solutions.critiques import Critiques, _source_of, judged_groups, read_critiques, with_solutions
from assay.types import Episode, Task
from assay.verify.critique import TEMPLATE
from assay.verify.kind import KindVerifier
from tests import running


class Critic(Words):
    """Sees the hint, and writes what a function makes of it and of the number of the try."""

    def __init__(self, write: Any):
        super().__init__()
        self.write, self.asked = write, 0

    def encode_response(self, text: str, end: bool = True) -> np.ndarray:
        return self.encode(text)

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += sum(r.n for r in requests)
        return [[self.episode(r, [self.write(str(r.prompt), j)]) for j in range(r.n)] for r in requests]


def rows(questions: int) -> list[dict[str, Any]]:
    """Questions whose right answers are even digits, repeated; each has one right and two different wrong solutions."""
    out = []
    for q in range(questions):
        for answer in (2 * q % 10, (2 * q + 1) % 10, (2 * q + 3) % 10, (2 * q + 1) % 10):
            out.append({"id": f"q{q}", "prompt": f"{q}?", "response": 6 * str(answer), "correct": answer % 2 == 0})
    return out


def jsonl(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def honest(prompt: str, attempt: int) -> str:
    """The first try errs, the second tells of the hint, the third is as it should be."""
    solution = prompt.partition("Proposed solution:\n")[2][0]
    right = int(solution) % 2 == 0
    if attempt == 0:
        return rf"\boxed{{{not right}}}"
    return (r"as the given answer says " if attempt == 1 else "") + rf"\boxed{{{right}}}"


@pytest.mark.parametrize(
    ("response", "score", "readable"),
    [
        (r"It adds up. \boxed{True}", 1.0, 1.0),
        (r"\boxed{\text{true}}", 1.0, 1.0),
        (r"\boxed{False} no, wait: \boxed{True}", 1.0, 1.0),
        (r"\boxed{False}", 0.0, 1.0),
        ("True", 0.0, 0.0),
        (r"\boxed{7}", 0.0, 0.0),
        (r"\boxed{Tru", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_the_reward_is_for_the_boxed_verdict_alone(response: str, score: float, readable: float) -> None:
    verdict = KindVerifier()(Task("t", "q", "True", "critique"), response)
    assert (verdict.score, verdict.passed, verdict.parts["readable"]) == (score, score == 1, readable)
    other = KindVerifier()(Task("t", "q", "False", "critique"), response)
    assert other.score == readable - score


def test_a_task_without_a_label_is_no_wrong_answer() -> None:
    assert build("verify", "critique")(Task("t", "q", "7"), r"\boxed{True}").passed is None


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    assert KindVerifier()(Task("t", "q", "False", "critique"), text).passed is not None


def test_tasks_of_a_file_of_samples(tmp_path: Path) -> None:
    source = Critiques(jsonl(tmp_path / "samples.jsonl", rows(6)))
    # One right solution of each question, and as many of the twelve wrong ones.
    labels = [source[i].reference for i in range(source.size)]
    assert sorted(labels) == ["False"] * 6 + ["True"] * 6
    for i in range(source.size):
        task = source[i]
        response, q = task.meta["response"], int(task.meta["question"][:-1])
        assert task.kind == "critique" and (int(response) % 2 == 0) == (task.reference == "True")
        assert task.prompt == TEMPLATE.format(question=f"{q}?", response=response)
        # The reference is not in the file: it is what the right solution answers.
        assert task.meta["answer"] == 6 * str(2 * q % 10)
    again = Critiques(tmp_path / "samples.jsonl")
    assert [again[i] for i in range(12)] == [source[i] for i in range(12)]
    other = Critiques(tmp_path / "samples.jsonl", seed=1)
    assert [other[i] for i in range(12)] != [source[i] for i in range(12)]
    short = Critiques(tmp_path / "samples.jsonl", template="{question}{response}:")
    assert {short[i].prompt for i in range(12)} >= {f"{q}?{6 * str(2 * q % 10)}:" for q in range(6)}
    # One in four of each question's samples is right.
    assert Critiques(tmp_path / "samples.jsonl", most=0.25).size == 12
    with pytest.raises(UsageError, match="none of its 6 questions"):
        Critiques(tmp_path / "samples.jsonl", most=0.2)
    with pytest.raises(UsageError, match="template"):
        Critiques(tmp_path / "samples.jsonl", template="{question}")


def test_an_abstention_in_a_store_is_not_a_wrong_solution(tmp_path: Path) -> None:
    verdicts: list[bool | None] = [True, False, None]
    samples = [Sample("a", "1?", str(i), float(p is True), p, "", 1, "eos") for i, p in enumerate(verdicts)]
    (tmp_path / "evaluation.json").write_text("{}")
    write_samples(tmp_path / "samples" / "part-000000.parquet", samples[:2], "x", 0)
    write_samples(tmp_path / "samples" / "part-000001.parquet", samples[2:], "x", 0)
    [group] = judged_groups(tmp_path, {}, None)
    assert [v.passed for v in group.verdicts] == verdicts
    source = Critiques(tmp_path)
    assert {source[i].meta["response"] for i in range(source.size)} == {"0", "1"}


def test_tasks_of_a_runs_rollouts(tmp_path: Path) -> None:
    """The rollouts that training stores, pooled over its steps."""
    folder = running.run(tmp_path / "run", method={"reward": "verdict"}, train={"steps": 2}, evaluate={"samples": 1})
    groups = judged_groups(folder, {}, None)
    stored = [r for g in groups for r in zip(g.episodes, g.verdicts, strict=True)]
    assert len(stored) == 2 * 4 * 3
    assert all(g.task.question.endswith("=") for g in groups)
    with pytest.raises(UsageError, match="neither the rollouts"):
        Critiques(tmp_path)


def test_critiques_are_made_once_and_kept(tmp_path: Path) -> None:
    path, keep = jsonl(tmp_path / "samples.jsonl", rows(5)), tmp_path / "new" / "critiques.jsonl"
    critic = Critic(honest)
    made = Critiques(path, critic=critic, tries=3, keep=keep)
    assert critic.asked == 30 and made.size == 10
    for task in made.tasks:
        assert task.solution == rf"\boxed{{{task.reference}}}"
        assert KindVerifier()(task, task.solution).passed
    again = Critiques(path, critic=critic, tries=3, keep=keep)
    assert critic.asked == 30
    assert [(t.id, t.prompt, t.reference, t.solution, t.kind) for t in again.tasks] == [
        (t.id, t.prompt, t.reference, t.solution, t.kind) for t in made.tasks
    ]
    assert read_critiques(keep)[0].meta["answer"] == made.tasks[0].meta["answer"]
    # A critic that only ever sees what is right leaves one label, of which nothing can be learned.
    with pytest.raises(UsageError, match="better critic"):
        Critiques(path, critic=Critic(lambda prompt, j: r"\boxed{True}"), keep=tmp_path / "none.jsonl")
    for wrong in ({"critic": critic}, {"keep": tmp_path / "x.jsonl"}):
        with pytest.raises(UsageError, match="together"):
            Critiques(path, **wrong)


class Shown(Critic):
    """A critic that keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(honest)
        self.prompts: list[str] = []

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.prompts += [str(r.prompt) for r in requests]
        return super().generate(requests)


def test_the_critic_is_shown_worked_solutions_of_the_tasks_that_were_solved(tmp_path: Path) -> None:
    """By the id of the task: those of four of the five are known; or none at all."""
    path = jsonl(tmp_path / "samples.jsonl", rows(5))
    worked = [{"id": f"q{q}", "prompt": "?", "reference": str(2 * q % 10), "solution": f"way {q}"} for q in range(4)]
    solved = {
        "name": "file",
        "path": str(jsonl(tmp_path / "tasks.jsonl", worked)),
        "id": "id",
        "reference": "reference",
        "solution": "solution",
    }
    critic = Shown()
    made = Critiques(path, critic=critic, solved=solved, tries=3, keep=tmp_path / "kept.jsonl")
    assert made.size == 8 + 2 and len(critic.prompts) == 10
    for prompt in critic.prompts:
        q = int(prompt.partition("Question:\n")[2].partition("?")[0])
        assert (f"either:\nway {q}\n" in prompt) == (q < 4)
        # Of the file's answer where there is one; else what the right solution says, six times the digit.
        assert f"must not mention: {str(2 * q % 10) * (1 if q < 4 else 6)}\n" in prompt
    assert not any("way" in t.prompt for t in made.tasks)
    Critiques(path, critic=(plain := Shown()), solved=False, tries=3, keep=tmp_path / "plain.jsonl")
    assert not any("way" in prompt for prompt in plain.prompts)
    with pytest.raises(UsageError, match="has no end"):
        Critiques(path, critic=critic, solved="arithmetic", keep=tmp_path / "endless.jsonl")


def test_a_runs_own_tasks_have_the_worked_solutions(tmp_path: Path) -> None:
    """Without being told where; of tasks without an end, or that are not there again, answers alone are shown."""
    tasks = [
        {"prompt": f"{a}+{b}=", "reference": str(a + b), "solution": f"so {a + b}"} for a in (1, 2) for b in (1, 2, 3)
    ]
    source = {
        "name": "file",
        "path": str(jsonl(tmp_path / "tasks.jsonl", tasks)),
        "reference": "reference",
        "solution": "solution",
    }
    folder = running.run(
        tmp_path / "run",
        tasks={"source": source, "eval_size": "auto"},
        method={"reward": "verdict"},
        train={"steps": 1},
        evaluate={"every": 0},
    )
    stored = judged_groups(folder, {}, None)
    found = with_solutions(stored, _source_of(folder))
    assert [g.task.question for g in found] == [g.task.question for g in stored]
    for group in found:
        assert group.task.solution == f"so {group.task.reference}" and group.task.reference == str(
            sum(map(int, group.task.question.rstrip("=").split("+")))
        )
    for other in ({"source": "arithmetic"}, {"source": "given"}):
        (tmp_path / "config.toml").write_text(f"tasks = {json.dumps(other).replace(':', ' =')}")
        assert _source_of(tmp_path) is None and with_solutions(stored, None) == stored
    assert _source_of(tmp_path / "tasks.jsonl") is None


def test_labels_are_balanced_by_lot() -> None:
    tasks = [Task(str(i), "", str(i % 4 == 0)) for i in range(20)]
    chosen = [balanced(tasks, np.random.default_rng(seed)) for seed in range(20)]
    assert all(sum(t.reference == "True" for t in some) == 5 and len(some) == 10 for some in chosen)
    assert len({frozenset(t.id for t in some) for some in chosen}) > 1


@pytest.mark.slow
def test_a_recipe_trains_the_verifier(tmp_path: Path, one_thread: None) -> None:
    """From critiques of which two in five come to the wrong verdict, to verdicts that are right nearly always."""
    samples, keep, short = (
        jsonl(tmp_path / "samples.jsonl", rows(60)),
        tmp_path / "critiques.jsonl",
        "{question}{response}",
    )
    Critiques(samples, template=short, critic=Critic(honest), tries=3, keep=keep)
    kept, rng = [json.loads(line) for line in keep.read_text().splitlines()], np.random.default_rng(0)
    jsonl(keep, [r | {"critique": rf"\boxed{{{(r['label'] == 'True') ^ (rng.random() < 0.4)}}}"} for r in kept])
    run = tmp_path / "run"
    alphabet = "0123456789?\\boxed{}TrueFals"
    assay.train(
        {
            "model": {"nano": {"hidden": 32, "layers": 1, "heads": 4, "context": 32, "alphabet": alphabet}},
            "tasks": {"eval_size": 10, "eval_share": 0.2},
            "warmup": {"steps": 100, "batch": 32, "lr": 1e-2},
            "method": {"credit": {"name": "grpo", "normalise": False}},
            "rollout": {"prompts": 12, "group": 8, "max_tokens": 14},
            "train": {"steps": 20, "lr": 2e-3},
            "evaluate": {"samples": 1},
            "run": {"dir": str(run), "report": False, "tensorboard": False},
        },
        overrides=["tasks.source.name=critiques", f"tasks.source.path={samples}", f"tasks.source.keep={keep}"],
        quiet=True,
    )
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rewards = [r["reward/mean"] for r in lines if "reward/mean" in r]
    assert len(rewards) == 20
    assert 0.4 < np.mean(rewards[:2]) < 0.8 and np.mean(rewards[-4:]) > 0.88, rewards


def test_the_recipe_names_parts_that_are_there(tmp_path: Path) -> None:
    """With samples of one's own and a critic that is here, in place of a solver's run and an endpoint."""
    recipe = Path(__file__).parents[2] / "assay/recipes/mirror_critique.toml"
    path = jsonl(tmp_path / "samples.jsonl", rows(4))
    config = load_config(recipe, [f"tasks.source.path={path}", f"tasks.source.keep={tmp_path / 'critiques.jsonl'}"])
    assert isinstance(config.tasks.source, dict)
    source = build("tasks", config.tasks.source | {"critic": Critic(honest)})
    assert source.size == 8 and all(source[i].solution for i in range(8))
    assert make_method(config.method.name, credit=config.method.credit).credit == GRPO(normalise=False)
