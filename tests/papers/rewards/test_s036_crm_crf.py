"""S036: the bonus by hand, what it cannot do to wrong answers, and scorers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from running import metrics, run
from tasks.making.told import Told

import assay
from assay.batch import Batch, Reward
from assay.catalogue import make
from assay.errors import RunError, UsageError
from assay.papers.rewards.s036_crm_crf import EngineConciseness, RelativeConciseness, pairs, read_score
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.task_file import write_tasks
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")


class Fixed:
    """A scorer of given values."""

    def __init__(self, values: list[float], valid: list[bool] | None = None):
        self.values, self.valid = values, valid

    def __call__(self, batch: Batch) -> Reward:
        values = torch.tensor(self.values, dtype=batch.rewards.dtype)
        return Reward(values, valid=None if self.valid is None else torch.tensor(self.valid), terms={"c": values})


class Scorer:
    """An engine that knows a few responses, and of which it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.how: list[Any] = []

    def encode(self, prompt: Any) -> Any:
        raise NotImplementedError

    def encode_response(self, text: str, end: bool = True) -> Any:
        raise NotImplementedError

    def decode(self, tokens: Any) -> str:
        raise NotImplementedError

    def generate(self, requests: Any) -> Any:
        self.asked.extend(r.prompt for r in requests)
        self.how.extend((r.n, r.sampling.max_tokens, r.sampling.temperature) for r in requests)
        said = {"a": ("0.8", "eos"), "b": ("no idea", "eos"), "c": ("", "error")}
        return [[SimpleNamespace(text=said[r.prompt][0], stop=said[r.prompt][1])] for r in requests]


def one_prompt(make_batch: Callable[..., Any], passed: list[bool | None], lengths: list[int] | None = None) -> Any:
    batch = make_batch(lengths or [1] * len(passed), passed=passed)
    batch.prompt_group = torch.zeros(len(passed), dtype=torch.int64)
    return batch


def test_by_hand(make_batch: Callable[..., Any]) -> None:
    batch = one_prompt(make_batch, [True, True, False])
    # exp(2/3) = 1.947734: 1 + 0.5 * 0.9 * 2.447734 and 1 + 0.5 * 0.3 * 2.447734.
    reward = make("S036", scorer=Fixed([0.9, 0.3, 1.0]), start=0.5, end=0.5).reward(batch)
    assert reward.values.tolist() == pytest.approx([2.101480, 1.367160, 0], abs=1e-6)
    assert reward.terms["difficulty"].tolist() == pytest.approx([1.947734] * 3, abs=1e-6)
    # Unless told otherwise alpha is 1/2, and s goes from 1 to 0.
    part = make("S036", scorer=Fixed([0.9, 0.3, 1.0]), steps=1, difficulty="accuracy").reward
    assert part(batch).values.tolist() == pytest.approx([1.75, 1.25, 0])
    assert part(batch).values.tolist() == pytest.approx([1.3, 1.1, 0])
    plain = make("S036", scorer=Fixed([0.9, 0.3, 1.0]), alpha=0.0).reward(batch)
    assert plain.values.tolist() == [1, 1, 0]
    without = make("S036", scorer=Fixed([0.9, 0.3, 1.0]), difficulty="none", start=1.0).reward(batch)
    assert without.values.tolist() == pytest.approx([1.45, 1.15, 0])


def test_who_has_a_reward(make_batch: Callable[..., Any]) -> None:
    """Not who abstained, nor a right response that could not be scored; a wrong one needs no score."""
    scorer = Fixed([0.5, 0.5, 9.0, 1.0, 0.0], [False, True, False, True, True])
    method = make("S036", scorer=scorer, difficulty="accuracy")
    found = method.reward(one_prompt(make_batch, [True, None, False, True, True]))
    assert found.valid.tolist() == [False, False, True, True, True]
    # Three of the four that were judged are right.
    assert found.terms["difficulty"].tolist() == [0.75] * 5 and found.terms["outcome"].tolist() == [1, 0, 0, 1, 1]
    assert found.values.tolist() == pytest.approx([0, 0, 0, 1 + 0.5 * 1.75, 1])


@given(st.lists(st.tuples(st.floats(0.1, 1), st.booleans()), min_size=1, max_size=8), st.floats(0, 100))
def test_wrong_is_worth_nothing_and_less_than_right(
    make_batch: Callable[..., Any], rows: list[tuple[float, bool]], alpha: float
) -> None:
    batch = one_prompt(make_batch, [p for _, p in rows])
    values = make("S036", scorer=Fixed([c for c, _ in rows]), alpha=alpha).reward(batch).values.tolist()
    assert all(v >= 1 if p else v == 0 for v, (_, p) in zip(values, rows, strict=True))


def test_a_group_that_is_all_right_still_says_something(make_batch: Callable[..., Any]) -> None:
    batch = one_prompt(make_batch, [True, True, True], [10, 20, 30])
    values = make("S036").value(batch).advantages[:, 0].tolist()
    assert values[0] > 0 > values[2] and values[1] == pytest.approx(0, abs=1e-6)


def test_the_schedule_goes_on_from_a_checkpoint(make_batch: Callable[..., Any]) -> None:
    batch = one_prompt(make_batch, [True, False])
    part = make("S036", scorer=Fixed([1.0, 1.0]), steps=2, difficulty="none", alpha=1.0)
    seen = [part.reward(batch).values[0].item()]
    again = make("S036", scorer=Fixed([1.0, 1.0]), steps=2, difficulty="none", alpha=1.0)
    again.load_state_dict(part.state_dict())
    seen += [again.reward(batch).values[0].item() for _ in range(3)]
    assert seen == pytest.approx([2, 1.5, 1, 1])


def test_relative_lengths(make_batch: Callable[..., Any]) -> None:
    batch = one_prompt(make_batch, [True, True, True, False, None], [10, 20, 30, 1, 99])
    reward = RelativeConciseness()(batch)
    assert reward.values[:3].tolist() == pytest.approx([1, 0.55, 0.1])
    two = make_batch([10, 20, 5, 7, 6], passed=[True] * 5)
    two.prompt_group = torch.tensor([0, 0, 1, 1, 1])
    assert RelativeConciseness()(two).values.tolist() == pytest.approx([1, 0.1, 1, 0.1, 0.55])
    assert RelativeConciseness()(one_prompt(make_batch, [True], [7])).values.tolist() == [1]
    assert RelativeConciseness()(one_prompt(make_batch, [True, True], [0, 0])).values.tolist() == [1, 1]


def test_an_engine_is_asked_about_right_responses_once(make_batch: Callable[..., Any]) -> None:
    engine = Scorer()
    batch = make_batch([1] * 5, passed=[True, True, True, True, False], texts=["a", "a", "b", "c", "d"])
    batch.prompt_group = torch.zeros(5, dtype=torch.int64)
    scorer = {"engine": engine, "template": "{solution}"}
    reward = make("S036", scorer=scorer, difficulty="none").reward(batch)
    assert engine.asked == ["a", "b", "c"] and set(engine.how) == {(1, 16, 0.0)}
    assert reward.valid is not None and reward.valid.tolist() == [True, True, False, False, True]
    assert reward.values.tolist() == pytest.approx([1.4, 1.4, 0, 0, 0])
    assert isinstance(make("S036", scorer=engine).reward.members[0], EngineConciseness)


def test_reading() -> None:
    assert [read_score(t) for t in ("0.35", "Score: .9", "7", "0", "none")] == [0.35, 0.9, 1.0, 0.1, None]


def test_the_schedule_lasts_as_long_as_the_run(tmp_path: Path) -> None:
    """Four steps go from 1 to a quarter, whatever number of steps another run has."""
    method = {"name": "S036", "reward": None}
    folder = run(tmp_path / "run", method=method, warmup={"steps": 0}, evaluate={"every": 0, "samples": 1})
    steps = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert [row["reward/schedule"] for row in steps] == pytest.approx([1.0, 0.75, 0.5, 0.25])
    fixed = make("S036", steps=10).reward
    fixed.planned(4)
    fixed.done = 5
    assert fixed.schedule == pytest.approx(0.5)
    unknown = make("S036").reward
    unknown.load_state_dict({"done": 125})
    assert unknown.schedule == pytest.approx(0.75), "of 500 batches where nobody says how many there are"
    unknown.planned(0)
    unknown.load_state_dict({"done": 0})
    assert unknown.schedule == 1
    unknown.load_state_dict({"done": 1})
    assert unknown.schedule == 0


def test_what_cannot_be(make_batch: Callable[..., Any]) -> None:
    bad: list[dict[str, Any]] = [{"alpha": -1.0}, {"steps": 0}]
    bad += [{"start": 1.1}, {"start": -0.1}, {"end": 1.1}, {"end": -0.1}]
    bad.append({"scorer": {"engine": "x", "template": "no"}})
    for options in bad:
        with pytest.raises(UsageError):
            make("S036", **options)
    assert make("S036", start=0.0, end=1.0, steps=1).reward.schedule == 0
    for c in (float("nan"), -0.01, 1.01):
        with pytest.raises(RunError, match=r"row 1.*task-1"):
            make("S036", scorer=Fixed([0.5, c])).reward(one_prompt(make_batch, [True, True]))


def engine_of_pairs(scores: dict[str, str]) -> Told:
    """Writes ``short`` and ``long`` solutions that name the problem; the first of ``scores`` in one scores it."""

    def answer(prompt: str, number: int) -> str | None:
        problem = prompt.partition("Problem:\n")[2].partition("\n")[0]
        if prompt.startswith("Solve the problem in as few words"):
            return f"short {problem}"
        if prompt.startswith("Solve the problem at great length"):
            return {"empty": " ", "cut": "so..."}.get(problem, f"long {problem}" if problem != "same" else "short same")
        return next(score for text, score in scores.items() if text in prompt)

    return Told(answer)


def made(scores: dict[str, str], problems: list[str], **options: Any) -> Any:
    models = {role: Model(role, engine_of_pairs(scores)) for role in ("writer", "judge")}
    return Maker(pairs(**options), models).make([Task(p, p, p, "math", hints=("h",)) for p in problems])


def test_pairs_are_kept_whose_scores_are_far_apart() -> None:
    scores = {"short a": "on the whole 0.7", "long a": "0.4", "short b": "0.69", "long b": "0.1", "short c": "1"}
    scores |= {"long c": "0.41", "short d": "0.9", "long d": "7", "short ": "0.8", "long ": "no words"}
    found = made(scores, ["a", "b", "c", "d", "same", "empty", "cut", "e"])
    good, poor = found.tasks
    assert (good.id, poor.id) == ("a/contrasted-0", "a/contrasted-1") and good.kind == "number" and not good.hints
    assert (good.reference, good.solution, good.meta["responses"]) == ("0.7", "0.7", ["0.7"])
    assert (poor.reference, poor.meta["manner"], poor.meta["response"]) == ("0.4", "poor", "long a")
    assert str(good.prompt).endswith("Problem:\na\n\nSolution:\nshort a") and "0.1 (redundant) to 1" in str(good.prompt)
    assert found.counts["contrasted"].dropped == {
        "the good response scores too low": 1,
        "the poor response scores too high": 1,
        "a score cannot be read": 2,
        "both responses are the same": 1,
        "a response is empty or cut off": 2,
    }
    assert len(made(scores, ["b"], high=0.6).tasks) == 2 and not made(scores, ["a"], low=0.3).tasks
    assert pairs().steps[0][1].read(".1") == 0.1 and pairs().steps[0][1].read("0.09") is None
    assert pairs().steps[0][1].read("1.01") is None and pairs().steps[0][1].read("") is None
    bad: list[dict[str, Any]] = [{"low": 0.7}, {"low": 0.05}, {"high": 1.1}, {"template": "{problem}"}]
    for options in bad:
        with pytest.raises(UsageError, match="step contrasted"):
            pairs(**options)


ASKED = "{problem}{solution}="


def test_a_model_that_was_tuned_on_pairs_gives_the_reward(tmp_path: Path, make_batch: Callable[..., Any]) -> None:
    """Redundant solutions of this world have a ``+`` in them; 24 problems, 40 steps on their 48 scored solutions."""

    def answer(prompt: str, number: int) -> str:
        problem = prompt.partition("Problem:\n")[2].partition("\n")[0]
        if prompt.startswith("Solve"):
            return problem * 2 if "few words" in prompt else f"{problem}+{problem}+"
        return "0.2" if "+" in prompt.partition("Solution:")[2] else "0.9"

    models = {role: Model(role, Told(answer)) for role in ("writer", "judge")}
    problems = [f"{a}{b}" for a in range(1, 7) for b in range(4)]
    found = Maker(pairs(template=ASKED), models).make([Task(p, p, p, "math") for p in problems])
    write_tasks(tmp_path / "pairs.jsonl", found.tasks)
    nano = {"hidden": 32, "layers": 1, "heads": 2, "context": 24, "alphabet": "0123456789.+="}
    assay.train(
        "sft",
        model={"source": "nano", "dtype": "float32", "gradient_checkpointing": False, "nano": nano},
        settings={
            "tasks.source.path": str(tmp_path / "pairs.jsonl"), "tasks.source.chat": False, "tasks.eval_share": 0.2,
            "run.dir": str(tmp_path / "crm"), "run.report": False, "run.tensorboard": False,
            "rollout.prompts": 32, "rollout.max_tokens": 8, "train.ramp": 0, "train.steps": 40, "train.lr": 1e-2,
        },
        quiet=True,
    )  # fmt: skip
    scorer = {"engine": {"name": "hf", "model": str(tmp_path / "crm")}, "template": ASKED, "max_tokens": 5}
    # Problems that it was not tuned on: of one with other digits, a concise and a redundant solution that are right.
    batch = make_batch([4, 4, 4], passed=[True, True, False], texts=["7878", "78+78+", "7878"])
    batch.tasks = [Task("t", "78", "78", "math")] * 3
    batch.prompt_group = torch.zeros(3, dtype=torch.int64)
    reward = make("S036", scorer=scorer, start=1.0, end=1.0, difficulty="none").reward(batch)
    assert reward.terms["conciseness"][:2].tolist() == pytest.approx([0.9, 0.2])
    assert reward.values.tolist() == pytest.approx([1.45, 1.1, 0])


def test_a_chat_model_is_asked_in_a_message(make_batch: Callable[..., Any]) -> None:
    engine = Told(lambda prompt, number: "0.5")
    reward = EngineConciseness(engine, template="{solution}", chat=True)(make_batch([1], passed=[True], texts=["a"]))
    assert reward.values.tolist() == [0.5]
    assert [request.prompt for request in engine.asked] == [({"role": "user", "content": "a"},)]


@pytest.mark.slow
def test_a_policy_stays_right_where_an_added_bonus_makes_it_short() -> None:
    """Short answers are hardly ever right and long ones mostly; after 20 steps."""
    factor, added = (learned("S036", arm, steps=20) for arm in ("product", "sum"))
    assert factor["right"] > added["right"] and factor["area"] > added["area"] + 0.05
    assert factor["choice 1"] > 0.95
