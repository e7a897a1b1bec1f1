"""The policy's verdict on its own response: probabilities against a naive pass, and who has no reward."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from spelled import NANO, responses

from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.rewards.likelihood.self_verdict import SelfVerdict
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")

TEMPLATE = "{% for m in messages %}[{{ m['role'][0] }}]{{ m['content'] | trim }}|{% endfor %}"


def lm(chat: bool, context: int = 128) -> CausalLM:
    torch.manual_seed(0)
    nano = NANO | {"context": context, "alphabet": "0123456789+=[]|sua ?ny\n\u2981-flwopbktd"}
    made = CausalLM.load(ModelConfig(source="nano", nano=nano), 0)
    for parameter in made.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    if chat:
        made.tokenizer.chat_template, made.chat = TEMPLATE, True
    return made


def told(policy: CausalLM, head: str, text: str, chat: bool) -> float:
    """Mean log-probability of ``text`` after ``head``, by itself; a template writes its own beginning."""
    ids = policy.encode_response(head, end=False) if chat else policy.encode(head)
    tokens = policy.encode_response(text, end=False)
    episode = Episode(ids, tokens, np.ones(len(tokens), dtype=bool), None, "", "stop")
    one = Batch.from_groups([Group(Ask(Task("t", "q"), 1), (episode,))], torch.float64)
    with torch.no_grad():
        return float(policy.forward(one).logprobs[0].mean())


@pytest.mark.parametrize("chat", [True, False])
def test_it_asks_the_policy_after_each_response(chat: bool) -> None:
    policy, texts = lm(chat), ["42", "7", "1+1"]
    batch = responses(policy, texts)
    parts = {form: SelfVerdict(form, question="ok?", yes="y", no="no") for form in ("verdict", "probability")}
    compute_signals(batch, parts["probability"].needs, Models(policy))
    found = parts["probability"](batch)
    for i, text in enumerate(texts):
        head = f"[u]40+2=|[a]{text}|[u]ok?|[a]" if chat else f"40+2={text}\nok?\n"
        yes, no = (told(policy, head, reply, chat) for reply in ("y", "no"))
        p = math.exp(yes) / (math.exp(yes) + math.exp(no))
        assert float(found.values[i]) == pytest.approx(p, abs=1e-5)
    assert found.terms.keys() == {"self_verdict"} and bool(found.valid.all())
    assert parts["verdict"](batch).values.tolist() == [float(v > 0.5) for v in found.values.tolist()]


def test_who_has_no_reward() -> None:
    policy = lm(True, context=64)
    batch = responses(policy, ["42", "1" * 70, "7"], passed=[True, True, None])
    part = SelfVerdict(question="ok?", yes="y", no="n")
    compute_signals(batch, part.needs, Models(policy))
    made = part(batch)
    assert made.valid.tolist() == [True, False, False] and made.values[1] == 0


def test_yes_must_be_likelier_than_no() -> None:
    """Log-probabilities of yes and no: equal, one likelier by e^1, and not told."""
    batch = responses(lm(False), ["1", "2", "3"])
    for form, want in (("verdict", [0, 1, 0]), ("probability", [0.5, 0.731059, 0])):
        part = SelfVerdict(form)  # type: ignore[arg-type]
        nan = math.nan
        batch.signals[part.replies.name] = torch.tensor([[-1, -1], [-1, -2], [-1, nan]], dtype=torch.float64)
        found = part(batch)
        assert found.values.tolist() == pytest.approx(want, abs=1e-6) and found.valid.tolist() == [True, True, False]


def test_it_is_one_of_the_unsupervised_rewards() -> None:
    assert isinstance(make_method("S023", options={"reward": "self_verification"}).reward, SelfVerdict)
    with pytest.raises(UsageError, match="both"):
        SelfVerdict(yes="Yes", no="Yes")
