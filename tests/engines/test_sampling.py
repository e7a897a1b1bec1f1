"""Drawing by inverting a cumulative distribution: the support is exact at both ends, uniforms belong to a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from assay.engines.base import Request, Sampling
from assay.engines.sampling import _invert, draw, sample, uniforms
from assay.errors import RunError

LAST = 1 - 2**-53  # the largest float64 below one, which no float32 can hold
UNIFORMS = st.one_of(st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2**-24, 1 - 2**-25, LAST]), st.floats(0, LAST))


@st.composite
def rows(draw_: st.DrawFn) -> torch.Tensor:
    """One distribution with zeros anywhere, tiny and large entries, and any sum of the order of one."""
    weights = draw_(
        st.lists(st.one_of(st.just(0.0), st.floats(1e-30, 1.0), st.just(1e-7)), min_size=1, max_size=40).filter(
            lambda w: sum(w) > 1e-3
        )
    )
    x = torch.tensor(weights, dtype=torch.float32)
    return x / x.sum()


@given(rows(), UNIFORMS)
def test_an_index_of_probability_zero_is_never_drawn(probabilities: torch.Tensor, u: float) -> None:
    index = int(_invert(probabilities[None], torch.tensor([u], dtype=torch.float64))[0])
    assert 0 <= index < len(probabilities)
    assert probabilities[index] > 0


@given(rows(), st.floats(0, LAST))
def test_the_index_is_where_the_cumulative_sum_passes_the_point(probabilities: torch.Tensor, u: float) -> None:
    index = int(_invert(probabilities[None], torch.tensor([u], dtype=torch.float64))[0])
    exact = np.cumsum(probabilities.double().numpy())
    # In float32 the point may fall on the other side of a boundary, but only by rounding.
    assert u * exact[-1] < exact[index] + 1e-5
    assert index == 0 or u * exact[-1] > exact[index - 1] - 1e-5


def test_ends_of_the_unit_interval() -> None:
    p = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0]).expand(4, -1)
    u = torch.tensor([0.0, 0.25, LAST, 0.25 - 1e-7], dtype=torch.float64)
    assert _invert(p, u).tolist() == [1, 3, 3, 1]


def test_a_long_flat_distribution_stays_in_range() -> None:
    # The float32 sum of 150,000 equal parts is not one.
    p = torch.full((2, 150_000), 1 / 150_000)
    p[:, -1000:] = 0
    drawn = _invert(p, torch.tensor([0.0, LAST], dtype=torch.float64))
    assert drawn[0] == 0
    assert 0 < drawn[1] < 149_000


LOGITS = st.lists(st.one_of(st.floats(-20, 20), st.just(-float("inf"))), min_size=2, max_size=30).filter(
    lambda z: max(z) > -30
)


@given(LOGITS, UNIFORMS, st.integers(0, 35), st.one_of(st.just(1.0), st.floats(0.01, 1.0)))
def test_top_k_and_top_p_keep_the_right_set(logits: list[float], u: float, k: int, p: float) -> None:
    logp = torch.tensor([logits]).log_softmax(-1)
    token = int(draw(logp, torch.tensor([u], dtype=torch.float64), top_k=k, top_p=p)[0])
    probabilities = logp[0].double().exp().numpy()
    assert probabilities[token] > 0
    larger = np.sort(probabilities[probabilities > probabilities[token]])[::-1]
    if k:
        assert len(larger) < k
    mass = np.sort(probabilities)[::-1][: k or None].sum()
    assert larger.sum() < p * mass + 1e-6, "the tokens before it have not reached p"


@pytest.mark.parametrize("k", [0, 1, 3, 6, 99])
@pytest.mark.parametrize("p", [0.01, 0.25, 0.5, 0.65, 0.7, 0.85, 0.96, 1.0])
def test_truncated_distribution_is_the_renormalised_one(k: int, p: float) -> None:
    probabilities = np.array([0.05, 0.3, 0.1, 0.28, 0.02, 0.25])
    order = np.argsort(-probabilities)[: k or None]
    reached = np.cumsum(probabilities[order]) / probabilities[order].sum()
    kept = order[: next(i for i, mass in enumerate(reached, 1) if mass >= p - 1e-9)]
    expected = np.zeros(6)
    expected[kept] = probabilities[kept] / probabilities[kept].sum()

    n = 10_000
    u = (torch.arange(n, dtype=torch.float64) + 0.5) / n
    drawn = draw(torch.from_numpy(probabilities).float().log().expand(n, -1), u, top_k=k, top_p=p)
    frequencies = np.bincount(drawn.numpy(), minlength=6) / n
    assert set(np.flatnonzero(frequencies)) == set(kept)
    np.testing.assert_allclose(frequencies, expected, atol=2e-4)


def test_top_p_of_the_renormalised_top_k_by_hand() -> None:
    logp = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log().repeat(4, 1)
    u = torch.tensor([0.0, 0.57, 0.58, 0.999], dtype=torch.float64)
    # The top three have 0.9; 0.7 of that is 0.63, reached by the first two: 4/7 and 3/7.
    assert draw(logp, u, top_k=3, top_p=0.7).tolist() == [0, 0, 1, 1]


def test_greedy_takes_the_first_of_the_most_likely() -> None:
    logp = torch.tensor([[0.2, 0.4, 0.4], [0.5, 0.3, 0.2]]).log()
    assert draw(logp, torch.tensor([0.99, 0.99], dtype=torch.float64), greedy=True).tolist() == [1, 0]


@pytest.mark.parametrize(("n", "max_tokens"), [(3, 5), (1, 1), (0, 4)])
def test_uniforms_depend_on_the_seed_alone(n: int, max_tokens: int) -> None:
    def made(seed: int, prompt: str = "x") -> np.ndarray:
        return uniforms(Request(prompt, n, Sampling(max_tokens=max_tokens), seed))

    assert made(5).shape == (n, max_tokens)
    assert np.array_equal(made(5), made(5, "another prompt"))
    assert n == 0 or not np.array_equal(made(5), made(6))


def test_more_samples_do_not_change_the_first_ones() -> None:
    few, many = (uniforms(Request("x", n, Sampling(max_tokens=7), 3)) for n in (2, 9))
    assert np.array_equal(few, many[:2])


def test_uniforms_are_uniform() -> None:
    drawn = np.concatenate([uniforms(Request("x", 10, Sampling(max_tokens=10), seed)).ravel() for seed in range(100)])
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert kstest(drawn, "uniform").pvalue > 1e-4  # seeds are fixed; once in 10,000 sets of them


# Everything at once: token, log-probability, entropy


@pytest.mark.slow
@given(rows(), UNIFORMS, st.integers(1, 7))
def test_looking_for_a_block_first_finds_the_same_support(probabilities: torch.Tensor, u: float, block: int) -> None:
    many = probabilities.repeat(8 * block // len(probabilities) + 1)
    index = int(_invert(many[None], torch.tensor([u], dtype=torch.float64), block)[0])
    assert many[index] > 0
    exact = np.cumsum(many.double().numpy())
    assert u * exact[-1] < exact[index] + 1e-4
    assert index == 0 or u * exact[-1] > exact[index - 1] - 1e-4


def test_a_large_vocabulary_is_drawn_from_as_it_is() -> None:
    """Over 100,000 tokens, against NumPy's search in the exact cumulative sums; its last block is not whole."""
    rng = np.random.default_rng(0)
    logits = torch.from_numpy(rng.normal(size=(5, 100_003)) * 3).float()
    u = torch.from_numpy(rng.random(5))
    token, logprob, entropy = sample(logits, u, Sampling())
    logp = logits.double().log_softmax(-1).numpy()
    for i in range(5):
        exact = np.exp(logp[i]).cumsum()
        assert abs(int(token[i]) - int(np.searchsorted(exact, float(u[i]) * exact[-1], side="right"))) <= 3
        assert float(logprob[i]) == pytest.approx(logp[i, token[i]], abs=1e-5)
        assert float(entropy[i]) == pytest.approx(-(np.exp(logp[i]) * logp[i]).sum(), abs=1e-5)


@given(LOGITS, UNIFORMS, st.sampled_from([Sampling(), Sampling(temperature=0), Sampling(top_k=2), Sampling(top_p=0.5)]))
def test_what_is_recorded_is_of_the_whole_distribution(logits: list[float], u: float, sampling: Sampling) -> None:
    z = torch.tensor([logits])
    token, logprob, entropy = sample(z, torch.tensor([u], dtype=torch.float64), sampling)
    logp = z[0].double().log_softmax(-1)
    p = logp.exp()
    assert float(logprob[0]) == pytest.approx(float(logp[token[0]]), abs=1e-5)
    assert float(entropy[0]) == pytest.approx(float(-(p * logp.clamp(min=-1e30)).sum()), abs=1e-5)
    assert p[token[0]] > 0
    if sampling.temperature == 0:
        assert float(logp[token[0]]) == pytest.approx(float(logp.max()), abs=1e-6)


def test_only_what_is_allowed_is_drawn_however_unlikely() -> None:
    z = torch.tensor([[0.0, -200.0, -201.0, 5.0]]).repeat(400, 1)
    allowed = torch.tensor([[False, True, True, False]]).expand(400, -1)
    u = (torch.arange(400, dtype=torch.float64) + 0.5) / 400
    token, logprob, _ = sample(z, u, Sampling(), allowed)
    share = float((token == 1).double().mean())
    assert set(token.tolist()) == {1, 2}
    assert share == pytest.approx(1 / (1 + np.exp(-1)), abs=0.01)
    assert float(logprob[token == 1][0]) == pytest.approx(-205.0067, abs=1e-3)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_no_distribution_is_told(bad: float) -> None:
    with pytest.raises(RunError, match="diverged"):
        sample(torch.tensor([[0.0, bad]]), torch.tensor([0.5], dtype=torch.float64), Sampling())


@pytest.mark.parametrize("u", [0.0, 0.5, LAST])
def test_of_no_probability_the_likeliest_token_stays(u: float) -> None:
    logp = torch.tensor([[0.2, 0.5, 0.3]]).log()
    assert draw(logp, torch.tensor([u], dtype=torch.float64), top_p=0.0).tolist() == [1]
