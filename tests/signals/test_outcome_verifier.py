"""A verifier learned from judged traces: what it reads, what it is fitted to, and that nothing is learned before."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from assay.batch import Batch
from assay.errors import UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.nano import NanoConfig, nano_model, nano_tokenizer
from assay.registry import build
from assay.signals.base import Models
from assay.signals.judges.outcome_verifier import OutcomeVerifier
from assay.signals.prompt_value import PromptValue
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")


CONFIG = NanoConfig(hidden=32, layers=1, heads=2, context=32)
TOKENIZER = nano_tokenizer(CONFIG)


@pytest.fixture(scope="module")
def nano() -> CausalLM:
    return CausalLM(nano_model(CONFIG, len(TOKENIZER), 0), TOKENIZER)


def judged(nano: CausalLM, rows: list[tuple[str, str, bool | None]]) -> Batch:
    groups = []
    for i, (prompt, text, passed) in enumerate(rows):
        tokens = np.asarray(nano.encode_response(text, end=False), dtype=np.int64)
        episode = Episode(np.asarray(nano.encode(prompt), dtype=np.int64), tokens, tokens >= 0, None, text, "eos")
        verdict = Verdict.abstain("nobody knows") if passed is None else Verdict(float(passed), passed)
        groups.append(Group(Ask(Task(str(i), prompt), 1), (episode,), (verdict,)))
    return Batch.from_groups(groups)


def test_it_reads_the_state_after_the_response_and_the_mean_over_it(nano: CausalLM) -> None:
    """Against the states that transformers' own model computes of prompt and response."""
    rows: list[tuple[str, str, bool | None]] = [("1+1=", "27", True), ("23+4=", "5", False), ("7", "", None)]
    batch = judged(nano, rows)
    states, mask = OutcomeVerifier().states(list(batch.episodes), batch, Models(nano, nano, encode=nano.encode))
    assert states.shape == (3, 2, 32) and bool(mask.all())
    model = nano_model(CONFIG, len(TOKENIZER), 0).eval()
    for row, (prompt, text, _) in zip(states, rows, strict=True):
        ids = torch.cat(
            [torch.from_numpy(nano.encode(prompt)), torch.from_numpy(nano.encode_response(text, end=False))]
        )
        with torch.no_grad():
            plain = model.base_model(input_ids=ids[None].long(), use_cache=False).last_hidden_state[0]
        mine = plain[len(nano.encode(prompt)) :] if text else plain[-1:]
        assert torch.allclose(row, torch.stack([plain[-1], mine.mean(0)]), atol=1e-5)


def test_it_learns_who_is_right_from_verdicts_and_reads_no_more_of_them(nano: CausalLM) -> None:
    """Right are responses that end in 7, on prompts it has not seen too; abstentions teach nothing."""
    rng = np.random.default_rng(0)
    some = [
        (f"{rng.integers(10, 50)}+{rng.integers(9)}=", f"{rng.integers(10)}{rng.choice([3, 7])}") for _ in range(170)
    ]
    rows = [(prompt, text, text.endswith("7")) for prompt, text in some[:120]]
    rows += [("1+1=", "33", None)] * 40
    verifier = OutcomeVerifier(steps=2, epochs=12, lr=1e-2)
    models = Models(nano, nano, encode=nano.encode, rng=np.random.default_rng(0))
    torch.manual_seed(0)
    verifier.start(models)
    batch = judged(nano, rows)
    select = build("select", {"name": "when_ready", "signal": verifier})
    assert not verifier.ready and not select(batch).any()
    assert verifier.learn(batch, models) == {} and not select(batch).any()
    state = deepcopy(verifier.state_dict())
    found = verifier.learn(batch, models)
    assert found["outcome_verifier/error"] < 0.05 and verifier.ready
    new = judged(nano, [(prompt, text, None) for prompt, text in some[120:]])
    said = verifier(new, models).tolist()
    assert sum((s > 0.5) == text.endswith("7") for s, (_, text) in zip(said, some[120:], strict=True)) >= 48
    assert bool((select(new) == 1).all()) and verifier.learn(new, models) == {}
    # One that was interrupted goes on alike.
    other = OutcomeVerifier(steps=2, epochs=12, lr=1e-2)
    other.start(models)
    other.load_state_dict(state)
    models.rng = np.random.default_rng(0)
    assert other.learn(batch, models) == found and other(new, models).tolist() == said


def test_prompt_and_response_are_told_apart() -> None:
    verifier: Any = OutcomeVerifier()
    none = np.zeros(0, dtype=bool)
    one, two = np.array([1, 2]), np.array([3])
    pairs = [(one, two), (one[:1], np.array([2, 3])), (one, one)]
    assert len({verifier.key(Episode(p, t, none, None, "", "eos")) for p, t in pairs}) == 3


def test_what_cannot_be() -> None:
    plain, usual = OutcomeVerifier(), PromptValue()
    for name in ("steps", "epochs", "lr", "batch", "ceiling", "heads"):
        assert getattr(plain, name) == getattr(usual, name), "as the value of a prompt is fitted"
    for bad in ({"steps": 0}, {"epochs": 0}, {"batch": 0}):
        with pytest.raises(UsageError, match="signal 'outcome_verifier': needs steps"):
            OutcomeVerifier(**bad)
    with pytest.raises(UsageError, match=r"select 'when_ready': .* is not fitted first"):
        build("select", {"name": "when_ready", "signal": "critic"})
