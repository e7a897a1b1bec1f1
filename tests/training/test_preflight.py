"""What is tried before the first step: servers that parts of a method ask."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from running import recipe
from serving import running_server, small_engine

from assay import train
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.objectives.clip import ClippedSurrogate
from assay.registry import build
from assay.serve.server import ModelServer
from assay.training.preflight import check_pairs, unused_bound
from assay.types import Task


def judged(folder: Path, port: int) -> dict[str, Any]:
    """A run whose reward is the confidence of a judge behind a server."""
    judge = {"name": "openai", "model": "judge", "base_url": f"http://127.0.0.1:{port}/v1", "retries": 0}
    sections = recipe(folder)
    sections["method"] = {"name": "S034", "options": {"judge": judge}}
    return sections


def test_a_judge_that_nobody_answers_for_is_told_of_before_the_first_step(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = rf"^method.reward\.0 \w+ asks a model: http://127.0.0.1:{port}/v1 does not answer: "
    with pytest.raises(UsageError, match=said):
        train(judged(tmp_path / "run", port), quiet=True)
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_judge_that_answers_is_asked_for_one_token_first(tmp_path: Path) -> None:
    server = ModelServer(small_engine(), "judge", ("127.0.0.1", 0))
    asked: list[int] = []
    generate = server.engine.generate

    def counted(requests: Any) -> Any:
        asked.extend(request.sampling.max_tokens for request in requests)
        return generate(requests)

    server.engine.generate = counted  # type: ignore[method-assign]
    with running_server(server):
        train(judged(tmp_path / "run", server.address[1]), quiet=True)
    # The questions of the run itself are too long for so small a model, and refused.
    assert asked == [1]


@pytest.mark.parametrize(("context", "told"), [(600, True), (1600, False)])
def test_a_world_whose_first_words_fill_the_context_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], context: int, told: bool
) -> None:
    world = {"name": "household", "rooms": 1, "things": 3}
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": context}
    sections = recipe(tmp_path / "run", model={"nano": nano}, evaluate={"every": 0})
    sections["method"] = {"rollout": {"name": "multi_turn", "environment": world, "turns": 2}}
    sections["tasks"] = {"source": {"name": "environment", "environment": world}, "eval_size": 1, "eval_share": 0.2}
    sections["warmup"] = {"steps": 0}
    sections["train"] = {"steps": 1}
    train(sections)
    assert ("fills the model's context" in capsys.readouterr().err) is told


@pytest.mark.parametrize(
    ("template", "told"), [("{question}{shown}", False), ("{question}" + "1" * 20 + "{shown}", True)]
)
def test_a_teacher_who_can_be_shown_nothing_is_told_of(
    template: str, told: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A context of 24 has no room for twenty characters more."""
    options = {"template": template, "solution": "{solution}", "feedback": ""}
    sections = recipe(tmp_path / "run", evaluate={"every": 0}, train={"steps": 1}, warmup={"steps": 0})
    sections["method"] = {"name": "S031", "options": options}
    sections["tasks"] = {
        **sections["tasks"],
        "verify": {"name": "flawed", "verifier": {"name": "by_kind"}, "false_positive": 0.5},
    }
    train(sections)
    assert ("nothing to show a teacher, or it leaves no room" in capsys.readouterr().err) is told


@pytest.mark.parametrize("objective", ["dpo", "simpo", "picked_pairs"])
def test_pairs_that_are_nowhere_on_record_are_missed_before_the_run(objective: str) -> None:
    made, rollout = build("objective", objective), build("rollout", "recorded", sampling=Sampling(8))
    one = Task("a", "?", meta={"responses": ["x"]})
    alike = Task("b", "?", meta={"responses": [{"text": "x", "reward": 1}, {"text": "y", "reward": 1}]})
    for tasks in ([one], [one, alike], [Task("c", "?", solution="x")]):
        with pytest.raises(UsageError, match=r"learns from pairs of responses, and no task has two on record"):
            check_pairs(made, tasks, rollout)
    told = Task("d", "?", meta={"responses": [{"text": "x", "reward": 1}, {"text": "y", "reward": 0}]})
    judged = Task("e", "?", meta={"responses": ["x", "y"]})
    check_pairs(made, [one, told], rollout)
    check_pairs(made, [alike, judged], rollout)
    check_pairs(made, [one], build("rollout", "single_turn", sampling=Sampling(8)))
    check_pairs(build("objective", "kto"), [one], rollout)
    check_pairs(build("objective", "sft"), [one], rollout)


def test_a_bound_that_bounds_nothing_is_told_of(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One update a step, from fresh responses: whatever differs from GRPO by its bound alone is GRPO."""
    words = "the bound acts where a step has several updates"
    assert all(words in str(unused_bound(build("objective", name))) for name in ("cispo", "gspo", "gmpo", "response"))
    assert words in str(unused_bound(ClippedSurrogate(clip_high=0.28)))
    for name in ("clip", "reinforce", "sapo", "clip_cov", "kl_cov", "shaped", "sft"):
        assert unused_bound(build("objective", name)) is None
    for parts, told in ((1, True), (2, False)):
        sections = {"train": {"steps": 1, "mini_batches": parts, "epochs": 1}, "warmup": {"steps": 0}}
        made = recipe(tmp_path / f"run-{parts}", **sections, evaluate={"samples": 0})
        train({**made, "method": {**made["method"], "objective": "cispo"}})
        assert (words in capfd.readouterr().err) == told


def test_a_run_that_is_not_there_is_not_looked_for_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train(recipe("runs/first", warmup={"steps": 0}, train={"steps": 1}, evaluate={"samples": 0}), quiet=True)
    with pytest.raises(UsageError, match=r"no folder runs/frist; did you mean 'runs/first'"):
        train(recipe("runs/second", model={"source": "runs/frist", "nano": {}}), quiet=True)
