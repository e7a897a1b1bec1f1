"""R3: weights by what the reasoning changes, key tokens, lengths, and the filter of prompts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from claimed import learned
from running import recipe, tables
from spelled import alone, nano, responses

from assay import catalogue
from assay.batch import Batch
from assay.config import load_config
from assay.console import Reporter
from assay.errors import RunError, UsageError
from assay.learning.signals import compute_signals
from assay.papers.rewards.s104_dro import FULL, ReflectionReward, repaired
from assay.records.surveys import read_survey, survey_file
from assay.registry import build
from assay.select.filters.key_spread import KeySpread
from assay.select.filters.reference_rank import ReferenceRank
from assay.signals.base import Models
from assay.signals.likelihood import ReferenceLikelihood
from assay.signals.likelihoods.reference_ranks import ReferenceRanks
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.training.build import build_trainer
from assay.types import Task

pytestmark = pytest.mark.usefixtures("one_thread")
L = torch.tensor([[-0.1, -2, -0.2], [-0.1, -0.3, -0.2], [-0.1, -1, -0.2], [-0.1, -3, -0.2]], dtype=torch.float64)
BARE = torch.tensor([[-0.1, -2.5, -0.25]], dtype=torch.float64).expand(4, -1)


def test_the_worked_example() -> None:
    assert L.std(0, correction=0).tolist() == pytest.approx([0, 1.020723, 0], abs=1e-6)
    assert ReflectionReward().reflect(L, BARE).tolist() == pytest.approx([0.5, 2.2, 1.5, -0.5])
    plain = ReflectionReward("sum").reflect(L, BARE).tolist()
    assert plain == pytest.approx([(0.5 + 0.05) / 3, (2.2 + 0.05) / 3, (1.5 + 0.05) / 3, (-0.5 + 0.05) / 3])
    # The share of the tokens is at least one of them, whichever it is.
    assert ReflectionReward(top=0.01).reflect(L, BARE).tolist() == pytest.approx([0.5, 2.2, 1.5, -0.5])
    # Where the reasoning makes no difference nothing is told.
    assert not ReflectionReward().reflect(L[:1].expand(4, -1), BARE).any()


def test_only_the_top_tokens() -> None:
    logs = torch.tensor([[-1.0, -1.0, -1.0], [-3.0, -1.5, -1.0]], dtype=torch.float64)
    bare = torch.zeros(2, 3, dtype=torch.float64)
    assert ReflectionReward(top=0.34).reflect(logs, bare).tolist() == pytest.approx([-1, -3])
    w = 1 / 1.25
    assert ReflectionReward().reflect(logs, bare).tolist() == pytest.approx([-1, -3 * w - 1.5 * (1 - w)])


def test_what_follows_an_unlikely_key_token_counts_as_unlikely() -> None:
    p = torch.tensor([[0.2] + [1.0] * 5], dtype=torch.float64)
    keys = torch.tensor([True] + [False] * 5)
    got = repaired(p, keys, 0.5).exp()[0].tolist()
    assert got[0] == 1 and [got[j] for j in (1, 2, 5)] == pytest.approx([0.514775, 0.705696, 0.934332], abs=1e-6)
    # Two keys multiply; a certain key changes nothing.
    two = repaired(p.new_tensor([[0.2, 0.5, 1.0]]), torch.tensor([True, True, False]), 0.5).exp()[0, 2]
    assert two.item() == pytest.approx(0.705696 * (0.5 + 0.5 * (1 - math.exp(-0.5))), abs=1e-6)
    assert not repaired(p, torch.tensor([False] + [True] * 5), 0.5).any()
    # Spreads 0.6931 and 0.2027 weigh 0.7737 and 0.2263; the second token is 0.5148 or 0.8787 as likely for the first.
    logs = p.new_tensor([[0.2, 0.9], [0.8, 0.6]]).log()
    want = [
        0.773713 * math.log(q) + 0.226287 * (math.log(second) + math.log(factor))
        for q, second, factor in ((0.2, 0.9, 0.514775), (0.8, 0.6, 0.878694))
    ]
    got = ReflectionReward("keys").reflect(logs, 0 * logs - 1)
    assert got.tolist() == pytest.approx(want, abs=1e-5)
    first = ReflectionReward("keys", top=0.5).reflect(logs, 0 * logs)
    assert first.tolist() == pytest.approx([math.log(0.2), math.log(0.8)])


def test_a_key_token_among_many_is_seen() -> None:
    """Correlation with the quality of the reasoning, over groups of 16: one token of 200 depends on it."""
    rng = np.random.default_rng(0)
    seen = {"weights": [], "sum": []}
    for _ in range(50):
        quality = rng.standard_normal(16)
        logs = torch.from_numpy(-1 + 0.05 * rng.standard_normal((16, 200)))
        logs[:, 17] = torch.from_numpy(-3 + quality)
        for form, found in seen.items():
            got = ReflectionReward(form).reflect(logs, torch.zeros_like(logs))
            found.append(np.corrcoef(got.numpy(), quality)[0, 1])
    assert np.mean(seen["weights"]) > 0.9 > 0.85 > np.mean(seen["sum"])


def rewarded(policy, batch: Batch, **options):
    reward = ReflectionReward(**{"open": "<answer>"} | options)
    compute_signals(batch, reward.needs, Models(policy, policy, encode=policy.encode))
    return reward(batch)


def test_in_a_language_model() -> None:
    policy = nano()
    texts = ["1+1<answer>7</answer>", "9<answer>123</answer>", "12"]
    found = rewarded(policy, responses(policy, texts, "402"), length_slope=0.5)
    logs = np.array([alone(policy, p + "<answer>", "402") for p in ("1+1", "9")])
    bare = np.array(alone(policy, "<answer>", "402"))
    sigma = logs.std(0)
    want = ((logs - bare) * sigma / sigma.sum()).sum(-1)
    assert found.terms["r3"].tolist() == pytest.approx([*want, want.min()], abs=1e-5)
    assert found.terms["length"].tolist() == pytest.approx([1 - 0.5 * 2 / 3, 1, 0.5])
    assert found.values.tolist() == pytest.approx((found.terms["r3"] + 0.1 * found.terms["length"]).tolist())
    assert found.terms["opened"].tolist() == [1, 1, 0]


def test_lengths() -> None:
    """130 tokens where the reference has 100: 1 - 0.3."""
    policy = nano()
    batch = responses(policy, ["1"])
    reward = ReflectionReward(length_weight=1.0, open="<answer>")
    batch.signals |= {
        "reference_likelihood": torch.full((1, 1, 100), -1.0).double(),
        "reference_likelihood_without": torch.full((1, 1, 100), -1.0).double(),
    }
    batch.mask = torch.ones(1, 130, dtype=torch.bool)
    batch.signals["sections"] = torch.full((1, 130), 2)
    assert reward(batch).values.item() == pytest.approx(0.7)
    # Of weight 0.1 and slope 1 unless told otherwise; what is masked, or no answer, does not count.
    batch.mask[0, 110:] = False
    batch.signals["sections"][0, :20] = 1
    for part in (ReflectionReward(open="<answer>"), catalogue.make("S104", open="<answer>").reward):
        assert part(batch).values.item() == pytest.approx(0.1 * 0.9)


@pytest.mark.parametrize("reference", ["", None, "1" * 120])
def test_without_a_reference_that_fits_there_is_no_reward(reference) -> None:
    found = rewarded(nano(), responses(nano(), ["1<answer>", "2"], reference))
    assert not found.valid.any() and not found.values.any()


def test_prompts_have_weights_of_their_own() -> None:
    """Two prompts whose references have two and one tokens: each is worth its own token of the larger spread."""
    policy = nano()
    batch = responses(policy, [*["1<answer>2</answer>"] * 4, "7"])
    batch.prompt_group = torch.tensor([0, 0, 1, 1, 1])
    nan = math.nan
    logs = [[-1, -1], [-1, -3], [-2, nan], [-4, nan], [nan, nan]]
    bare = [[-2, -2], [-2, -2], [-1, nan], [-1, nan], [-1, nan]]
    batch.signals |= {
        "reference_likelihood": torch.tensor(logs)[:, None].double(),
        "reference_likelihood_without": torch.tensor(bare)[:, None].double(),
        "sections": torch.zeros_like(batch.tokens),
    }
    found = ReflectionReward(open="<answer>", length_weight=0.0)(batch)
    # The last opens no answer, and is worth as little as the worst beside it.
    assert found.values.tolist() == pytest.approx([1, -1, -1, -3, -3]) and found.valid.all()
    assert found.terms["opened"].tolist() == [1, 1, 1, 1, 0] and "length" not in found.terms
    batch.signals["reference_likelihood_without"][4] = nan
    assert ReflectionReward(open="<answer>", length_weight=0.0)(batch).valid.tolist() == [True] * 4 + [False]


def test_equal_or_missing_reasoning() -> None:
    policy = nano()
    found = rewarded(policy, responses(policy, ["1<answer>2</answer>"] * 3), length_weight=0.0)
    assert found.valid.all() and not found.values.any()
    none = rewarded(policy, responses(policy, ["1", "2"]), length_weight=0.0)
    assert none.valid.all() and not none.values.any()


def test_the_filter_drops_prompts_that_reasoning_makes_no_difference_to(make_batch) -> None:
    batch = make_batch([1] * 8)
    batch.prompt_group = torch.arange(4).repeat_interleave(2)
    logs = torch.zeros(8, 1, 3).double()
    for prompt, spread in enumerate([0.3, 0.0, 0.7, 0.1]):
        logs[2 * prompt, 0, 1] = -spread
    logs[6:, 0, 2] = torch.nan
    batch.signals["reference_likelihood"] = logs
    weights = {drop: KeySpread(drop)(batch)[::2].tolist() for drop in (0.0, 0.25, 0.5, 0.74)}
    assert weights == {0.0: [1, 1, 1, 1], 0.25: [1, 0, 1, 1], 0.5: [1, 0, 1, 0], 0.74: [1, 0, 1, 0]}
    batch.signals["reference_likelihood"] = torch.full((8, 0, 0), torch.nan).double()
    assert KeySpread(0.5)(batch)[::2].tolist() == [1, 1, 0, 0]


def test_the_spread_of_a_prompt_by_hand(make_batch) -> None:
    """Half of 0.3; not over tokens that a response does not tell of, nor with a response that has no reward; and 0."""
    batch = make_batch([1] * 9)
    batch.prompt_group = torch.tensor([0, 0, 1, 1, 2, 2, 2, 3, 4])
    nan = math.nan
    logs = [[-1, -1], [-1, -1.3], [-1, -2], [-1, nan], [-1, -1], [-1, -1.2], [-9, -9], [nan, nan], [-1, -5]]
    batch.signals["reference_likelihood"] = torch.tensor(logs)[:, None].double()
    batch.valid[6] = False
    part = KeySpread(0.25)
    assert part.of_prompts(batch) == pytest.approx([0.15, 0, 0.1, 0, 0])
    assert part.kept([0.15, 0, 0.1, 0]) == [True, True, True, False] and part.kept([]) == []
    assert ReferenceRank(within=8).kept([8, 8.1, nan, 1]) == [True, False, True, True]
    assert ReferenceRanks.whole and catalogue.make("S104").reward.gamma == ReflectionReward().gamma == 0.5
    for name in ("likelihood", "without"):
        with pytest.raises(TypeError):
            ReflectionReward(**{name: ReferenceLikelihood()})


def test_prompts_whose_reference_no_reasoning_brings_within_reach(make_batch) -> None:
    batch = make_batch([1] * 8)
    batch.prompt_group = torch.arange(4).repeat_interleave(2)
    ranks = torch.full((8, 1, 4), torch.nan).double()
    ranks[0, 0] = torch.tensor([0, 0, 9, 5])
    ranks[1, 0] = torch.tensor([0, 0, 3, 1])
    ranks[2, 0] = ranks[3, 0] = torch.tensor([0, 0, 7, 6])
    ranks[4, 0, :1] = 50.0  # its sibling opened no answer
    batch.signals["reference_ranks"] = ranks
    # Of four tokens the worst half are two: 9 and 5 have ranks 10 and 6, whose mean is 8.
    part = ReferenceRank(within=7, worst=0.5)
    assert part.means(ranks[:, 0]).tolist() == pytest.approx([8, 3, 7.5, 7.5, 51] + [math.nan] * 3, nan_ok=True)
    assert part(batch).tolist() == [1, 1, 0, 0, 0, 0, 1, 1]
    assert ReferenceRank(within=8, worst=0.5)(batch).tolist() == [1, 1, 1, 1, 0, 0, 1, 1]
    # A tenth of four is one token: the mean is the greatest rank.
    assert ReferenceRank(worst=0.1).means(ranks[:1, 0]).tolist() == [10]
    batch.signals["reference_ranks"] = ranks[:, :0, :0]
    assert ReferenceRank()(batch).tolist() == [1] * 8


@pytest.mark.slow
def test_ranks_in_a_language_model() -> None:
    policy = nano()
    batch = responses(policy, ["1+1<answer>7</answer>", "9<answer>123</answer>", "12"], "402")
    signal = ReferenceRanks(ReferenceLikelihood(open="<answer>"))
    compute_signals(batch, {signal, signal.likelihood}, Models(policy, policy, encode=policy.encode))
    found, logs = batch.signals["reference_ranks"], batch.signals["reference_likelihood"]
    assert found.shape == logs.shape and torch.equal(found.isnan(), logs.isnan())
    # Each token alone: how many of the vocabulary are likelier in its place.
    for i, thought in enumerate(("1+1", "9")):
        for j, token in enumerate("402"):
            others = [alone(policy, thought + "<answer>" + "402"[:j], c)[0] for c in "0123456789+=<>/answer think\n"]
            mine = alone(policy, thought + "<answer>" + "402"[:j], token)[0]
            above = sum(x > mine + 1e-6 for x in set(others))
            # Special tokens, which are no text, may be likelier too.
            assert above <= found[i, 0, j].item() <= above + len(policy.tokenizer.all_special_ids)
    assert bool(found[2].isnan().all())


def test_the_spread_is_ranked_among_the_prompts_that_are_left(make_batch) -> None:
    batch = make_batch([1] * 6)
    batch.prompt_group = torch.arange(3).repeat_interleave(2)
    logs = torch.zeros(6, 1, 2).double()
    logs[1::2, 0, 0] = torch.tensor([-0.1, -0.2, -0.3]).double()
    batch.signals["reference_likelihood"] = logs
    batch.weights[:2] = 0
    # Of the two left, half is one: the one with the lesser spread.
    assert KeySpread(0.5)(batch).tolist() == [0, 0, 0, 0, 1, 1]


def test_options() -> None:
    for bad in ({"within": 0}, {"worst": 0.0}, {"worst": 1.5}):
        with pytest.raises(UsageError, match="reference_rank"):
            ReferenceRank(**bad)
    names = {getattr(n, "name", n) for n in catalogue.make("S104", within=math.inf, over="step").needs}
    whole = catalogue.make("S104", over="step")
    assert "reference_ranks" not in names and "reference_ranks" in {getattr(n, "name", n) for n in whole.needs}
    for bad in ({"top": 0.0}, {"top": 1.1}, {"gamma": 0.0}, {"gamma": -1.0}):
        with pytest.raises(UsageError, match="reflection"):
            ReflectionReward(**bad)
    assert ReflectionReward(top=1.0, gamma=0.1).top == 1
    for drop in (1.0, -0.1):
        with pytest.raises(UsageError, match="drop"):
            KeySpread(drop)
    spread = KeySpread()
    assert spread.drop == 0.25 and spread.needs == {spread.likelihood} and spread.likelihood.name == FULL
    parts = whole.select.parts
    assert parts[0] is not None and [(p.within, p.worst) for p in parts[1:2]] == [(100, 0.1)] and parts[2].drop == 0.25
    assert whole.curriculum == "uniform"
    assert [catalogue.make("S104", over=over).objective.kl_weight for over in ("step", "data")] == [0.001, 0.001]
    assert len(catalogue.make("S104", drop=0.0, over="step").select.parts) == 2
    over_data = catalogue.make("S104")
    assert len(over_data.select.parts) == 1
    assert over_data.curriculum == {
        "name": "sifted",
        "filters": parts[1:],
        "tries": 16,
        "every": 100,
        "carry": 0.1,
        "pool": None,
    }
    assert catalogue.make("S104", drop=0.0, within=math.inf).curriculum == "uniform"
    assert (ReferenceRank().within, ReferenceRank().worst) == (100, 0.1)
    assert ReferenceRank(within=1, worst=1.0).within == 1
    method = catalogue.make("S104", model="reference")
    models = {n.name: n.model for n in method.needs if isinstance(n, ReferenceLikelihood)}
    assert set(models.values()) == {"reference"}


SUMS = [Task(f"t{i}", f"{i}+{i}=", reference=str(2 * i), solution=str(2 * i)) for i in range(10)]


def filtered(folder: Path, **options: Any) -> tuple[list[str], list[str]]:
    """Sums, of which a quarter is dropped before the first step, the third and the fifth; ids, and what was said."""
    said: list[str] = []
    config = recipe(folder, warmup={"steps": 2}, run={"rollouts_every": 1})
    config["method"] = {
        "name": "S104",
        "options": {"tries": 3, "every": 2, "carry": 0.0, "within": math.inf, **options},
    }
    config["tasks"] = {"eval_size": "auto", "eval_share": 0.2}
    config["train"] |= {"steps": 5, "mini_batches": 1, "epochs": 1}
    config["evaluate"] = {"every": 0, "samples": 0}
    reporter = Reporter(quiet=True)
    reporter.line = said.append  # type: ignore[method-assign]
    trainer = build_trainer(load_config(config), reporter, tasks=Listed(SUMS))
    trainer.run()
    return [task.id for task in trainer.stream.all()], said


def test_the_data_is_filtered_before_training_and_within_it(tmp_path: Path) -> None:
    """What is asked are the three quarters with the widest spread, as it was found by the weights of then."""
    ids, said = filtered(tmp_path / "run")
    looks = {step: read_survey(survey_file(tmp_path / "run", step)) for step in range(6)}
    assert [step for step, pieces in looks.items() if pieces] == [0, 2, 4] and len(ids) == 8
    asked = [{row["task_id"] for row in rows} for rows in tables(tmp_path / "run", "rollouts").values()]
    left, spreads = len(ids) - len(ids) // 4, []
    for step in (0, 2, 4):
        assert [task for piece in looks[step] for task in piece.tasks] == ids, "held-out tasks are no data"
        spread = {row["task"]: row["values"][0] for piece in looks[step] for row in piece.rows}
        widest = set(sorted(spread, key=lambda task: -spread[task])[:left])
        found = set().union(*asked[step : step + 2])
        assert found == widest if step < 4 else found <= widest
        spreads.append(spread)
    assert spreads[0] != spreads[1] != spreads[2]
    assert [line for line in said if "sifted" in line] == [
        f"curriculum 'sifted': {left} of {len(ids)} tasks are asked from step 1 on",
        f"curriculum 'sifted': {left} of {len(ids)} tasks are asked from step 3 on, 0 of them carried over",
        f"curriculum 'sifted': {left} of {len(ids)} tasks are asked from step 5 on, 0 of them carried over",
    ]


def test_a_share_is_carried_over() -> None:
    """Half of ten are the five with the widest spread; when it turns round two fifths of these stay beside the rest."""
    method = catalogue.make("S104", within=math.inf, drop=0.5, carry=0.4, every=3)
    part = build("curriculum", method.curriculum, stream=TrainStream(Listed(SUMS)), prompts=10, group=2)
    for step, spread in ((0, range(10)), (3, range(9, -1, -1))):
        assert [(a.task, a.n) for a in part.survey(step)] == [(task, 16) for task in SUMS]
        part.settle(step, [{"task": f"t{i}", "values": [x]} for i, x in enumerate(spread)])
        assert not part.survey(step + 2)
        found = {a.task.id for a in part.next(step)}
        assert len(found) == (5 if step == 0 else 7)
        assert found >= {f"t{i}" for i in (range(5, 10) if step == 0 else range(5))}
    assert part.survey(6)


def test_what_is_out_of_reach_is_dropped_from_the_data(tmp_path: Path) -> None:
    """No token is likelier than the likeliest: a mean rank of at most 1 is hardly ever reached."""
    with pytest.raises(RunError, match="leave none of 8 tasks"):
        filtered(tmp_path / "run", within=1, worst=1.0)


@pytest.mark.slow
def test_a_policy_reasons_better_for_the_weights() -> None:
    """One of 60 tokens depends on the thought, 20 steps."""
    weighted, plain = (learned("S104", form, steps=20) for form in ("weights", "sum"))
    assert weighted["quality"] > weighted["quality/start"] + 0.04
    assert weighted["quality"] > plain["quality"] + 0.03
