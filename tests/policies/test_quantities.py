"""Quantities beside log-probabilities, against transformers' own logits and against sums over a tree's children."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny import TOKENIZER, VOCABULARY, batch_of, episode, ids, plain_logits, tiny

from assay.policies.base import QUANTITIES
from assay.policies.causal_lm import CausalLM
from assay.policies.logprobs import Head
from assay.policies.statistics import STATISTICS, statistics
from assay.policies.tabular import TabularPolicy, Tree
from assay.signals.base import Models, with_prompts

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES = [
    "entropy",
    "self_certainty",
    "logit",
    "mean_logprob",
    "probability_gap",
    "candidate_logprobs",
    "hidden",
    "hidden@0.5",
]


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    return CausalLM(tiny("llama"), TOKENIZER)


def episodes() -> list:
    rng = np.random.default_rng(0)
    prompts = [ids(rng, 4), ids(rng, 6)]
    return [episode(prompts[i % 2], ids(rng, n)) for i, n in enumerate((3, 1, 0, 5))]


def test_a_causal_model(policy: CausalLM) -> None:
    made = episodes()
    batch = batch_of(made)
    batch.signals["candidates"] = torch.randint(
        4, len(TOKENIZER), (4, 5, 3), generator=torch.Generator().manual_seed(0)
    )
    temperature = 0.7
    out = policy.forward(batch, [*NAMES, "next_logprob@7", "next_logprob@9"], temperature)
    plain = tiny("llama")
    for i, e in enumerate(made):
        t = len(e.tokens)
        both = torch.from_numpy(np.concatenate([e.prompt, e.tokens]))[None]
        states = plain(both, output_hidden_states=True, use_cache=False)
        z = states.logits[0, len(e.prompt) - 1 :].detach().double()
        log_p = (z / temperature).log_softmax(-1)
        after = z[-1].log_softmax(-1)
        assert out.live["next_logprob@7"][i].item() == pytest.approx(after[7].item(), abs=1e-4)
        assert out.live["next_logprob@9"][i].item() == pytest.approx(after[9].item(), abs=1e-4)
        here, rows = z[:t], log_p[:t]
        tokens = torch.from_numpy(e.tokens)
        expected = {
            "entropy": -(rows.exp() * rows).sum(-1),
            "self_certainty": here.logsumexp(-1) - here.mean(-1),
            "logit": here.gather(-1, tokens[:, None])[:, 0],
            "mean_logprob": rows.mean(-1),
            "probability_gap": -here.softmax(-1).sort(descending=True).values[:, :2].diff()[:, 0],
            "candidate_logprobs": rows.gather(-1, batch.signals["candidates"][i, :t]),
            "hidden": states.hidden_states[-1][0, len(e.prompt) - 1 : -1],
            "hidden@0.5": states.hidden_states[1][0, len(e.prompt) - 1 : -1],
        }
        for name, value in expected.items():
            torch.testing.assert_close(out.live[name][i, :t], value.to(torch.float32), atol=1e-4, rtol=1e-4)
            assert not bool(out.live[name][i, t:].any()), f"{name} is not zero after the end"
        np.testing.assert_allclose(out.logprobs[i, :t].detach(), rows.gather(-1, tokens[:, None])[:, 0], atol=1e-4)


def test_what_is_asked_beside_changes_no_log_probability(policy: CausalLM) -> None:
    batch = batch_of(episodes())
    alone = policy.forward(batch).logprobs
    beside = policy.forward(batch, ["next_logprob@5", "hidden@1.0", "entropy"]).logprobs
    torch.testing.assert_close(alone, beside, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_gradients_through_blocks(name: str) -> None:
    """Finite differences in float64; blocks of one row give what one block of all gives."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(4, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    targets, candidates = torch.tensor([0, 5, 2, 2]), torch.tensor([[0, 1], [2, 3], [4, 5], [0, 0]])

    def of(h: torch.Tensor, w: torch.Tensor, chunk: int = 1 << 20) -> torch.Tensor:
        return statistics(h, Head(w, softcap=3.0), targets, [name], 0.7, candidates, chunk)[name]

    assert torch.autograd.gradcheck(of, (hidden, weight))
    torch.testing.assert_close(of(hidden, weight), of(hidden, weight, 1))


def test_a_tabular_policy() -> None:
    policy = TabularPolicy.random(Tree.of([[0, 1, 0], [1, [0, 1]]]), seed=0)
    batch = batch_of(policy.leaf_episodes(torch.tensor([0, 2, 4])))
    batch.signals["candidates"] = torch.zeros(3, 3, 2, dtype=torch.int64)
    batch.signals["continuations_at"] = torch.tensor([[-1, 0], [1, -1], [0, 1]])
    batch.signals["continuations"] = torch.tensor([[[-1, -1], [0, 2]], [[1, -1], [-1, -1]], [[1, -1], [0, -1]]])
    out = policy.forward(batch, sorted(policy.quantities), 0.5)
    asked = out.live.pop("continuation_logprobs")
    log = policy.log_policy(0.5)
    expected = [[[0, 0], [log[0, 0], log[1, 2]]], [[log[1, 1], 0], [0, 0]], [[log[0, 1], 0], [log[2, 0], 0]]]
    np.testing.assert_allclose(asked.detach(), [[[float(x) for x in c] for c in row] for row in expected])
    assert policy.quantities == QUANTITIES - {"next_logprob"}
    # The second path goes left at the root (two children), then takes the third of three.
    z = [policy.logits[0, :2], policy.logits[1, :3]]
    for t, (logits, token) in enumerate(zip(z, (0, 2), strict=True)):
        log_p = (logits / 0.5).log_softmax(-1)
        expected = {
            "self_certainty": logits.logsumexp(-1) - logits.mean(),
            "logit": logits[token],
            "mean_logprob": log_p.mean(),
            "probability_gap": -logits.softmax(-1).sort(descending=True).values[:2].diff()[0],
            "entropy": -(log_p.exp() * log_p).sum(),
        }
        for name, value in expected.items():
            assert float(out.live[name][1, t]) == pytest.approx(value.item(), abs=1e-12)
        assert out.live["candidate_logprobs"][1, t].tolist() == pytest.approx([float(log_p[0])] * 2)
        assert out.live["hidden"][1, t].tolist() == [float(i == t) for i in range(policy.width)]
    assert not any(bool(v[1, 2:].any()) for v in out.live.values())


def test_candidates_are_drawn_from_the_policy(policy: CausalLM) -> None:
    """Frequencies at each position against probabilities: a chi-square with error rate 1e-4 for fixed seeds."""
    from scipy import stats

    tree = TabularPolicy.random(Tree.of([[0, 1, 0], [1, 0]]), seed=1)
    path = batch_of(tree.leaf_episodes(torch.tensor([1])))
    batch = batch_of(episodes()[:1])
    n = 4000
    for who, of in ((tree, path), (policy, batch)):
        drawn = who.candidates(of, n, 1.3, torch.Generator().manual_seed(0))
        assert drawn.shape == (1, of.tokens.shape[1], n)
        size = int(drawn.max()) + 1
        of.signals["candidates"] = torch.arange(size).expand(1, of.tokens.shape[1], size)
        p = who.forward(of, ["candidate_logprobs"], 1.3).live["candidate_logprobs"][0].exp().detach()
        for t in range(of.tokens.shape[1]):
            counts = torch.bincount(drawn[0, t], minlength=size).numpy()
            expected = p[t].numpy().astype(float) * n
            common = expected > 5
            got = np.append(counts[common], counts[~common].sum())
            want = np.append(expected[common], max(n - expected[common].sum(), 1e-9))
            got, want = (x[want > 1e-6] for x in (got, want))
            assert stats.chisquare(got, want * got.sum() / want.sum()).pvalue > 1e-4


def test_the_likeliest_tokens_are_those_of_transformers_own_logits(policy: CausalLM) -> None:
    made, plain = episodes(), tiny("llama")
    found = policy.likeliest(batch_of(made), 3)
    for row, e in zip(found, made, strict=True):
        want = plain_logits(plain, e.prompt, e.tokens).topk(3, -1).indices
        assert row[: len(e.tokens)].tolist() == want.tolist() and not row[len(e.tokens) :].any()
    assert policy.likeliest(batch_of(made), 10_000).shape[-1] == VOCABULARY
    logits = torch.tensor([[0.0, 1.0, 0.0], [2.0, 3.0, 1.0], [0.0, 0.0, 0.0]])
    tree = TabularPolicy(Tree.of([[0, 1, 0], [1, 0]]), logits)
    best = tree.likeliest(batch_of(tree.leaf_episodes(torch.tensor([1]))), 5)
    assert best[0, 0, 0] == 1 and best[0, 1].tolist() == [1, 0, 2]


def test_a_response_under_another_prompt(policy: CausalLM) -> None:
    made = episodes()
    batch = batch_of(made)
    other = np.array([5, 6, 7])
    moved = with_prompts(batch, [other] * len(batch))
    expected = policy.forward(batch_of([episode(other, e.tokens) for e in made])).logprobs
    got = Models(policy).quantities(moved, ["logprobs", "hidden", "next_logprob@4"])
    torch.testing.assert_close(got["logprobs"], expected.detach(), atol=1e-6, rtol=1e-6)
    assert got["hidden"].shape == (4, 5, policy.width) and got["next_logprob@4"].shape == (4,)
    assert [e.prompt.tolist() for e in batch.episodes] == [e.prompt.tolist() for e in made]
