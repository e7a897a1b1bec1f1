"""SPAE: the potential, the worked advantages, what they reduce to, and correctness against sequences by themselves."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from scripted import Scripted, ask, judge
from spelled import alone, nano, responses

from assay import catalogue
from assay.batch import Batch
from assay.catalogue.claim import claim_of
from assay.credit.reinforce_pp import ReinforcePlusPlusBaseline
from assay.credit.spae import SPAE, ProbeCorrectness, faded, shaped, step_potential
from assay.engines.base import Sampling
from assay.engines.tabular import TabularEngine, TabularVerifier
from assay.lab.settings.thinking.overthinking import END, Setting
from assay.learning.signals import compute_signals
from assay.method import make_method
from assay.policies.tabular import TabularPolicy, Tree
from assay.registry import build
from assay.rollout.probes import Probe, probes_of
from assay.rollout.single_turn import SingleTurn
from assay.signals.base import Models
from assay.types import Task
from assay.verify.episodes import judge_groups

pytestmark = pytest.mark.usefixtures("one_thread")

NAN = float("nan")
PHI = torch.tensor([[0, 0.1, 0.95, 0.97, 0.96]], dtype=torch.float64)
KNOWN = torch.ones(1, 5, dtype=torch.bool)
G = [-0.368689, -0.243938, 1.337897, -0.344886, -0.380385]


@pytest.mark.parametrize(
    ("acc", "conf", "phi"), [(0, 0, 0), (1, 1, 1), (0, 1, -1), (0.5, 0.5, 0.125), (1, 0, 0.5), (0.1, 0.2, -0.12)]
)
def test_the_potential(acc, conf, phi) -> None:
    assert float(step_potential(torch.tensor(float(acc)), torch.tensor(float(conf)))) == pytest.approx(phi)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_potential_is_bounded(acc, conf) -> None:
    phi = float(step_potential(torch.tensor(acc, dtype=torch.float64), torch.tensor(conf, dtype=torch.float64)))
    assert -1 - 1e-9 <= phi <= 1 + 1e-9


def test_the_worked_example() -> None:
    assert faded(PHI, 0.5, 0.9)[0].tolist() == pytest.approx([1, 1, 1, 0.683940, 0.567668], abs=1e-6)
    assert shaped(PHI, KNOWN)[0].tolist() == pytest.approx(G, abs=1e-6)


def steps(batch, row, phi, at):
    """Give a sample places with these potentials: correctness 1 where confidence says what is left of Phi."""
    found = tuple(Probe(a, (), (), None if p is None else 2 * p - 1) for p, a in zip(phi, at, strict=True))
    batch.episodes[row] = replace(batch.episodes[row], meta={"probes": found})


def credited(batch, phi, at, **options):
    """Advantages for given potentials: with correctness 1, Phi = (conf + 1) / 2."""
    for row, (p, a) in enumerate(zip(phi, at, strict=True)):
        steps(batch, row, p, a)
    width = max(map(len, at))
    batch.signals["probe_correctness"] = torch.ones(len(batch), width, dtype=torch.float64)
    return SPAE(**options)(batch)


def test_advantages_of_the_worked_example(make_batch) -> None:
    """Five steps of one token and an answer, before the tokens of the batch are standardised."""
    batch = make_batch([6, 1], [1.0, 0.0])
    got = credited(batch, [PHI[0].tolist(), []], [[1, 2, 3, 4, 5], []])
    raw = [0.315655, 0.378031, 1.168948, 0.169527, 0.093641, 0.5, -0.5]
    expected = (np.array(raw) - np.mean(raw)) / np.std(raw, ddof=1)
    assert got[batch.mask].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert not got[~batch.mask].any()


def test_without_both_terms_it_is_the_outcome_whitened(make_batch) -> None:
    batch = make_batch([6, 3], [1.0, 0.0])
    got = credited(batch, [PHI[0].tolist(), [0.1, 0.95]], [[1, 2, 3, 4, 5], [1, 2]], alpha=0.0, xi=0.0)
    torch.testing.assert_close(got, ReinforcePlusPlusBaseline()(batch))
    unknown = credited(batch, [[None] * 5, [None] * 2], [[1, 2, 3, 4, 5], [1, 2]])
    torch.testing.assert_close(unknown, ReinforcePlusPlusBaseline()(batch))
    same = credited(batch, [[0.5] * 5, [0.5] * 2], [[1, 2, 3, 4, 5], [1, 2]])
    torch.testing.assert_close(same, ReinforcePlusPlusBaseline()(batch))


def test_bounds_and_mean_are_of_the_batch(make_batch) -> None:
    """One response's scale is the other's; a sample that abstained is no part of either."""
    phi = torch.tensor([[0.0, 0.5], [0.5, 0.25]], dtype=torch.float64)
    known = torch.ones(2, 2, dtype=torch.bool)
    scaled = np.exp(np.array([[1 / 3, 1], [1 / 3, 0]]))
    np.testing.assert_allclose(shaped(phi, known).numpy(), scaled - scaled.mean())
    known[1] = False
    alone_ = np.exp([0, 1])
    np.testing.assert_allclose(shaped(phi, known)[0].numpy(), alone_ - alone_.mean())
    assert not shaped(phi, known)[1].any()
    told = torch.tensor([[0.2, NAN, 0.9, 0.8]], dtype=torch.float64)
    found = shaped(told, torch.ones(1, 4, dtype=torch.bool))[0].tolist()
    assert found[1] == found[2] == 0 and found[0] > 0 > found[3]
    assert faded(told, 0.5, 0.85)[0].tolist() == pytest.approx([1, 1, 1, 1 - 0.5 * (1 - np.exp(-1))])


def test_a_sample_that_abstained_sets_no_bound(make_batch) -> None:
    """Its potentials change by more than any other's, and its tokens have no credit; a place at the threshold of
    saturation leaves what follows as it was."""
    phi, at = [[0.0, 0.75, 0.5], [0.5, 0.5, 0.5]], [[1, 2, 3], [1, 2, 3]]
    two = credited(make_batch([4, 4], [1.0, 0.0]), phi, at, saturation=0.75)
    three = make_batch([4, 4, 4], [1.0, 0.0, 0.0], valid=[True, True, False])
    got = credited(three, [*phi, [-1.0, 1.0, -1.0]], [*at, [1, 2, 3]], saturation=0.75)
    torch.testing.assert_close(got[:2], two)
    assert not got[2].any()
    # D = 0, 0.75, -0.25, 0, 0, 0 is brought to [0, 1]; each f is 1, for 0.75 is not above 0.75.
    gain = np.exp(np.array([0.25, 1, 0, 0.25, 0.25, 0.25]))
    raw = np.array([*(0.5 + 0.5 * (gain - gain.mean())[:3]), 0.5, *(-0.5 + 0.5 * (gain - gain.mean())[3:]), -0.5])
    expected = (raw - raw.mean()) / raw.std(ddof=1)
    assert two.flatten().tolist() == pytest.approx(expected.tolist(), abs=1e-6)


def test_saturation_also_softens_punishment(make_batch) -> None:
    """As the paper has it: f multiplies a negative advantage too."""
    batch = make_batch([3, 3], [0.0, 1.0])
    got = credited(batch, [[0.95, 0.95], [0.0, 0.0]], [[1, 2], [1, 2]], xi=0.0)
    assert 0 > got[0, 1] > got[0, 0] and got[0, 2] == got[0, 0]
    assert got[1, 0] == got[1, 1] == got[1, 2] > 0


def test_correctness_is_the_mean_probability_after_what_was_put() -> None:
    policy = nano()
    batch = responses(policy, ["1+2=3 then 4", "40"], reference="42", stop="length")
    put = tuple(policy.encode_response("<answer>", end=False).tolist())
    for row, at in enumerate(([2, 5], [1])):
        meta = {"probes": tuple(Probe(a, put) for a in at)}
        batch.episodes[row] = replace(batch.episodes[row], meta=meta)
    models = Models(policy, encode=policy.encode, temperature=0.5)
    compute_signals(batch, frozenset({ProbeCorrectness()}), models)
    got = batch.signals["probe_correctness"]
    for row, k, prefix in ((0, 0, "1+"), (0, 1, "1+2=3"), (1, 0, "4")):
        expected = np.exp(alone(policy, prefix + "<answer>", "42")).mean()
        assert got[row, k].item() == pytest.approx(expected, abs=1e-5)
    assert got[1, 1].isnan() and "probe_correctness" in batch.whole
    for reference in ("", None, ["42"], "4" * 200):
        bare = replace_reference(batch, reference)
        assert bool(ProbeCorrectness()(bare, models).isnan().all())
    # As much as the context holds, prompt, prefix and what was put included, and not one token more.
    room = policy.context - len(batch.episodes[1].prompt) - 1 - len(put)
    fits, beyond = (ProbeCorrectness()(replace_reference(batch, "4" * n), models) for n in (room, room + 1))
    assert fits[1, 0].isfinite() and not beyond.isfinite().any()
    bare = replace_reference(batch, "42")
    bare.episodes = [replace(e, meta={}) for e in bare.episodes]
    assert ProbeCorrectness()(bare, models).shape == (2, 0)


def replace_reference(batch, reference):
    tasks = [replace(t, reference=reference) for t in batch.tasks]
    return replace(batch, tasks=tasks, signals={})


def test_how_responses_are_probed() -> None:
    """Steps end in a full stop and a blank line, within the thought; what follows the last is not probed."""
    text = "One.\n\nTwo\n\nthree.\n\nfour#5.\n\n1"
    engine = Scripted([(text, "eos"), ("x0", "eos")], lambda prefix: ("1}", 0.5))
    spec = {**catalogue.make("S052").rollout, "inner": "single_turn", "end": "#"}
    made = build("rollout", spec, sampling=Sampling(50), judge=judge, more=None, curriculum=None)
    [group] = made.collect([ask(2)], engine, np.random.default_rng(0))
    first, second = (probes_of(e) for e in group.episodes)
    assert [p.at for p in first] == [6, 19] and second == ()
    assert all(p.scores == () and p.confidence == pytest.approx(np.exp(-0.5)) for p in first)
    assert [engine.decode(r.prefix) for r in engine.asked if r.prefix] == [
        f"{text[:k]}**Final Answer**\n\\boxed{{" for k in (6, 19)
    ]
    asked = engine.asked[-1]
    assert (asked.n, asked.sampling.max_tokens, asked.sampling.temperature) == (5, 10, 0.6)
    assert [v.passed for v in group.verdicts] == [True, False]


def test_only_what_is_kept_is_probed() -> None:
    """Groups that are all right are replaced before anything is asked of them."""
    engine = Scripted([("a.\n\nb#1", "eos"), ("a.\n\nc#1", "eos"), ("d.\n\ne#1", "eos"), ("d.\n\nf#0", "eos")])
    spec = {**catalogue.make("S052").rollout, "end": "#"}
    made = build("rollout", spec, sampling=Sampling(50), judge=judge, more=lambda: [ask(2)], curriculum=None)
    [group] = made.collect([ask(2)], engine, np.random.default_rng(0))
    assert [e.text for e in group.episodes] == ["d.\n\ne#1", "d.\n\nf#0"]
    assert [engine.decode(r.prefix)[:4] for r in engine.asked if r.prefix] == ["d.\n\n"] * 2
    assert made.metrics()["dynamic/rounds"] == 2


def test_an_engine_without_entropies_tells_no_confidence() -> None:
    engine = Scripted([("a.\n\nb#1", "eos"), ("a.\n\nc#0", "eos")], entropies=False)
    spec = {**catalogue.make("S052").rollout, "inner": "single_turn", "end": "#"}
    made = build("rollout", spec, sampling=Sampling(50), judge=judge, more=None, curriculum=None)
    [group] = made.collect([ask(2)], engine, np.random.default_rng(0))
    assert [p.confidence for e in group.episodes for p in probes_of(e)] == [None, None]


def test_confidence_and_correctness_on_a_tree() -> None:
    """With one answer token both are exact: exp(-H) of the node at the probe's temperature, and its probability."""
    setting = Setting(noise=0.0)
    policy, key = setting.policy(2)
    method = make_method(**{**claim_of("S052").arms["spae"], "rollout": {"inner": "single_turn", **LAB}})
    verifier = TabularVerifier(policy.tree)
    made = build(
        "rollout",
        method.rollout,
        sampling=Sampling(7),
        judge=partial(judge_groups, verifier),
        more=None,
        curriculum=None,
    )
    task = Task("0", "", str(key), kind="tabular")
    groups = made.collect([replace(ask(6), task=task)], TabularEngine(policy), np.random.default_rng(0))
    batch = Batch.from_groups(groups, torch.float64)
    compute_signals(batch, method.needs, Models(policy))
    warm, plain = policy.node_entropy(0.6).detach(), policy.log_policy().exp().detach()
    for i, episode in enumerate(batch.episodes):
        for k, probe in enumerate(probes_of(episode)):
            node = policy.tree.node([*episode.tokens[: probe.at].tolist(), END])
            assert node is not None
            assert probe.confidence == pytest.approx(float(torch.exp(-warm[node])), rel=1e-5)
            assert batch.signals["probe_correctness"][i, k].item() == pytest.approx(float(plain[node, key]))
    method.value(batch)
    assert bool(batch.advantages.isfinite().all())


LAB = {"steps": {"by": "fixed", "size": 1}, "end": "0", "forced": "0", "header": "", "probes": 2, "probe_tokens": 1}


def test_the_gradient_is_that_of_the_advantages() -> None:
    """Finite differences of the objective on a tree, the advantages held."""
    policy = TabularPolicy(Tree.uniform(2, 2, [0.0, 1.0, 0.0, 1.0]), torch.randn(3, 2, dtype=torch.float64))
    [group] = SingleTurn(Sampling(2)).collect(
        [replace(ask(6), task=Task("0", ""))], TabularEngine(policy), np.random.default_rng(1)
    )
    batch = Batch.from_groups(judge_groups(TabularVerifier(policy.tree), [group]), torch.float64)
    method = catalogue.make("S052", alpha=0.5)
    batch.signals["probe_correctness"] = torch.zeros(6, 0, dtype=torch.float64)
    method.value(batch)

    def loss():
        return method.objective(policy.forward(batch).logprobs, batch).value

    loss().backward()
    for i in range(3):
        for a in range(2):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    policy.logits[i, a] += sign * 1e-6
                values.append(float(loss().detach()))
                with torch.no_grad():
                    policy.logits[i, a] -= sign * 1e-6
            assert policy.logits.grad is not None
            assert float(policy.logits.grad[i, a]) == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)


def test_the_credit_brings_its_rollout() -> None:
    method = make_method("grpo", credit="S052")
    assert isinstance(method.credit, SPAE) and method.rollout["name"] == "probed" and not method.rollout["score"]
    made = catalogue.make("S052")
    assert made.objective.clip_high == 0.28 and made.credit == SPAE() and made.group_relative
    # Five answers of ten tokens at 0.6 after each step, whichever way it is asked for; ten rounds at most.
    for rollout in (method.rollout, made.rollout):
        assert [rollout[k] for k in ("probes", "probe_tokens", "temperature")] == [5, 10, 0.6]
    assert made.rollout["inner"] == {"name": "dynamic", "rounds": 10}


@pytest.mark.slow
def test_a_policy_is_right_sooner_for_the_steps_credit() -> None:
    """20 steps at the same rate, with the steps' credit and without."""
    steps, plain = (learned("S052", arm, steps=20) for arm in ("spae", "outcome"))
    assert steps["right"] > plain["right"] + 0.02 and steps["right/area"] > plain["right/area"]
