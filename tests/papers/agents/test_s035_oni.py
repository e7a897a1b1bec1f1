"""ONI: rewards by hand, what each reward model makes of labels, the queue, an annotator that is slow, and training."""

from __future__ import annotations

import copy
import json
import math
import string
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import assert_same, metrics, run, tables
from turned import turned

import assay
from assay.batch import Batch
from assay.catalogue import make
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings.environment import Setting
from assay.learning.signals import compute_signals
from assay.method import Method
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.process.intrinsic import IntrinsicReward
from assay.signals.base import Models
from assay.signals.captions.annotator import BETTER, HELPFUL, Stack, annotated, beside, better, helpful
from assay.signals.captions.learner import Captions
from assay.signals.captions.models import Classification, Fit, Moments, Ranking, Retrieval, comparison, thresholded
from assay.signals.captions.network import CaptionNetwork, encoded
from assay.types import Episode, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = Fit(lr=3e-3, rows=64, width=8, length=123)
SURE = {"replies": [["met:\nYou open", "<label>helpful</label>"]], "otherwise": "<label>unhelpful</label>"}
DOORS = Keywords(**SURE)  # type: ignore[arg-type]
RNG = np.random.default_rng(0)


def models(seed: int = 0) -> Models:
    return Models(TabularPolicy(Tree.bandit(2, [1.0, 0.0])), rng=np.random.default_rng(seed))


def started(annotator: Any = DOORS, **options: Any) -> Captions:
    part = Captions(annotator, **options)
    torch.manual_seed(0)
    part.start(models())
    return part


def met(*captions: Sequence[str], paid: Sequence[Sequence[float]] | None = None, **options: Any) -> Batch:
    """Episodes whose turns led to these captions."""
    return turned(paid or [[0.0] * len(row) for row in captions], reply=captions, **options)


def paid(captions: Captions, batch: Batch, **options: Any) -> list[list[float]]:
    """The intrinsic reward of each turn."""
    batch.signals["captions"] = captions(batch, models())
    reward = IntrinsicReward(captions, **options)(batch)
    assert reward.tokens is not None and not reward.values.any()
    assert torch.equal(reward.terms["intrinsic"], reward.tokens.sum(-1))
    assert not reward.tokens[~batch.mask].any()
    return [
        [float(row[turn.start : turn.end].sum()) for turn in episode.turns]
        for row, episode in zip(reward.tokens, batch.episodes, strict=True)
    ]


def test_the_worked_rewards() -> None:
    captions = started()
    captions.model.add({("good",): 1.0, ("bad",): 0.0})
    many = met(["good", "bad", "good", "", "good", "good"], ["bad", "good"])
    root = 0.5
    assert paid(captions, many, beta=root) == [
        [1, 0, pytest.approx(2**-root), 0, pytest.approx(3**-root), pytest.approx(0.5)],
        [0, 1],
    ], "each episode counts for itself"
    assert paid(captions, many)[0] == pytest.approx([1, 0, 1 / 8, 0, 1 / 27, 1 / 64])
    assert paid(captions, many, beta=0.0)[0] == [1, 0, 1, 0, 1, 1]


def test_what_is_not_labelled_pays_nothing() -> None:
    captions = started(batch=1)
    batch = met(["You open it", "nothing"], ["You open it", ""])
    table = captions(batch, models())
    assert captions(Batch.from_groups([], torch.float64), models()).shape == (0, 0)
    assert table[:, 0].tolist() == [0, 0] and math.isnan(table[1, 1]) and not table[0].isnan().any()
    assert paid(captions, batch) == [[0, 0], [0, 0]]
    captions.learn(batch, models())
    assert paid(captions, batch) == [[0, 0], [0, 0]], "asked, and not answered yet"
    found = captions.learn(met([""]), models())
    assert paid(captions, batch) == [[1, 0], [1, 0]] and (found["captions/labelled"], found["captions/helpful"]) == (
        1,
        1,
    )
    captions.learn(met([""]), models())
    assert captions.model.labels == {"You open it": 1, "nothing": 0}  # type: ignore[attr-defined]
    later = captions.learn(batch, models())
    assert later["captions/waiting"] == 0, "what is labelled is not asked again"
    noted = started(of="message")
    turn = turned([[0.0, 0.0]], info=[[{"message": "You open it"}, {}]]).episodes[0].turns
    assert [noted.caption(t) for t in turn] == ["You open it", ""]


def test_stored_samples_are_paid_by_the_current_model() -> None:
    """The same episodes, valued again once labels have come in, are paid otherwise."""
    captions = started()
    batch = met(["You open it", "You open it"])
    assert paid(captions, batch) == [[0, 0]]
    captions.learn(batch, models())
    captions.learn(met([""]), models())
    assert paid(captions, batch) == [[1, 0.125]]
    captions.model.add({("You open it",): 0.0})
    assert paid(captions, batch) == [[0, 0]]


def test_labels_are_read_from_tags() -> None:
    assert helpful("<label>helpful</label>") == 1 and helpful("so <LABEL> Helpful. </LABEL>") == 1
    for said in (
        "helpful",
        "<label>unhelpful</label>",
        "<label>helpful",
        "",
        "<label>helpful</label><label>no</label>",
    ):
        assert helpful(said) == 0
    assert [better(f"<best>{x}</best>") for x in ("1", " 2. ", "none", "3")] == [0, 1, 0.5, 0.5]
    assert better("2") == 0.5
    questions = [("a",), ("{goal}", "c")]
    replies = [[r"met:\na$", "<label>helpful</label>"], ["first:\n{goal}\n\nThe second:\nc", "<best>2</best>"]]
    asked = list[Request]()

    class Noted(Keywords):
        def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
            asked.extend(requests)
            return super().generate(requests)

    engine = Noted([[r"met:\na\n", replies[0][1]], replies[1]])
    assert annotated(engine, questions, "Get out.", Sampling(7, 0.1)) == {("a",): 1, ("{goal}", "c"): 1}
    assert asked[0].sampling == Sampling(7, 0.1) and asked[0].prompt == HELPFUL.replace("{goal}", "Get out.").replace(
        "{caption}", "a"
    )
    assert asked[1].prompt == BETTER.format(goal="Get out.", first="{goal}", second="c")


def test_an_engine_that_knows_words() -> None:
    engine = Keywords([["fox|hound", "animal"], ["f", "letter"]], "else")
    [made, other] = engine.generate([Request("a fox", 2, Sampling(), 0), Request("x", 1, Sampling(), 0)])
    assert [e.text for e in made] == ["animal", "animal"] and other[0].text == "else" and made[0].stop == "eos"
    assert engine.decode(engine.encode_response("é")) == "é" and engine.decode(made[0].prompt) == "a fox"
    assert engine.decode(made[0].tokens) == "animal" and made[0].mask.all() and len(made[0].mask) == 6


def test_the_newest_go_first() -> None:
    stack = Stack(3)
    assert stack.push([("a",), ("b",), ("c",)]) == 0 and stack.push([("a",)]) == 0
    assert list(stack.waiting) == [("b",), ("c",), ("a",)], "what is met again is as good as new"
    assert stack.push([("d",), ("e",)]) == 2 and len(stack) == 3
    assert stack.push_under([("d",), ("z",)]) == 1 and list(stack.waiting) == [("a",), ("d",), ("e",)]
    assert stack.take(2) == [("d",), ("e",)] and stack.take(5) == [("a",)] and stack.take(1) == []
    captions = started(batch=2, capacity=3)
    found = captions.learn(met(["one", "two", "three", "four", "five"]), models())
    assert captions.asked == [("four",), ("five",)] and list(captions.queue.waiting) == [("three",)]
    assert (found["captions/dropped"], found["captions/waiting"]) == (2, 3)
    captions.learn(met(["five", "six"]), models())
    assert captions.asked == [("three",), ("six",)], "what is being asked does not wait again"
    assert set(captions.model.labels) == {"four", "five"}  # type: ignore[attr-defined]
    lost = met(["seven"])
    lost.valid[0] = False
    captions.learn(lost, models())
    assert ("seven",) not in captions.asked


class Slow(Keywords):
    """Replies once it is let."""

    def __init__(self) -> None:
        super().__init__(**SURE)  # type: ignore[arg-type]
        self.let = threading.Event()
        self.asked = 0

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.asked += 1
        assert self.let.wait(60)
        return super().generate(requests)


def test_the_learner_does_not_wait() -> None:
    slow = Slow()
    captions, batch = started(slow, arrival=True), met(["You open it", "wall"])
    for _ in range(5):
        found = captions.learn(batch, models())
        assert found["captions/labelled"] == 0 and paid(captions, batch) == [[0, 0]]
    captions.learn(met(["later"]), models())
    assert slow.asked == 1 and captions.asked == [("You open it",), ("wall",)], "one batch at a time"
    kept = captions.state_dict()
    assert (
        kept["waiting"] == [("later",), ("You open it",), ("wall",)] and kept["asked"] == [] and kept["labels"] is None
    )
    assert captions._answer is not None
    slow.let.set()
    captions._answer.result(60)
    captions.learn(met([""]), models())
    assert paid(captions, batch) == [[1, 0]] and captions.asked == [("later",)]


def test_labels_come_in_after_the_stated_steps() -> None:
    captions, batch = started(delay=3), met(["You open it"])
    labelled = [captions.learn(batch, models())["captions/labelled"] for _ in range(5)]
    assert labelled == [0, 0, 0, 1, 1]


class Away(Keywords):
    """Fails on some."""

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        made = super().generate(requests)
        return [
            [Episode(e.prompt, e.tokens, e.mask, None, "<label>helpful</label>", "error") if "wall" in r.prompt else e]
            for r, [e] in zip(requests, made, strict=True)
        ]


def test_an_annotator_that_fails_is_asked_again() -> None:
    captions = started(Away(**SURE), batch=2)  # type: ignore[arg-type]
    captions.learn(met(["You open it", "wall"]), models())
    found = captions.learn(met(["a", "b"]), models())
    assert captions.model.labels == {"You open it": 1} and found["captions/failed"] == 1  # type: ignore[attr-defined]
    assert captions.asked == [("a",), ("b",)] and list(captions.queue.waiting) == [("wall",)]
    full = started(Away(**SURE), batch=1, capacity=1)  # type: ignore[arg-type]
    full.learn(met(["wall"]), models())
    found = full.learn(met(["a"]), models())
    assert full.asked == [("a",)] and found["captions/dropped"] == 1, "there was no place for it"

    def broken() -> int:
        raise RuntimeError("no server")

    with pytest.raises(RuntimeError, match="no server"):
        beside(broken).result(60)


def test_networks_read_characters() -> None:
    assert encoded(["aé", "abcd"], 3).tolist() == [[97, 195, 169], [97, 98, 99]]
    torch.manual_seed(0)
    network = CaptionNetwork(2, 123, 4)
    assert network(["a", "b" * 500]).shape == (2, 2)
    assert torch.equal(network(["x" * 123]), network(["x" * 123 + "more"])), "what is beyond is not read"
    # 32 channels of characters, 7 + 7 + 4 * 3 wide, then 1 place left of 4 channels.
    assert sum(p.numel() for p in network.parameters()) == 8192 + 900 + 116 + 4 * 52 + 40 + 18
    assert CaptionNetwork(1).layers[-3].in_features == 5 * 64
    for wrong in ({"outputs": 1, "length": 122}, {"outputs": 1, "width": 0}):
        with pytest.raises(UsageError, match="at least"):
            CaptionNetwork(**wrong)


def test_a_classifier_labels_what_it_has_not_seen() -> None:
    torch.manual_seed(0)
    assert Classification(0.0, SMALL).worth(["You take the lamp."]).tolist() == [0]
    model, table = Classification(0.5, SMALL), Retrieval()
    things = ("red key", "blue key", "long rope", "old map", "lamp")
    labels = {(f"You take the {x}.",): 1.0 for x in things} | {(f"You bump into the {x}.",): 0.0 for x in things}
    assert model.worth(["You take the lamp."]).tolist() == [0] and model.fit(5, RNG) is None
    model.add(labels)
    table.add(labels)
    assert model.worth(["You take the lamp."]).tolist() == [0], "nothing is paid by what has learned nothing"
    assert model.fit(0, RNG) is None
    first = model.fit(1, RNG)
    last = model.fit(60, RNG)
    assert first is not None and last is not None and first == pytest.approx(math.log(2), abs=0.1) and last < first
    unseen = [
        "You take the green key.",
        "You take the torch.",
        "You bump into the green key.",
        "You bump into the torch.",
    ]
    assert model.worth(unseen).tolist() == [1, 1, 0, 0] and table.worth(unseen).tolist() == [0] * 4
    assert model.worth([]).tolist() == [] and model.helpful == 0.5 and len(model) == 10
    for eta in (0.5, 1.0):
        model.eta = eta
        for parameter in model.network.parameters():
            parameter.data.zero_()
        assert not model.worth(unseen).any(), "P is not above a half, nor above 1"
    assert model.meet(["You take the lamp.", "new"], 0, RNG) == [("new",)]


def test_a_step_takes_so_many_labels() -> None:
    how = Fit(rows=3, length=123, width=2)
    for model, labels, read in (
        (Classification(0.5, how), {(f"{k}",): float(k % 2) for k in range(5)}, 3),
        (Ranking(0.0, how, pairs=1, most=1, capacity=4), {(f"{k}", "x"): 0.5 for k in range(5)}, 6),
    ):
        seen, network = list[int](), model.network
        model.network = lambda captions, seen=seen, network=network: (seen.append(len(captions)), network(captions))[1]  # type: ignore[assignment, misc]
        assert model.helpful == 0 and len(model) == 0
        model.add(labels)  # type: ignore[arg-type]
        model.fit(2, RNG)
        assert seen == [read, read]
    assert len(model) == 4, "the latest comparisons are kept"
    assert Retrieval().helpful == 0 and Retrieval().fit(1, RNG) is None


def test_a_turn_that_says_nothing_is_paid_on_what_was_said_before() -> None:
    captions, batch = started(), met(["good", "good"])
    captions.model.add({("good",): 1.0})
    second = batch.episodes[0].turns[1]
    batch.mask[0, second.start : second.end] = False
    batch.signals["captions"] = captions(batch, models())
    tokens = IntrinsicReward(captions, 1.0)(batch).tokens
    assert tokens is not None and tokens[0].nonzero().tolist() == [[1]] and float(tokens[0, 1]) == 1.5


def test_the_worked_ranking() -> None:
    r, moments = torch.tensor([0.2, 0.5, 1.4]), Moments(1.0, 0.5, 0.25)
    z = moments.normalised(r)
    assert z.tolist() == pytest.approx([-0.6, 0, 1.8])
    assert thresholded(z, 0.5).tolist() == pytest.approx([0, 0, 1.8])
    assert thresholded(z, -0.5).tolist() == pytest.approx([0, 0, 1.8]) and thresholded(z, -1).tolist() == z.tolist()
    pair = torch.tensor([[1.0, 0.0]])
    assert float(comparison(pair, torch.tensor([0.0]))) == pytest.approx(0.3133, abs=1e-4)
    assert float(comparison(pair, torch.tensor([1.0]))) == pytest.approx(1.3133, abs=1e-4)
    assert float(comparison(pair, torch.tensor([0.5]))) == pytest.approx(0.8133, abs=1e-4)
    both = comparison(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0.0, 1.0]))
    assert float(both) == pytest.approx(0.8133, abs=1e-4)
    # Running moments are those of all numbers together.
    numbers = torch.from_numpy(np.random.default_rng(1).normal(3, 2, 50)).float()
    found = Moments(0.0).joined(numbers[:20]).joined(numbers[20:21]).joined(numbers[21:]).joined(numbers[:0])
    assert (found.count, found.mean) == (50, pytest.approx(float(numbers.mean()), rel=1e-5))
    # Each part's variance is its own unbiased one, as in the authors' code.
    assert found.variance == pytest.approx(float(numbers.var()), rel=0.06)
    assert Moments().joined(torch.tensor([2.0, 4.0])).mean == pytest.approx(3, abs=1e-3)
    assert Moments(5.0, 1.0, 0.0).normalised(torch.tensor([1.0])).tolist() == [0]
    # Before any: a standard normal, with the weight of a ten-thousandth of a number.
    one = Moments().joined(torch.tensor([2.0]))
    assert (one.count, one.mean) == pytest.approx((1.0001, 2 / 1.0001))
    assert one.variance == pytest.approx((1e-4 + 4e-4 / 1.0001) / 1.0001)
    assert thresholded(torch.tensor([0.5, 0.75]), 0.5).tolist() == [0, 0.75]
    exact = Moments(2.0, 0.0, 1.0).joined(torch.tensor([3.0, 5.0]))
    assert (exact.count, exact.mean, exact.variance) == (4, 2, (2 + 4 + 16) / 4)


def test_a_ranker_finds_the_order() -> None:
    torch.manual_seed(0)
    model = Ranking(-0.5, SMALL, pairs=6, most=4, capacity=50)
    captions = [f"You have {n} coins." for n in ("no", "some", "many")]
    assert model.worth(captions).tolist() == [0, 0, 0] and model.meet([], 0, RNG) == []
    asked = model.meet(captions, 0, np.random.default_rng(3))
    assert 0 < len(asked) <= 6 and all(a != b for a, b in asked) and {c for q in asked for c in q} <= {*captions}
    assert model.meet(captions, 4, RNG) == [] and len(model.met) == 6 and model.moments == Moments()
    order = {caption: i for i, caption in enumerate(captions)}
    pairs = [(a, b) for a in captions for b in captions if a != b]
    model.add({(a, b): float(order[b] > order[a]) for a, b in pairs})
    assert model.worth(captions).tolist() == [0, 0, 0] and model.fit(0, RNG) is None
    model.fit(120, RNG)
    scores = model.scores(captions)
    assert float(scores[0]) < float(scores[1]) < float(scores[2])
    assert torch.allclose(model.scores([*captions, captions[1]])[3], scores[1])
    worth = model.worth(captions)
    z = Moments().joined(scores).normalised(scores)
    assert torch.allclose(worth, thresholded(z, -0.5)) and worth[0] == 0 < worth[2]
    before = model.moments
    model.meet(captions, 9, RNG)
    assert before == Moments() and model.moments == Moments().joined(scores)
    # At a rate that leaves it as it is every step has the same loss, of which several have the mean.
    still = Ranking(-0.5, Fit(lr=0.0, length=123, width=2), pairs=6, most=4, capacity=50)
    still.add({(captions[0], captions[1]): 0.5})
    assert still.fit(3, RNG) == pytest.approx(still.fit(1, RNG), rel=1e-5)
    model.add({(captions[0], captions[1]): 0.5})
    assert len(model) == 7 and model.helpful == pytest.approx(6 / 7)
    for _ in range(20):
        model.meet(captions, 9, RNG)
    assert len(model.met) == 50


@pytest.mark.parametrize("kind", ["retrieval", "classification", "ranking"])
def test_a_learner_comes_back(kind: Any) -> None:
    options = {"model": kind, "batch": 2, "updates": 2, "rows": 4, "length": 123, "width": 4, "pairs": 3, "delay": 2}
    judge = Keywords([["first:\nYou open", "<best>1</best>"], *SURE["replies"]], "<best>2</best>")  # type: ignore[misc, list-item]
    steps = [met([f"You open {k % 4}", f"wall {k % 3}"]) for k in range(9)]

    def went_on(part: Captions, rows: Sequence[Batch]) -> list[Any]:
        return [(part.learn(batch, models()), part(batch, models()).tolist()) for batch in rows]

    whole, cut = started(judge, **options), started(judge, **options)
    found = went_on(whole, steps)
    went_on(cut, steps[:4])
    assert cut.asked, "a batch is under way"
    kept = copy.deepcopy(cut.state_dict())
    assert len(kept["labels"]) == len(kept["asked"]) > 0
    other = started(Keywords([], "nobody asks it anew"), **options)
    other.load_state_dict(kept)
    other.annotator = judge
    assert went_on(other, steps[4:]) == found[4:]
    assert any(row["captions/labelled"] for row, _ in found)
    assert any("captions/loss" in row for row, _ in found) is (kind != "retrieval")


def test_few_labels_are_learned_from_at_length() -> None:
    captions = started(model="classification", updates=3, few=2, length=123, width=4)
    taken = list[int]()
    captions.model.fit = lambda steps, rng: taken.append(steps)  # type: ignore[assignment, method-assign, func-returns-value]
    captions.learn(met(["You open it"]), models())
    captions.learn(met(["wall"]), models())
    captions.learn(met([""]), models())
    captions.learn(met([""]), models())
    # Nothing has come; one label has; two have, which are not few; one step each from then on.
    assert taken == [0, 3, 1, 1]


def test_what_does_not_fit_is_refused() -> None:
    names = ("batch", "delay", "capacity", "pairs", "rows", "max_tokens")
    below = ({"eta": 2.0}, {"eta": -0.1}, {"updates": -1}, {"few": -1}, {"of": ""}, *({name: 0} for name in names))
    assert Captions(DOORS, eta=1.0, updates=0, few=0, **dict.fromkeys(names, 1)).eta == 1  # type: ignore[arg-type]
    assert Captions(DOORS, eta=0.0).eta == 0
    for wrong in below:
        with pytest.raises(UsageError, match="signal 'captions'"):
            Captions(DOORS, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="length"):
        Captions(DOORS, model="ranking", length=9)
    with pytest.raises(UsageError, match="captions need an annotator"):
        Captions().check(None)
    with pytest.raises(UsageError, match="captions need an annotator"):
        Captions()(met(["a"]), models())
    with pytest.raises(UsageError, match="beta"):
        IntrinsicReward(Captions(), -1.0)
    with pytest.raises(UsageError, match="pairs of a pattern and a reply"):
        Keywords([["(", "x"]])


def valued(method: Method, batch: Batch) -> Batch:
    compute_signals(batch, set(method.reward.needs), models())
    return method.worth(batch)


def test_the_worked_totals() -> None:
    # The fourth time: .4 * 1 / 4^.5 = .2, with nothing from outside; the first time with 2 from outside: .6.
    method = make("S035", annotator=DOORS, beta=0.5)
    learner = method.reward.inner["intrinsic"].captions
    for one in method.learners:
        one.start(models())
    learner.model.add({("good",): 1.0})
    batch = met(["good"] * 4, ["good"], paid=[[0.0] * 4, [2.0]])
    valued(method, batch)
    at_turns = [
        [float(row[t.end - 1]) for t in e.turns] for row, e in zip(batch.token_rewards, batch.episodes, strict=True)
    ]  # type: ignore[arg-type]
    assert at_turns[0][3] == pytest.approx(0.2) and at_turns[1][0] == pytest.approx(0.6)
    cubed = make("S035", annotator=DOORS).reward
    assert 0.4 / 2 ** cubed.inner["intrinsic"].beta == pytest.approx(0.05)
    assert cubed.weights == {"verdict": 0.1, "intrinsic": 0.4, "turns": 0.1}
    assert set(make("S035", turns=False, extrinsic=10.0).reward.weights.values()) == {10.0, 0.4}


def test_the_row_is_its_parts() -> None:
    options = {"annotator": DOORS, "model": "ranking", "goal": "Out.", "of": "message", "delay": 4, "arrival": True}
    more = {"batch": 7, "capacity": 9, "eta": 0.25, "epsilon": 0.5, "lr": 0.5, "updates": 3, "few": 11}
    method = make("S035", **options, **more, discount=0.5, decay=0.25)
    found = method.reward.inner["intrinsic"].captions
    assert (found.kind, found.goal, found.of, found.delay, found.arrival) == ("ranking", "Out.", "message", 4, True)
    assert (found.batch, found.capacity, found.eta, found.epsilon) == (7, 9, 0.25, 0.5)
    assert found.how == Fit(lr=0.5, updates=3, few=11) and found.sampling == Sampling(4096, 0.1)
    assert (method.credit.discount, method.credit.decay) == (0.5, 0.25) and found in method.learners
    plain = make("S035")
    captions = plain.reward.inner["intrinsic"].captions
    assert (captions.kind, captions.of, captions.eta, captions.epsilon) == ("retrieval", "reply", 0.5, -0.5)
    assert (captions.batch, captions.capacity, captions.delay, captions.arrival) == (100, 10_000, 1, False)
    bare = Captions()
    assert (bare.batch, bare.capacity, bare.delay, bare.arrival, bare.how) == (100, 10_000, 1, False, Fit())
    assert bare.whole and (bare.kind, bare.of, bare.goal, bare.eta, bare.epsilon) == (
        "retrieval",
        "reply",
        "",
        0.5,
        -0.5,
    )
    assert captions.how == Fit() == Fit(1e-4, 256, 32, 25_000, 256, 64) and captions.pairs == 10
    assert plain.reward.inner["intrinsic"].beta == 3 and (plain.credit.discount, plain.credit.decay) == (0.99, 0.95)
    ranking = started(model="ranking", batch=7, length=123).model
    assert isinstance(ranking, Ranking) and (ranking.most, ranking.pairs) == (14, 10)


def test_the_lost_are_not_paid() -> None:
    batch = met(["You open it"])
    batch.verdicts[0] = Verdict.abstain("away")  # type: ignore[index]
    captions = started()
    batch.signals["captions"] = captions(batch, models())
    found = IntrinsicReward({"annotator": DOORS})(batch)
    assert found.valid is not None and found.valid.tolist() == [False]


WORLD: dict[str, Any] = {"name": "corridor", "rooms": 3, "doors": 2, "moves": 6}


@pytest.mark.slow
def test_it_learns_where_the_goal_is_rare(tmp_path: Path) -> None:
    options = {"annotator": {"name": "keywords", **SURE}, "of": "message", "extrinsic": 10.0, "delay": 3}
    setting = Setting(
        environment=WORLD, words=(("right", "open", "stop"),), turns=6, tasks=(1,), prompts=1, steps=25, lr=10.0
    )
    found = setting.run({"name": "S035", "options": options}, 0, tmp_path)
    assert found["final"] > 0.8 > 0.05 > found["start"]


def trained(folder: Path, steps: int, **sections: Any) -> Path:
    world = {**WORLD, "rooms": 4, "moves": 4}
    options = {"annotator": {"name": "keywords", **SURE}, "model": "classification", "batch": 4}
    return run(
        folder,
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 360, "alphabet": string.printable}},
        tasks={"source": {"name": "environment", "environment": world}, "eval_share": 0.3, "eval_size": 1},
        warmup={"steps": 8, "lr": 1e-2, "batch": 2},
        method={
            "name": "S035",
            "options": {**options, "updates": 2},
            "reward": None,
            "rollout": {"name": "multi_turn", "environment": world, "turns": 4},
        },
        rollout={"prompts": 2, "group": 4, "max_tokens": 6},
        train={"steps": steps, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
        **sections,
    )


def test_it_trains(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run", 3, overlap={"staleness": 1})
    rows = [r for r in metrics(folder) if r["stage"] == "rl"]
    assert rows[-1]["captions/labelled"] > 0 and any(r.get("captions/loss", 0) > 0 for r in rows)
    assert all("critic/loss" in r and "reward/intrinsic" in r for r in rows) and any(r["grad_norm"] > 0 for r in rows)
    kept = [turn for table in tables(folder, "rollouts").values() for row in table for turn in json.loads(row["turns"])]
    assert kept and all(turn["reply"] for turn in kept)


@pytest.mark.slow
def test_a_resumed_run_repeats(tmp_path: Path) -> None:
    whole = trained(tmp_path / "whole", 3)
    short = trained(tmp_path / "short", 2)
    assay.train(resume=short, overrides=["train.steps=3"], quiet=True)
    rows = [[r for r in metrics(f) if r["stage"] == "rl"] for f in (whole, short)]
    assert rows[0] == rows[1]
    assert_same(whole, short)
