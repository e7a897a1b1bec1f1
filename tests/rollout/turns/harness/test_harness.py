"""Programs that speak the chat protocol, recorded and learnt from token for token."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run
from tiny import TOKENIZER, tiny

from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.tabular import TabularEngine
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.tabular import TabularPolicy, Tree
from assay.rollout.turns.harness.recording import Recording, Unasked
from assay.rollout.turns.harness.rollout import Harness
from assay.types import Ask, Episode, Group, Origin, Task

pytestmark = pytest.mark.usefixtures("one_thread")

AGENT = [sys.executable, str(Path(__file__).parent / "agent.py")]


class Noting(HFEngine):
    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        self.said = [*getattr(self, "said", []), *(e for [e] in made)]
        return made


def engine(context: int = 512) -> Noting:
    return Noting(CausalLM(tiny("llama", max_position_embeddings=context), TOKENIZER))


def played(by: HFEngine, how: str = "", n: int = 3, **options: Any) -> Group:
    rollout = Harness(AGENT, Sampling(5), **options)
    task = Task("t", "1+2=", "1", "exact", meta={"how": how})
    [group] = rollout.collect([Ask(task, n)], by, np.random.default_rng(0))
    assert len(group.episodes) == len(group.verdicts) == n
    return group


def exact(by: Noting, group: Group) -> None:
    """Every sampled token is in the record once, as it was sampled, and the trainer agrees on all of them."""
    batch = Batch.from_groups([group])
    with torch.no_grad():
        logprobs = by.policy.forward(batch).logprobs
    assert float((logprobs - batch.logprobs)[batch.mask].abs().max()) < 1e-4
    assert torch.equal(batch.turn >= 0, batch.mask)
    told = sorted(e.tokens[t.start : t.end].tolist() for e in group.episodes for t in e.turns)
    assert told == sorted(e.tokens.tolist() for e in by.said)
    assert int(batch.mask.sum()) == sum(len(e.tokens) for e in by.said)


def test_a_conversation_is_one_row_of_the_tokens_that_were_sampled() -> None:
    by = engine()
    group = played(by, "tells")
    exact(by, group)
    assert len(by.sessions) == 0
    for episode in group.episodes:
        assert len(episode.turns) == 3 and not episode.forks and episode.stop in ("eos", "length")
        assert np.array_equal(episode.prompt, by.opening(({"role": "user", "content": "1+2="},), ()))
        assert json.loads(episode.text)["said"] == [t.text for t in episode.turns]
        between = by.decode(episode.tokens[episode.turns[0].end : episode.turns[1].start])
        assert "0+" in between and (episode.origins == Origin.OWN).tolist() == episode.mask.tolist()  # type: ignore[union-attr]
    assert len({e.trajectory for e in group.episodes}) == 3
    # Again the same: seeds are the ask's, whoever comes first.
    again = played(engine(), "tells")
    assert [e.tokens.tolist() for e in again.episodes] == [e.tokens.tolist() for e in group.episodes]


def test_other_conversations_are_forks() -> None:
    by = engine()
    group = played(by, "forks", n=2)
    exact(by, group)
    for episode in group.episodes:
        assert len(episode.turns) == 6 and len(episode.forks) == 2
        (_, first), (other, second), (middle, third) = episode.rows
        assert by.decode(other).strip() == "7" and len(second) <= 5 and len(third) <= 5
        assert by.decode(middle).strip().endswith("\n0+")
        # The first one went on to a fourth answer after the other had begun.
        assert sum(t.end <= len(first) for t in episode.turns) == 4


def test_what_a_program_writes_is_judged() -> None:
    group = played(engine())
    odd = [len(e.turns[0].text) % 2 == 1 for e in group.episodes]
    assert [v.passed for v in group.verdicts] == odd


@pytest.mark.parametrize(("how", "reason"), [("breaks", "I broke"), ("hangs", "took longer than 1 seconds")])
def test_a_program_that_fails_is_nobodys_wrong_answer(how: str, reason: str) -> None:
    group = played(engine(), how, n=2, seconds=1.0 if how == "hangs" else 120.0)
    assert all(v.passed is None and v.fault == "infrastructure" and reason in v.feedback for v in group.verdicts)
    assert all(e.stop == "error" for e in group.episodes)
    assert len(Batch.from_groups([group])) == 2


def test_limits_are_told_and_the_rest_is_judged() -> None:
    group = played(engine(), "limit", turns=5)
    assert all(e.stop == "turns" and len(e.turns) == 5 and e.text == "429" for e in group.episodes)
    assert all(v.passed is False for v in group.verdicts)
    short = played(engine(12), "limit", turns=50)
    assert all(
        e.stop == "context" and v.passed is not None for e, v in zip(short.episodes, short.verdicts, strict=True)
    )


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    played(engine(), n=1)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_run_is_said() -> None:
    with pytest.raises(UsageError, match="needs a command"):
        Harness("", Sampling(5))
    with pytest.raises(UsageError, match="must be >= 1"):
        Harness("x", Sampling(5), turns=0)
    rollout = Harness("/no/such/program", Sampling(5))
    with pytest.raises(UsageError, match="cannot be run"):
        rollout.collect([Ask(Task("t", "1"), 1)], engine(), np.random.default_rng(0))
    tabular = TabularEngine(TabularPolicy(Tree.bandit(2, [1, 0])))
    with pytest.raises(UsageError, match="cannot go on"):
        rollout.collect([Ask(Task("t", "1"), 1)], tabular, np.random.default_rng(0))


@pytest.mark.parametrize(
    "body",
    [{}, {"messages": []}, {"messages": [{"content": "x"}]}, {"messages": "x"}, {"messages": [3]},
     {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
     {"messages": [{"role": "user", "content": "x"}], "max_tokens": "5"},
     {"messages": [{"role": "user", "content": "x"}], "tools": [{}]}],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(body: Any) -> None:
    recording = Recording("k", Sampling(5), 3, np.random.default_rng(0))
    with pytest.raises(Unasked):
        recording.request(body, engine())
    assert recording.answered == 0 and not recording.threads


def test_it_trains(tmp_path: Path) -> None:
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 256}},
        warmup={"steps": 0},
        method={"reward": "verdict", "rollout": {"name": "harness", "command": AGENT, "turns": 8}},
        rollout={"prompts": 2, "group": 4, "max_tokens": 3, "max_rows": 64},
        train={"steps": 2, "epochs": 1, "mini_batches": 1},
        tasks={"source": {"name": "arithmetic"}, "eval_size": 2},
    )
    rows = [m for m in metrics(folder) if m["stage"] == "rl"]
    assert [m["environment/lost"] for m in rows] == [0.0] * 2 and all(m["environment/turns"] == 3 for m in rows)
