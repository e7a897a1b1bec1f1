"""Parts that would undo or ignore each other are refused, and nothing else is: every other pair runs."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from assay import catalogue
from assay.batch import Batch
from assay.errors import UsageError
from assay.learning.signals import compute_signals, wants_reference
from assay.method import Method, make_method
from assay.method.fit import compares_rewards, relabels, scaled_by
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
from assay.registry import build, names
from assay.signals.base import Models
from assay.types import Ask, Episode, Group, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = [row for row in catalogue.rows() if row.factory is not None]
RELABELLED = r"would do nothing: it gives right and wrong responses one number each"
EQUAL = r"would do nothing: the responses that select \w+ keeps of a group have equal rewards"
BY_TOKEN = r"gives each token its own advantage and objective \w+ reads one for the whole"
IGNORED = r"reads no advantages, so credit \w+ would do nothing"

REFUSED = {
    'reward = "S016"': RELABELLED,
    'reward = "S059"': RELABELLED,
    'reward = {name = "noise_corrected", correction = "backward"}': RELABELLED,
    'reward = "S016"\ncredit = "standardised"': RELABELLED,
    'reward = "S016"\ncredit = "reinforce++-baseline"': RELABELLED,
    'name = "S016"\ncredit = "grpo"': RELABELLED,
    'select = "verdict"': EQUAL,
    'select = {name = "verdict", verdict = "wrong"}\ncredit = "rloo"': EQUAL,
    'select = {name = "chain", parts = ["dapo", "verdict"]}': EQUAL,
    'select = "S074"': EQUAL,
    'select = "S163"': EQUAL,
    'select = "S206"': EQUAL,
    'name = "S074"\ncredit = "grpo"': EQUAL,
    'name = "S163"\nobjective = "clip"': EQUAL,
    'reward = {name = "S059", penalty = 2.0}\nselect = "verdict"\ncredit = {name = "grpo", normalise = false}': EQUAL,
    'credit = "reinforce++"\nobjective = "gspo"': BY_TOKEN,
    'credit = "reinforce++"\nobjective = "gmpo"': BY_TOKEN,
    'credit = "reinforce++"\nobjective = "response"': BY_TOKEN,
    'credit = "gae"\nobjective = "gspo"': BY_TOKEN,
    'credit = "S017"\nobjective = "gspo"': BY_TOKEN,
    'credit = "S205"\nobjective = "gmpo"': BY_TOKEN,
    'credit = "rloo"\nobjective = "dpo"': IGNORED,
    'credit = "grpo"\nobjective = "sft"': IGNORED,
    'name = "S017"\nobjective = "S163"': IGNORED,
    'credit = "S081"': "objective 'S081' trains, and ClippedSurrogate trains no self_verdict",
    'credit = "S081"\nobjective = "gspo"': "take both",
    'credit = "S002"': "rollout 'single_turn' cuts none; take rollout 'anytime'",
    'credit = "brpo"': "cuts none",
    'name = "S002"\nrollout = "single_turn"': "cuts none",
    'credit = "S074"\nreward = "majority"': "reads verdicts and no rewards",
}
"""Settings under ``[method]`` -> what is said of them."""

FINE = [
    'reward = {name = "S016", by = {check = [0.1, 0.2]}}',
    'reward = "S016"\ncredit = "rloo"',
    'reward = "S059"\ncredit = {name = "grpo", normalise = false}',
    'name = "S059"\ncredit = "grpo"',
    'reward = "S059"\ncredit = "reinforce++"',
    'select = "verdict"\nobjective = "sft"',
    'select = "verdict"\nreward = ["verdict"]',
    'select = "verdict"\ncredit = "reinforce"',
    'select = {name = "S206", draw = "all"}',
    'name = "S206"\ncredit = "grpo"',
    'name = "S074"\nselect = "all"',
    'credit = "reinforce++"\nobjective = "gspo_token"',
    'credit = "reinforce++-baseline"\nobjective = "gspo"',
    'credit = "S081"\nobjective = "S081"',
    'credit = "S081"\nobjective = "S081"\nselect = "verdict"',
    'credit = "S002"\nrollout = "anytime"',
    'credit = "S074"\nreward = "majority"\nselect = "dapo"',
]


def of(text: str) -> Method:
    table = tomllib.loads(text)
    return make_method(table.pop("name", "grpo"), **table)


@pytest.mark.parametrize("text", REFUSED)
def test_what_would_do_nothing_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[text]) as caught:
        of(text)
    said = str(caught.value)
    assert "\n" not in said and "; " in said, "it does not say what to use instead"


@pytest.mark.parametrize("text", FINE)
def test_what_can_teach_something_is_not(text: str) -> None:
    assert isinstance(of(text), Method)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
def test_no_paper_is_refused_its_own_parts(row: catalogue.PaperRow) -> None:
    """Naming a method's own parts once more changes nothing, so there is nothing to refuse."""
    try:
        own = row.factory() if row.factory is not None else None
    except (TypeError, UsageError):
        pytest.skip("it wants to be told something")
    if isinstance(own, Method):
        again = make_method(own, reward=own.reward, select=own.select, rollout=own.rollout)
        assert again.parts.keys() == own.parts.keys()


def judged(seed: int, right: Callable[[int], bool | None]) -> Batch:
    """Two groups of six responses of one to five tokens."""
    rng = np.random.default_rng(seed)
    groups = []
    for name in "ab":
        episodes = []
        for n in rng.integers(1, 6, 6).tolist():
            zeros = np.zeros(n, dtype=np.int64)
            episodes.append(Episode(zeros[:0], zeros, zeros == 0, np.full(n, -1.0), "", "eos"))
        verdicts = tuple(Verdict(float(bool(p)), p) for p in map(right, range(6)))
        groups.append(Group(Ask(Task(name, "?"), 6), tuple(episodes), verdicts))
    batch = Batch.from_groups(groups, torch.float64)
    batch.signals = {"self_verdict": torch.linspace(-0.1, 1.2, 12).double(), "last_token_phase": torch.full((12,), 2.0)}
    return batch


def credits() -> dict[str, Any]:
    """Every credit that is made from its name or its paper's, each class and setting once."""
    apart = ("segment_gain", "class_balanced", "checklist", "perception_gate", "by_kind")
    found = {name: build("credit", name) for name in names("credit") if name not in apart}
    for row in ROWS:
        if row.id in ("S020", "S102", "S164"):  # they have what stands apart
            continue
        try:
            made = row.factory() if "credit" in row.seams and row.factory is not None else None
        except (TypeError, UsageError):
            continue
        if isinstance(made, Method) and not any(repr(made.credit) == repr(known) for known in found.values()):
            found[row.id] = made.credit
    return found


CREDITS = credits()
SCALED = [name for name, c in CREDITS.items() if scaled_by(c) is not None]
COMPARING = [name for name, c in CREDITS.items() if compares_rewards(c)]


@pytest.mark.parametrize(
    "reward", [{"name": "noise_corrected"}, {"name": "noise_corrected", "correction": "backward"}, "S059"]
)
@pytest.mark.parametrize("name", SCALED)
def test_relabelling_does_nothing_where_it_is_said_to(name: str, reward: Any) -> None:
    """The advantages are those of the bare verdict, but for the epsilon beside the deviation."""
    part = catalogue.make(reward).reward if isinstance(reward, str) else build("reward", reward)
    assert relabels(part, within_groups=False)
    for seed in range(3):
        passed = (np.random.default_rng(seed).random(6) < 0.4).tolist()
        found, plain = judged(seed, passed.__getitem__), judged(seed, passed.__getitem__)
        for batch, mine in ((found, part), (plain, build("reward", "verdict"))):
            batch.rewards = mine(batch).values
            batch.advantages = CREDITS[name](batch)
        small = getattr(CREDITS[name], "epsilon", 0) < 1e-5
        assert torch.allclose(found.advantages, plain.advantages, atol=1e-5 if small else 1e-3)


def test_relabelling_does_something_elsewhere() -> None:
    part = build("reward", "noise_corrected")
    for credit in ("reinforce", "rloo", {"name": "grpo", "normalise": False}, "opo"):
        found, plain = judged(0, lambda i: i < 2), judged(0, lambda i: i < 2)
        found.rewards, plain.rewards = part(found).values, build("reward", "verdict")(plain).values
        made = build("credit", credit)
        assert scaled_by(made) is None
        assert made.summary["normalisation"] == "none"
        if credit == "reinforce":
            assert not torch.allclose(made(found), made(plain))
    rated = build("reward", {"name": "noise_corrected", "by": {"check": (0.1, 0.2)}})
    assert not relabels(rated, within_groups=True)


@pytest.mark.parametrize("verdict", ["right", "wrong"])
@pytest.mark.parametrize("name", COMPARING)
def test_one_verdict_leaves_no_advantage_where_it_is_said_to(name: str, verdict: str) -> None:
    batch = judged(4, lambda i: [True, False, None][i % 3])
    make_method(reward="verdict").worth(batch)
    batch.weights = build("select", {"name": "verdict", "verdict": verdict})(batch)
    assert bool(batch.active.any())
    assert not CREDITS[name](batch).any()


def test_the_lists_are_those_of_the_field() -> None:
    assert {"grpo", "standardised", "reinforce++-baseline", "S059"} <= {*SCALED}
    assert not {"rloo", "opo", "gpg", "reinforce", "reinforce++", "gae", "S016", "S097"} & {*SCALED}
    assert {"grpo", "rloo", "opo", "gpg", "standardised", "log_mean_exp", "S059"} <= {*COMPARING}
    assert not {"reinforce", "S074", "gae", "brpo", "S081", "S206"} & {*COMPARING}


# Every pair of a credit and an objective.

NANO = {"source": "nano", "nano": {"hidden": 16, "layers": 2, "heads": 2, "context": 64}}
NOT_ALONE = (
    "S007",
    "S044",
    "S068",
    "S075",
    "S086",
    "S090",
    "S101",
    "S118",
    "S133",
    "S157",
    "S160",
    "S169",
    "S177",
    "S194",
    "S196",
    "S209",
    "S223",
)
"""Papers whose objectives are not to be had without a judge, an engine, a scorer, tasks or a policy of theirs."""
OBJECTIVES = [
    *(name for name in names("objective") if name not in ("soft_bins", "group_ranking", "newton")),
    *(row.id for row in ROWS if "objective" in row.seams and row.id not in NOT_ALONE),
]


@pytest.fixture(scope="module")
def policy() -> CausalLM:
    torch.manual_seed(0)
    found = CausalLM.load(ModelConfig(**NANO), 0)
    found.module.double()
    return found


def sampled(policy: CausalLM) -> Batch:
    """Two groups, right, wrong and undecided, as a rollout leaves them."""
    rng, groups = np.random.default_rng(0), []
    for lengths, right in (([3, 5, 2, 4], [True, False, None, True]), ([4, 1, 6, 2], [False, False, True, False])):
        prompt, episodes, verdicts = policy.encode("1+2="), [], []
        for n, passed in zip(lengths, right, strict=True):
            tokens = rng.integers(4, 14, n)
            logprobs = (-2.5 + 0.2 * rng.standard_normal(n)).astype(np.float32)
            entropies = (2 + 0.1 * rng.standard_normal(n)).astype(np.float32)
            mask = np.ones(n, dtype=bool)
            episodes.append(Episode(prompt, tokens, mask, logprobs, policy.decode(tokens), "eos", entropies))
            verdicts.append(Verdict(float(bool(passed)), passed, {"a": float(bool(passed))}))
        task = Task(f"t{len(groups)}", "1+2=", reference="3", solution="3")
        groups.append(Group(Ask(task, len(lengths)), tuple(episodes), tuple(verdicts)))
    return Batch.from_groups(groups, torch.float64)


@functools.cache
def pair(credit: str, objective: str) -> Method | None:
    """Both on top of the default, with the rollout that the credit is about; nothing where the pair is refused."""
    rollout = "anytime" if credit in ("brpo", "S002") else None
    try:
        return make_method("grpo", credit=credit, objective=objective, rollout=rollout)
    except UsageError as error:
        if not re.search("would do nothing|each token its own", str(error)):
            raise
        return None


def with_signals(part: Any, policy: CausalLM) -> Batch:
    """The batch with every signal that a credit or objective reads, and its rewards."""
    batch, method = sampled(policy), Method(**{"objective" if hasattr(part, "live") else "credit": part})
    models = Models(policy, policy.twin() if wants_reference(method.needs) else None, encode=policy.encode)
    torch.manual_seed(0)
    for learner in method.learners:
        learner.start(models)
    compute_signals(batch, method.needs, models)
    batch.live = models.quantities(batch, {*method.live, "logprobs"})
    return method.worth(batch)


@pytest.fixture(scope="module")
def read(policy: CausalLM) -> dict[str, tuple[Any, Batch]]:
    """Each objective, and a batch with what it reads."""
    parts = {o: catalogue.make(o).objective if o[0] == "S" else build("objective", o) for o in OBJECTIVES}
    return {name: (part, with_signals(Live(part), policy)) for name, part in parts.items()}


class Live:
    """An objective, told from a credit."""

    def __init__(self, part: Any):
        self.part, self.live = part, getattr(part, "live", frozenset())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.part, name)


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("credit", CREDITS)
def test_a_pair_is_refused_or_runs(
    credit: str, every: int, policy: CausalLM, read: dict[str, tuple[Any, Batch]]
) -> None:
    """With each ``every``-th objective: finite advantages, loss and gradient, or a line that says why not."""
    part, first = CREDITS[credit], list(CREDITS).index(credit) % every
    batch = with_signals(part, policy)
    batch.signals["baseline_rewards"] = torch.ones(len(batch), dtype=torch.float64)
    own = dict(batch.signals)
    for name, (objective, seen) in [*read.items()][first::every]:
        if pair(credit, name) is None:
            continue
        batch.weights = torch.ones_like(batch.weights)
        batch.signals, batch.live = {**own, **seen.signals}, {k: v.clone() for k, v in seen.live.items()}
        batch.advantages, batch.whole = part(batch), batch.whole | seen.whole
        batch.totals = batch.count()
        assert bool(batch.advantages.isfinite().all()), name
        getattr(objective, "prepare", lambda _: None)(batch)
        leaves = [v.requires_grad_() for v in batch.live.values() if v.is_floating_point()]
        value = objective(batch.live["logprobs"], batch).value
        assert bool(value.isfinite()), name
        found = torch.autograd.grad(value, leaves, allow_unused=True) if value.requires_grad else ()
        assert all(g is None or bool(g.isfinite().all()) for g in found), name


def test_pairs_are_refused_by_what_the_parts_say_of_themselves() -> None:
    """Counted from the parts' attributes: nothing is refused by name but what has a check of its own."""
    methods: Mapping[str, Any] = {
        o: catalogue.make(o).objective if o[0] == "S" else build("objective", o) for o in OBJECTIVES
    }
    for credit, made in CREDITS.items():
        token = getattr(made, "level", "response") == "token"
        for objective, loss in methods.items():
            reads = getattr(loss, "reads", "tokens")
            trains = {getattr(n, "name", n) for n in getattr(loss, "needs", ())}
            lacking = getattr(made, "beside", None) not in (None, *trains)
            refused = reads == "nothing" or (reads == "response" and token) or lacking
            assert (pair(credit, objective) is None) == refused, (credit, objective)
        assert any(pair(credit, objective) for objective in methods), f"no objective takes {credit}"
