"""The likelihood of a reference answer, against one separate sequence for each prefix."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tiny import batch_of

from assay.batch import Batch
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood, mean_logprob, mean_probability, total_logprob
from assay.signals.steps import Steps
from assay.types import Ask, Episode, Group, Task

pytestmark = pytest.mark.usefixtures("one_thread")

NANO = {"hidden": 16, "layers": 2, "heads": 2, "context": 96, "alphabet": "0123456789+=<>/answer \n"}


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    made = CausalLM.load(ModelConfig(source="nano", nano=NANO), 0)
    for parameter in made.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return made


def batch(policy: CausalLM, texts: list[str], reference: object = "42", stop: str = "eos") -> Batch:
    prompt = policy.encode("40+2=")
    episodes = []
    for text in texts:
        tokens = policy.encode_response(text, end=stop == "eos")
        episodes.append(Episode(prompt, tokens, np.ones(len(tokens), bool), None, text, stop))  # type: ignore[arg-type]
    return Batch.from_groups([Group(Ask(Task("t", "40+2=", reference), len(texts)), tuple(episodes))])


def alone(policy: CausalLM, prefix: str, told: str, head: str = "<answer>") -> list[float]:
    """Log-probabilities of ``told`` after prompt, prefix and head, each as a sequence of its own."""
    before = np.concatenate([policy.encode("40+2="), policy.encode_response(prefix + head, end=False)])
    tokens = policy.encode_response(told, end=False)
    one = batch_of([Episode(before, tokens, np.ones(len(tokens), bool), None, "", "stop")])
    return policy.forward(one).logprobs[0].tolist()


def test_after_the_reasoning(policy: CausalLM) -> None:
    texts = ["4+2\n<answer>6</answer>", "1<answer>0</answer>2<answer>42", "42", "<answer>"]
    found = ReferenceLikelihood(open="<answer>")(batch(policy, texts), Models(policy))
    assert found.shape == (4, 1, 2)
    for i, prefix in enumerate(["4+2\n", "1<answer>0</answer>2", None, ""]):
        if prefix is None:
            assert bool(found[i].isnan().all())
        else:
            np.testing.assert_allclose(found[i, 0], alone(policy, prefix, "42"), atol=1e-5)


def test_other_places(policy: CausalLM) -> None:
    made = batch(policy, ["4+2\n\n6=6\n\n7<answer>6</answer>"])
    models = Models(policy)
    [[nothing]] = ReferenceLikelihood(after="nothing", open="<answer>")(made, models)
    np.testing.assert_allclose(nothing, alone(policy, "", "42"), atol=1e-5)
    [[whole]] = ReferenceLikelihood(after="response", open="\n")(made, models)
    np.testing.assert_allclose(whole, alone(policy, "4+2\n\n6=6\n\n7<answer>6</answer>", "42", "\n"), atol=1e-5)
    [steps] = ReferenceLikelihood(after="steps", steps=Steps("blank_line"), open="<answer>")(made, models)
    for row, prefix in zip(steps, ["", "4+2\n\n", "4+2\n\n6=6\n\n", "4+2\n\n6=6\n\n7"], strict=True):
        np.testing.assert_allclose(row, alone(policy, prefix, "42"), atol=1e-5)
    [tokens] = ReferenceLikelihood(after="tokens", every=4, open="<answer>")(made, models)
    for row, prefix in zip(tokens, ["", "4+2\n", "4+2\n\n6=6", "4+2\n\n6=6\n\n7"], strict=True):
        np.testing.assert_allclose(row, alone(policy, prefix, "42"), atol=1e-5)
    [[closed]] = ReferenceLikelihood(closed=True, open="<answer>")(made, models)
    np.testing.assert_allclose(closed, alone(policy, "4+2\n\n6=6\n\n7", "42</answer>"), atol=1e-5)
    [[plain]] = ReferenceLikelihood(required=False, open="<answer>")(batch(policy, ["4+2"]), models)
    np.testing.assert_allclose(plain, alone(policy, "4+2", "42"), atol=1e-5)


@pytest.mark.parametrize("reference", ["", None, {"a": 1}, True, "1" * 90])
def test_where_there_is_nothing_to_tell(policy: CausalLM, reference: object) -> None:
    found = ReferenceLikelihood(open="<answer>")(batch(policy, ["4<answer>6", "5<answer>"], reference), Models(policy))
    assert found.shape[0] == 2 and bool(found.isnan().all())


def test_a_prefix_that_leaves_no_room_is_left_out(policy: CausalLM) -> None:
    made = batch(policy, ["1" * 60 + "<answer>", "1<answer>"])
    found = ReferenceLikelihood(close="</answer>" * 2, open="<answer>")(made, Models(policy))
    assert not bool(found[1].isnan().any())
    made = batch(policy, ["1" * 82 + "<answer>", "1<answer>"], stop="length")
    found = ReferenceLikelihood(open="<answer>")(made, Models(policy))
    assert bool(found[0].isnan().all()) and not bool(found[1].isnan().any())


def test_what_is_made_of_it() -> None:
    l = torch.tensor([[-0.1, -0.2, -0.3, torch.nan], [torch.nan] * 4])  # noqa: E741
    assert total_logprob(l)[0].item() == pytest.approx(-0.6) and math.exp(-0.6) == pytest.approx(0.548812, abs=1e-6)
    assert mean_probability(l)[0].item() == pytest.approx(0.821462, abs=1e-6)
    assert mean_logprob(l)[0].item() == pytest.approx(-0.2)
    assert all(bool(f(l)[1].isnan()) for f in (total_logprob, mean_probability, mean_logprob))


def test_it_is_not_cut_to_the_length_of_responses(policy: CausalLM) -> None:
    """A second dimension that happens to be as long as the responses is no dimension of tokens."""
    made = batch(policy, ["4", "44444"])
    width = made.tokens.shape[1]
    made.signals |= {"probes": torch.zeros(2, width, 3), "tokens": torch.zeros(2, width, 3)}
    made.whole = frozenset({"probes"})
    short = made.rows(torch.tensor([0]))
    assert (short.signals["probes"].shape[1], short.signals["tokens"].shape[1]) == (width, 2)


def test_another_model_reads_the_texts_in_tokens_of_its_own(policy: CausalLM) -> None:
    torch.manual_seed(1)
    nano = NANO | {"alphabet": "\n >=<+/rewsna9876543210", "hidden": 24}
    judge = CausalLM.load(ModelConfig(source="nano", nano=nano), 1)
    for parameter in judge.module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    made = batch(policy, ["4+2\n\n6=6<answer>6</answer>", "42", "1<answer>7"])
    found = ReferenceLikelihood(after="steps", steps=Steps("blank_line"), model=judge, open="<answer>")(
        made, Models(policy)
    )
    assert found.shape == (3, 3, 2) and bool(found[1].isnan().all()) and bool(found[2, 2].isnan().all())
    for i, prefixes in ((0, ["", "4+2\n\n", "4+2\n\n6=6"]), (2, ["", "1"])):
        for row, prefix in zip(found[i], prefixes, strict=False):
            np.testing.assert_allclose(row, alone(judge, prefix, "42"), atol=1e-5)
    # What one model has no room for is left out, whatever the other has.
    torch.manual_seed(1)
    short = CausalLM.load(ModelConfig(source="nano", nano=NANO | {"context": 20}), 1)
    kept = ReferenceLikelihood(model=short, open="<answer>")(made, Models(policy))
    assert bool(kept[0].isnan().all()) and bool(kept[2].isfinite().all())


def test_the_same_weights_say_the_same_elsewhere(policy: CausalLM) -> None:
    made = batch(policy, ["4+2\n<answer>6</answer>", "1<answer>0</answer>2<answer>42"])
    here, there = (ReferenceLikelihood(model=m, open="<answer>")(made, Models(policy)) for m in ("policy", policy))
    torch.testing.assert_close(here, there, atol=1e-5, rtol=0)
