"""Steps of a rectified flow, against numbers worked out by hand and the marginals they must keep."""

import itertools

import numpy as np
import pytest
import torch

from assay.ops.denoising import ends, grid, noised, step, step_kl, step_logprob

X, V, KICK = (torch.tensor([row], dtype=torch.float64) for row in ([1.0, -0.5], [0.3, 0.2], [0.5, -1.0]))


def one(value):
    return torch.tensor([[value]], dtype=torch.float64)


def test_a_noisy_step_in_the_middle():
    mean, deviation = step(X, V, one(0.8), one(0.6), one(0.9), one(0.7))
    after = mean + deviation * KICK
    assert deviation.item() == pytest.approx(0.626099, abs=1e-6)
    assert mean.tolist()[0] == pytest.approx([0.6803, -0.4273], abs=1e-6)
    assert after.tolist()[0] == pytest.approx([0.99335, -1.053399], abs=1e-6)
    old = step_logprob(after, mean, deviation)
    assert old.item() == pytest.approx(-0.763192, abs=1e-6)
    other, _ = step(X, torch.tensor([[0.35, 0.2]]).double(), one(0.8), one(0.6), one(0.9), one(0.7))
    new = step_logprob(after, other, deviation)
    assert new.item() == pytest.approx(-0.768262, abs=1e-6)
    assert (new - old).exp().item() == pytest.approx(0.994943, abs=1e-6)


def test_the_first_step_divides_by_the_next_level():
    mean, deviation = step(X, V, one(1.0), one(0.8), one(0.8), one(0.7))
    assert deviation.item() == pytest.approx(0.7)
    assert mean.tolist()[0] == pytest.approx([0.695, -0.4175])
    after = mean + deviation * KICK
    assert after.tolist()[0] == pytest.approx([1.045, -1.1175])
    assert step_logprob(after, mean, deviation).item() == pytest.approx(-0.874764, abs=1e-6)


@pytest.mark.parametrize("sampler", ["sde", "cps"])
def test_without_noise_a_step_is_the_odes(sampler):
    mean, deviation = step(X, V, one(0.8), one(0.6), one(0.9), one(0.0), sampler)
    assert deviation.item() == 0
    assert mean.tolist()[0] == pytest.approx([0.94, -0.54])


def test_a_step_that_keeps_the_shares_of_data_and_noise():
    mean, deviation = step(X, V, one(0.8), one(0.6), one(0.9), one(0.8), "cps")
    after = mean + deviation * KICK
    assert deviation.item() == pytest.approx(0.570634, abs=1e-6)
    assert mean.tolist()[0] == pytest.approx([0.500535, -0.349289], abs=1e-6)
    assert after.tolist()[0] == pytest.approx([0.785852, -0.919923], abs=1e-6)
    assert step_logprob(after, mean, deviation, "cps").item() == pytest.approx(-0.203514, abs=1e-6)


def test_divergence_from_a_reference_in_closed_form():
    (mean, deviation), (other, _) = (
        step(X, v, one(0.8), one(0.6), one(0.9), one(0.7)) for v in (V, torch.tensor([[0.1, 0.1]]).double())
    )
    found = step_kl(mean, other, deviation[:, 0]).item()
    assert found == pytest.approx(0.003954145, abs=1e-9)
    s, d, sd = 0.8, 0.2, 1.4
    assert found == pytest.approx(d / 2 * (sd * (1 - s) / (2 * s) + 1 / sd) ** 2 * (0.2**2 + 0.1**2))


def test_levels_go_from_noise_to_data():
    assert grid(4).tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert grid(2, 3.0).tolist() == pytest.approx([1, 0.75, 0])
    x0, x1 = ends(noised(X, V, one(0.3)), V - X, one(0.3))
    assert torch.allclose(x0, X) and torch.allclose(x1, V)


@pytest.mark.parametrize(("steps", "noise", "spread"), [(10, 0.0, 0.431), (10, 0.7, 0.480), (50, 0.7, 0.497)])
def test_noise_keeps_the_marginals(steps, noise, spread):
    """Data N(2, .25) has an exact velocity; standard errors of 50,000 draws are .0016 and, of the mean, .0022."""
    rng = torch.Generator().manual_seed(0)
    x, levels = torch.randn(50_000, 1, generator=rng), grid(steps)
    for s, after in itertools.pairwise(levels):
        z, var = x - 2 * (1 - s), (1 - s) ** 2 * 0.25 + s**2
        v = s * z / var - (2 + (1 - s) * 0.25 * z / var)
        column = [part.expand(len(x), 1) for part in (s, after, levels[1], torch.tensor(noise))]
        mean, deviation = step(x, v, *column)
        x = mean + deviation * torch.randn(x.shape, generator=rng)
    assert float(x.std()) == pytest.approx(spread, abs=0.008)
    assert np.isclose(float(x.mean()), 2, atol=0.01)
