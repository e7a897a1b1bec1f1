"""Runs whose batches are asked ahead: which weights answer, and that no prompt is lost or doubled however they stop."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import running
import tomli_w
import torch
from running import assert_same, child, command, recipe, run

import assay
from assay.errors import RunError, UsageError
from assay.records.checkpoints import checkpoints, last_checkpoint
from assay.records.run_folder import RunFolder
from assay.training import loop, state
from assay.training.ahead import shadow
from assay.training.interrupt import Interrupt
from assay.types import Task, Verdict

SOON = 60.0
"""Seconds after which something that should happen at once is taken not to."""
EVERY_STEP = {"checkpoint_every": 1}


# Which weights answer


def checksum(module: torch.nn.Module) -> float:
    return sum(float(p.detach().double().abs().sum()) for p in module.parameters())


@pytest.mark.parametrize("staleness", [1, 2])
def test_a_batch_is_written_by_the_weights_so_many_steps_before(
    staleness: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[float] = []
    wrote: list[float] = []
    original_step, original_generate = loop.Trainer.rl_step, shadow.Shadow.generate

    def step(self: loop.Trainer) -> dict[str, float]:
        before.append(checksum(self.policy.module))
        return original_step(self)

    def generate(self: shadow.Shadow, requests: Any) -> Any:
        if requests[0].n == 3:
            wrote.append(checksum(self.policy.module))
        return original_generate(self, requests)

    monkeypatch.setattr(loop.Trainer, "rl_step", step)
    monkeypatch.setattr(shadow.Shadow, "generate", generate)
    folder = run(tmp_path / "run", overlap={"staleness": staleness})
    assert len(set(before)) == 4
    assert wrote == [before[max(0, step - staleness)] for step in range(4)]
    rows = [row for row in running.metrics(folder) if row["stage"] == "rl"]
    assert [row["staleness"] for row in rows] == [min(step, staleness) for step in range(4)]
    # The first batch is the policy's own.
    assert rows[0]["behaviour/kl"] < 1e-9
    assert all(row["behaviour/kl"] > 1e-6 for row in rows[1:])


def consumed(folder: Path) -> list[str]:
    tables = running.tables(folder, "rollouts").values()
    return [row["task_id"] for rows in tables for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Runs that nothing interrupted, by staleness."""
    root = tmp_path_factory.mktemp("whole")
    return {s: run(root / f"run{s}", overlap={"staleness": s}, run=EVERY_STEP) for s in (0, 1, 2)}


def test_the_same_prompts_are_learned_from_in_the_same_order(whole: dict[int, Path]) -> None:
    assert len(consumed(whole[0])) == 4 * 4 * 3
    assert consumed(whole[1]) == consumed(whole[2]) == consumed(whole[0])


@pytest.mark.parametrize("staleness", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_with_staleness_repeats_itself(staleness: int, whole: dict[int, Path], tmp_path: Path) -> None:
    again = run(tmp_path / "run", overlap={"staleness": staleness}, run=EVERY_STEP)
    assert_same(again, whole[staleness])
    # When checkpoints are taken makes no difference.
    rare = run(tmp_path / "rare", overlap={"staleness": staleness}, run={"checkpoint_every": 50})
    assert running.metrics(rare) == running.metrics(whole[staleness])


def test_parts_do_not_change_a_run_much(whole: dict[int, Path], tmp_path: Path) -> None:
    parts = run(tmp_path / "run", overlap={"verify_chunks": 3}, run=EVERY_STEP)
    assert consumed(parts) == consumed(whole[0])
    for a, b in zip(running.metrics(parts), running.metrics(whole[0]), strict=True):
        assert a.pop("stage") == b.pop("stage")
        assert a == pytest.approx(b, rel=1e-2, abs=1e-4)


def test_responses_are_told_of_as_they_end() -> None:
    """Each once, with the text of its episode, short ones before long ones; stop strings and limits included."""
    from assay.engines.base import Request, Sampling
    from assay.engines.ended import listening
    from assay.engines.hf import HFEngine
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig

    policy = CausalLM.load(ModelConfig.model_validate(recipe("unused")["model"]), seed=1)
    asked = [Request(f"{i}+1=", 3, Sampling(max_tokens=6 + i % 2 * 4, stop=("3",)), seed=i) for i in range(6)]
    told: list[tuple[int, str]] = []
    with listening(lambda request, text: told.append((asked.index(request), text))):
        made = HFEngine(policy, max_rows=32).generate(asked)
    wanted = [(i, e.text) for i, episodes in enumerate(made) for e in episodes]
    assert sorted(told) == sorted(wanted)
    assert told != wanted, "in the order of their ends"
    assert len({len(e.tokens) for episodes in made for e in episodes}) > 2


# Interrupted


@pytest.mark.parametrize("staleness", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_run_interrupted_at_every_step_is_the_uninterrupted_one(
    staleness: int, whole: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RunFolder.log

    def logged(self: RunFolder, *arguments: Any) -> None:
        original(self, *arguments)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "log", logged)
    folder = tmp_path / "run"
    result = assay.train(recipe(folder, overlap={"staleness": staleness}, run=EVERY_STEP), quiet=True)
    rounds = 1
    while result.stopped_by:
        flights = torch.load(last_checkpoint(folder)[2] / "trainer.pt", weights_only=True)["in_flight"]
        step = int(last_checkpoint(folder)[2].name[-6:])
        expected = [s for s in range(step, step + staleness) if step > 0 and s < 4]
        if last_checkpoint(folder)[0] == "rl":
            assert [flight["step"] for flight in flights] == expected
        result = assay.train(resume=folder, quiet=True)
        rounds += 1
    assert rounds == 8  # three supervised steps and four others
    assert_same(folder, whole[staleness])


def killed(log: Path, recipe_file: Path, name: str, die_at: int) -> None:
    """In a child: ``assay train`` that dies without a word when something is done for the ``die_at``-th time."""
    calls = 0

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **others)

        return call

    if name == "generate":
        shadow.Shadow.generate = dying(shadow.Shadow.generate)  # type: ignore[method-assign]
    else:
        loop.update = dying(loop.update)
    command(log, "train", str(recipe_file))


@pytest.mark.parametrize(("name", "die_at"), [("generate", 8), pytest.param("update", 14, marks=pytest.mark.slow)])
def test_a_killed_run_goes_on(name: str, die_at: int, whole: dict[int, Path], tmp_path: Path) -> None:
    folder, file = tmp_path / "run", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(folder, overlap={"staleness": 2}, run=EVERY_STEP)))
    assert child(killed, tmp_path / "log", file, name, die_at) == -signal.SIGKILL
    assert checkpoints(folder)[-1].name.startswith("rl-")
    assay.train(resume=folder, quiet=True)
    assert_same(folder, whole[2])


def struck_twice(log: Path, recipe_file: Path) -> None:
    """In a child: ``assay train`` that gets Ctrl-C twice while a thread generates without end."""
    original, calls = shadow.Shadow.generate, 0
    handle, handled = Interrupt.__call__, threading.Event()

    def generate(self: shadow.Shadow, requests: Any) -> Any:
        nonlocal calls
        found = original(self, requests)
        calls += requests[0].n == 3
        if calls == 3:
            os.kill(os.getpid(), signal.SIGINT)
            assert handled.wait(SOON)
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                original(self, requests)
        return found

    def noted(self: Interrupt, *arguments: Any) -> None:
        handled.set()
        handle(self, *arguments)

    shadow.Shadow.generate, Interrupt.__call__ = generate, noted  # type: ignore[method-assign, assignment]
    command(log, "train", str(recipe_file))


def test_a_second_ctrl_c_ends_a_generation_under_way(whole: dict[int, Path], tmp_path: Path) -> None:
    folder, log, file = tmp_path / "run", tmp_path / "log", tmp_path / "recipe.toml"
    file.write_text(tomli_w.dumps(recipe(folder, overlap={"staleness": 1}, run=EVERY_STEP)))
    assert child(struck_twice, log, file) == 130
    said = log.read_text()
    assert f"assay train --resume {folder}" in said
    assert "Traceback" not in said
    assay.train(resume=folder, quiet=True)
    assert_same(folder, whole[1])


@pytest.mark.parametrize("where", ["engine", "verifier", "value"])
@pytest.mark.slow
def test_a_failure_in_a_thread_is_that_error_and_leaves_a_checkpoint(
    where: str, whole: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, calls = tmp_path / "run", 0

    def failing(original: Callable[..., Any], at: int, size: Callable[..., int] = lambda *_: 1) -> Callable[..., Any]:
        def call(*arguments: Any, **others: Any) -> Any:
            nonlocal calls
            before, calls = calls, calls + size(*arguments)
            if before < at <= calls:
                raise RunError(f"the {where} is gone")
            return original(*arguments, **others)

        return call

    sections = {"overlap": {"staleness": 1}, "run": {"checkpoint_every": 50}, "evaluate": {"every": 0}}
    with monkeypatch.context() as patch:
        if where == "engine":  # the evaluation before comes first
            patch.setattr(shadow.Shadow, "generate", failing(shadow.Shadow.generate, 5))
        elif where == "verifier":
            responses = failing(state.judge_groups, 28, lambda _, groups: sum(len(g.episodes) for g in groups))
            patch.setattr(state, "judge_groups", responses)  # twelve a step, one or a group at a time
        else:
            patch.setattr(loop, "value", failing(loop.value, 3))
        with pytest.raises(RunError, match=f"^the {where} is gone$"):
            run(folder, **sections)
    assert checkpoints(folder)[-1].name == "rl-000002"
    assay.train(resume=folder, quiet=True)
    assert consumed(folder) == consumed(whole[1])
    if where != "engine":
        # Neither checkpoints nor evaluations make a difference.
        assert running.metrics(folder) == running.metrics(whole[1])
        assert running.tables(folder, "rollouts") == running.tables(whole[1], "rollouts")
    else:
        # The batch was asked again under the weights of the checkpoint, which are newer than those lost.
        assert [r["staleness"] for r in running.metrics(folder) if r["stage"] == "rl"] == [0, 1, 0, 1]


@pytest.mark.slow
def test_a_run_is_extended(whole: dict[int, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole[2], tmp_path / "run"))
    assay.train(resume=folder, overrides=["train.steps=7"], quiet=True)
    longer = run(tmp_path / "longer", train={"steps": 7}, evaluate={"every": 0})
    assert consumed(folder) == consumed(longer)
    # What was not asked ahead is asked under the weights that the run ended with.
    rows = [r["staleness"] for r in running.metrics(folder) if r["stage"] == "rl"]
    assert rows == [0, 1, 2, 2, 0, 1, 2]


@pytest.mark.parametrize(
    "sections",
    [
        {"model": {"lora": {"rank": 2, "dropout": 0.2}}, "warmup": {"steps": 2}},
        {"tasks": {"verify_workers": 1}, "overlap": {"staleness": 1, "verify_chunks": 2}},
        {"method": {"objective": {"name": "clip", "kl_weight": 0.1}, "rollout": "greedy_baseline"}},
    ],
    ids=["adapters", "pool", "reference policy"],
)
@pytest.mark.slow
def test_other_runs_resume_too(sections: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = {"overlap": {"staleness": 1}, "run": EVERY_STEP, **sections}
    base["method"] = {**recipe("unused")["method"], **sections.get("method", {})}
    whole = run(tmp_path / "whole", **base)
    original = RunFolder.log

    def logged(self: RunFolder, stage: str, step: int, metrics: dict[str, float]) -> None:
        original(self, stage, step, metrics)
        if (stage, step) in (("rl", 1), ("rl", 3)):
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(RunFolder, "log", logged)
    folder = tmp_path / "run"
    assert assay.train(recipe(folder, **base), quiet=True).stopped_by
    assert assay.train(resume=folder, quiet=True).stopped_by
    assay.train(resume=folder, quiet=True)
    assert_same(folder, whole)


def test_an_abstention_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def abstains(self: Any, task: Task, response: str) -> Verdict:
        return Verdict.abstain("cannot tell")

    monkeypatch.setattr(assay.verify.KindVerifier, "__call__", abstains)
    folder = run(tmp_path / "run", overlap={"staleness": 1, "verify_chunks": 2})
    rows = [row for row in running.metrics(folder) if row["stage"] == "rl"]
    assert [row["abstained"] for row in rows] == [1.0] * 4
    assert all("pass_rate" not in row for row in rows)


# The copy of the weights


def test_adapters_share_the_model_beneath() -> None:
    from assay.engines.hf import HFEngine
    from assay.policies.causal_lm import CausalLM
    from assay.policies.loading import ModelConfig

    settings = recipe("unused")["model"] | {"lora": {"rank": 2}}
    policy = CausalLM.load(ModelConfig.model_validate(settings))
    copy: Any = shadow.Shadow(policy, lambda p: HFEngine(p, 8))  # type: ignore[arg-type]
    pairs = list(zip(copy.policy.module.parameters(), policy.module.parameters(), strict=True))
    assert any(theirs.requires_grad for _, theirs in pairs)
    for mine, theirs in pairs:
        assert (mine.data_ptr() == theirs.data_ptr()) == (not theirs.requires_grad)
    for _, theirs in pairs:
        if theirs.requires_grad:
            theirs.data += 1
    assert any(not torch.equal(mine, theirs) for mine, theirs in pairs)
    copy.follow(policy)
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)


def test_refused_before_the_run_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rollout Dynamic asks for other prompts"):
        assay.train(recipe(tmp_path / "run", method={"rollout": "dynamic"}, overlap={"staleness": 1}), quiet=True)
    assert not (tmp_path / "run").exists()
