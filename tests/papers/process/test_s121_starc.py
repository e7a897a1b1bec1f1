"""STARC: worked distances, what they are blind to and what not, and regret that follows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from assay.errors import UsageError
from assay.lab.settings.reasoning.proxies import Setting
from assay.papers.process.s121_starc import MDP, canonicalised, equivalences, of_tree, regret, size, standardised, starc
from assay.policies.tabular import Tree

TWO = MDP(np.array([[[1.0, 0], [0, 1]], [[0.5, 0.5], [0, 1]]]), 0.9)
R1 = np.zeros((2, 2, 2))
R1[0, 1], R1[1, 1] = 1.0, 0.5


def shaped(mdp: MDP, reward, potential):
    return reward + mdp.gamma * np.asarray(potential)[None, None] - np.asarray(potential)[:, None, None]


def some(seed: int, states: int = 3, actions: int = 2):
    rng = np.random.default_rng(seed)
    mdp = MDP(rng.dirichlet(np.ones(states), (states, actions)), 0.8)
    moved = rng.standard_normal((states, actions, states))
    moved -= (mdp.transitions * moved).sum(-1, keepdims=True)
    return mdp, [rng.standard_normal((states, actions, states)) for _ in range(3)], rng.standard_normal(states), moved


def test_the_worked_numbers() -> None:
    """Two states; the advantage of the uniform policy, the same for every successor."""
    c = canonicalised(TWO, R1)
    assert c[:, :, 0] == pytest.approx(np.array([[-0.354839, 0.354839], [-0.177419, 0.177419]]), abs=1e-6)
    assert np.array_equal(c[:, :, 0], c[:, :, 1])
    assert size(TWO, c, "l2") == pytest.approx(0.793443, abs=1e-6)
    # By hand: V = P r + 0.9 P V of the uniform policy.
    v = np.linalg.solve(np.eye(2) - 0.9 * np.array([[0.5, 0.5], [0.25, 0.75]]), [0.5, 0.25])
    assert TWO.values(R1, TWO.uniform) == pytest.approx(v)


def test_the_worked_distances() -> None:
    d = starc()
    other = shaped(TWO, 3 * R1, [2, -1])
    assert d(TWO, R1, other) < 1e-12 and float(np.linalg.norm(R1 - other)) > 5
    assert d(TWO, R1, -R1) == pytest.approx(2) and d(TWO, R1, 0 * R1) == pytest.approx(1)
    on_first = np.zeros_like(R1)
    on_first[0, 0] = 1.0
    assert d(TWO, R1, on_first) == pytest.approx(1.980152, abs=1e-6)
    assert d(TWO, 0 * R1, 0 * R1) == 0 and d(TWO, R1, R1 * 1e6) < 1e-9
    # A shaping alone orders no policies: it is trivial, though it is not zero.
    assert d(TWO, R1, shaped(TWO, 0 * R1, [2, -1])) == pytest.approx(1)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(["val", "minimal"]), st.sampled_from(["l1", "l2", "linf", "gap"]))
def test_it_is_a_pseudometric(seed, canonical, norm) -> None:
    mdp, (a, b, c), potential, moved = some(seed)
    d = starc(canonical, norm)
    assert d(mdp, a, b) == pytest.approx(d(mdp, b, a)) and d(mdp, a, a) == 0
    assert d(mdp, a, c) <= d(mdp, a, b) + d(mdp, b, c) + 1e-9
    assert d(mdp, a, shaped(mdp, 2.5 * a, potential) + moved) < 1e-7, "no policy can tell these apart"
    assert d(mdp, a, b) > 1e-3


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_zero_means_the_same_order_of_policies(seed) -> None:
    """And only that: a reward that orders them otherwise has a distance, one that orders them alike has none."""
    mdp, (a, b, _), potential, moved = some(seed)
    d, policies = starc(), mdp.policies()
    alike = shaped(mdp, 2 * a, potential) + moved
    returns = [np.array([mdp.ret(r, p) for p in policies]) for r in (a, alike, b)]
    assert spearmanr(returns[0], returns[1]).statistic == pytest.approx(1) and d(mdp, a, alike) < 1e-7
    assert (spearmanr(returns[0], returns[2]).statistic == pytest.approx(1)) == (d(mdp, a, b) < 1e-7)
    assert regret(mdp, a, alike) < 1e-7


def test_the_minimal_form_is_the_least_of_its_class() -> None:
    mdp, (a, *_), potential, moved = some(3)
    least = canonicalised(mdp, a, "minimal")
    for factor in (-1.0, 0.1, 2.0):
        other = shaped(mdp, least, factor * potential) + factor * moved
        assert np.linalg.norm(other) > np.linalg.norm(least)
        assert canonicalised(mdp, other, "minimal") == pytest.approx(least, abs=1e-9)
    basis = equivalences(mdp)
    assert np.abs(basis @ least.ravel()).max() < 1e-9
    # Nothing is lost: S A values of state and action, less a potential's S, are left.
    assert len(basis[0]) - np.linalg.matrix_rank(basis) == 3 * 2 - 3


def test_norms() -> None:
    c = canonicalised(TWO, R1)
    assert size(TWO, c, "l1") == pytest.approx(2 * (2 * 0.354839 + 2 * 0.177419), abs=1e-5)
    assert size(TWO, c, "linf") == pytest.approx(0.354839, abs=1e-6)
    returns = [TWO.ret(c, p) for p in TWO.policies()]
    assert size(TWO, c, "gap") == pytest.approx(max(returns) - min(returns))
    for norm in ("l1", "l2", "linf", "gap"):
        assert size(TWO, standardised(TWO, R1, "val", norm), norm) == pytest.approx(1)
    angle = starc(measure="angle")
    assert angle(TWO, R1, -R1) == pytest.approx(np.pi) and angle(TWO, R1, 2 * R1) == pytest.approx(0, abs=1e-7)
    assert angle(TWO, R1, 0 * R1) == pytest.approx(np.pi / 2) and angle(TWO, 0 * R1, 0 * R1) == 0
    for norm in ("l1", "l2", "linf"):
        assert starc(norm=norm)(TWO, R1, -R1) == pytest.approx(2), "by the norm that they were brought to one in"
    chord, arc = starc()(TWO, R1, np.roll(R1, 1, 1)), angle(TWO, R1, np.roll(R1, 1, 1))
    assert chord == pytest.approx(2 * np.sin(arc / 2))
    for norm in ("l1", "linf", "gap"):
        turned = starc(norm=norm, measure="angle")(TWO, R1, np.roll(R1, 1, 1))
        assert turned == pytest.approx(arc), "an angle is the same whatever the lengths"


def test_epic_is_fooled_by_what_cannot_happen() -> None:
    """A reward on transitions that never come about changes no policy, and its distance; the valid forms see none."""
    never = R1.copy()
    never[0, 0, 1] = 5.0
    assert TWO.transitions[0, 0, 1] == 0
    assert [starc(by)(TWO, R1, never) < 1e-9 for by in ("val", "minimal", "epic")] == [True, True, False]
    assert starc("epic")(TWO, R1, never) > 0.3
    assert starc("epic")(TWO, R1, shaped(TWO, R1, [2, -1])) < 1e-9, "of potentials it knows"
    assert starc("none")(TWO, R1, shaped(TWO, R1, [2, -1])) > 0.3


def test_step_rewards_on_a_tree() -> None:
    """The change of a value is no news whatever the prover; a bonus for every step is, and so is a bad judge."""
    tree = Tree.of([[1.0, 0.0], [[0.0, 1.0], 0.0]])
    mdp, outcome, bonus = of_tree(tree, lambda path: 0.5)
    d = starc()
    assert d(mdp, outcome, outcome) == 0
    for seed in range(3):
        prover = np.random.default_rng(seed).dirichlet(np.ones(2), len(mdp.start))
        progress = shaped(mdp, outcome, np.where(mdp.terminal, 0, mdp.values(outcome, prover)))
        assert d(mdp, outcome, progress) < 1e-9
    assert d(mdp, outcome, outcome + bonus) > 0.1 and d(mdp, outcome, bonus) > d(mdp, outcome, outcome + bonus)
    assert mdp.ret(outcome, mdp.best(outcome)) == 1 and mdp.ret(outcome, mdp.uniform) == pytest.approx(0.375)
    assert mdp.ret(bonus, mdp.uniform) == pytest.approx(0.5 * (2 + 0.25))
    ragged, right, _ = of_tree(Tree.of([0.0, [1.0, 0.0, 0.0]]))
    assert ragged.ret(right, ragged.best(right)) == 1 and ragged.ret(right, ragged.best(-right)) == 0


def test_what_follows_an_end_is_nothing() -> None:
    """Rewards of a terminal state are in no form, no return and no size; tokens a node has not are its first one."""
    mdp, right, none = of_tree(Tree.of([0.0, [1.0, 0.0, 0.0]]))
    assert not none.any() and mdp.ret(right, mdp.uniform) == pytest.approx(1 / 9) and len(mdp.policies()) == 3**2
    loud = right.copy()
    loud[mdp.terminal] = 7.0
    assert not mdp.expected(loud)[mdp.terminal].any() and mdp.ret(loud, mdp.uniform) == pytest.approx(1 / 9)
    for form in ("val", "minimal", "none"):
        assert not canonicalised(mdp, loud, form)[mdp.terminal].any()
        assert starc(form)(mdp, right, loud) < 1e-12


def test_rewards_of_any_size_are_brought_to_one() -> None:
    d = starc()
    for factor in (1e-12, 1e12):
        assert d(TWO, R1, factor * R1) < 1e-6 and d(TWO, R1, -factor * R1) == pytest.approx(2)
        assert d(TWO, R1, shaped(TWO, 0 * R1, [2 * factor, -factor])) == pytest.approx(1)


def test_epic_by_its_definition() -> None:
    """Means over all successors, actions and states, written out."""
    mdp, (reward, *_), _, _ = some(5)
    states, actions, _ = reward.shape
    found = canonicalised(mdp, reward, "epic")

    def mean(s):
        return np.mean([reward[s, a, t] for a in range(actions) for t in range(states)])

    whole = np.mean([mean(s) for s in range(states)])
    for s in range(states):
        for a in range(actions):
            for t in range(states):
                want = reward[s, a, t] + 0.8 * mean(t) - mean(s) - 0.8 * whole
                assert found[s, a, t] == pytest.approx(want)


def test_regret() -> None:
    assert regret(TWO, R1, R1) == 0 and regret(TWO, R1, -R1) == pytest.approx(1)
    assert regret(TWO, 0 * R1, R1) == 0
    assert regret(TWO, R1 + 1, -R1) == pytest.approx(1), "of what policies differ by, not of what all of them get"
    # To a trivial reward every policy is as good as any other.
    assert regret(TWO, R1, 0 * R1) == pytest.approx(1)


def test_what_is_no_process() -> None:
    with pytest.raises(UsageError, match="sum to 1"):
        MDP(np.ones((2, 1, 2)), 0.5)
    with pytest.raises(UsageError, match="sum to 1"):
        MDP(TWO.transitions, 0.5, start=np.array([0.5, 0.4]))
    for gamma in (1.0, 1.5, -0.1):
        with pytest.raises(UsageError, match="may not end"):
            MDP(TWO.transitions, gamma)
    # Nobody stays where he is, and yet it goes round for ever; or it ends in two of three states alone.
    round_ = np.array([[[0.0, 1, 0]], [[1, 0, 0]], [[0, 0, 1]]])
    end = np.array([False, False, True])
    either = np.concatenate([np.array([[[0.0, 0, 1]], [[0, 0, 1]], [[0, 0, 1]]]), round_], 1)
    with pytest.raises(UsageError, match="may not end"):
        MDP(either, 1.0, terminal=end)
    for moves in (round_, np.array([[[0.0, 0, 1]], [[0, 1, 0]], [[0, 0, 1]]])):
        with pytest.raises(UsageError, match="may not end"):
            MDP(moves, 1.0, terminal=end)
    line = MDP(np.array([[[0.0, 1, 0]], [[0, 0, 1]], [[0, 0, 1]]]), 1.0, terminal=end)
    assert line.start.tolist() == pytest.approx([1 / 3] * 3)
    blind = MDP(TWO.transitions, 0.0)
    assert blind.actions(R1, blind.uniform) == pytest.approx(blind.expected(R1)), "only the next reward counts"


def test_the_setting_of_its_claim(tmp_path: Path) -> None:
    """Distances of what is left of rewards order proxies about as regret does; those of rewards as they are do not."""
    found = {
        by: np.mean([Setting().run({"canonical": by}, s, tmp_path)["rank"] for s in (0, 1)]) for by in ("val", "none")
    }
    assert found["val"] > 0.6 and found["val"] > found["none"]
