"""Trust-GRPO: trust and fading by hand, who is asked about what, rules of outcomes, and a run that sees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, run

from assay import catalogue
from assay.batch import Batch
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.lab.settings import load
from assay.media import Picture
from assay.registry import build
from assay.rewards.process.trusted_thinking import AskedThoughts, TrustedThinking
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.scored_thoughts import EvenScores, ScoredThoughts, read_score, thought_of, thought_prompt
from assay.tasks.making.work import Here
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.kind import KindVerifier
from assay.verify.text.transcript import RougeMean, WordErrors, rouge_n, word_error_rate

ONE = np.ones(1, dtype=np.int64)
PART = {"name": "part", "part": "thought"}
OUTCOMES, SCORES = (1.0, 1.0, 0.0, 0.0), (0.4, 0.6, 0.9, 0.7)


def group(outcomes: Sequence[float | None], scores: Sequence[float] = (), texts: Sequence[str] = ()) -> Group:
    verdicts = [
        Verdict.abstain("broken") if o is None else Verdict(o, o == 1, {"thought": s})
        for o, s in zip(outcomes, scores or [0.0] * len(outcomes), strict=True)
    ]
    said = texts or [f"<think>thought {i}</think> answer" for i in range(len(outcomes))]
    episodes = tuple(Episode(ONE, ONE, ONE > 0, np.zeros(1), text, "eos") for text in said)
    return Group(Ask(Task("t", 'Is "it"?'), len(said)), episodes, tuple(verdicts))


def batch(*groups: Group) -> Batch:
    return Batch.from_groups(groups, torch.float64)


def test_by_hand() -> None:
    """Means .5 of right and .8 of wrong ones: trust exp(-.3), at step 0 and after T steps, and what comes of it."""
    made = catalogue.make("S090", scorer=PART, decay=1000.0)
    found = made.reward(batch(group(OUTCOMES, SCORES)))
    assert found.values.tolist() == pytest.approx([1.088898, 1.133347, 0.200021, 0.155572], abs=1e-6)
    assert found.terms["trust"].tolist() == pytest.approx([0.740818] * 4, abs=1e-6)
    assert found.terms["thinking"].tolist() == list(SCORES) and found.terms["outcome"].tolist() == list(OUTCOMES)
    made.reward.load_state_dict({"done": 1000})
    late = made.reward(batch(group(OUTCOMES, SCORES))).values.tolist()
    assert late == pytest.approx([1.032704, 1.049056, 0.073584, 0.057232], abs=1e-6)
    assert made.reward.state_dict() == {"done": 1001}
    # A scorer that prefers right responses is trusted wholly, and so are two that it likes as well.
    for scores in ((0.9, 0.7, 0.4, 0.6), (0.5, 0.5, 0.5, 0.5)):
        assert TrustedThinking(PART)(batch(group(OUTCOMES, scores))).values.tolist() == pytest.approx(
            [o + 0.3 * s for o, s in zip(OUTCOMES, scores, strict=True)]
        )
    plain = TrustedThinking(PART, trust=False)(batch(group(OUTCOMES, SCORES)))
    assert plain.values.tolist() == pytest.approx([1.12, 1.18, 0.27, 0.21])
    half = TrustedThinking(PART)(batch(group((0.5, 0.49), (0.2, 0.4)))).terms["trust"].tolist()
    assert half == pytest.approx([math.exp(-0.2)] * 2)


def test_limits_are_grpo() -> None:
    plain = catalogue.make("S106").credit
    expected = batch(group(OUTCOMES))
    expected.rewards = torch.tensor(OUTCOMES, dtype=torch.float64)
    wanted = plain(expected)[:, 0].tolist()
    for options, scores in (({"alpha": 0.0}, SCORES), ({}, (0.7,) * 4)):
        made = catalogue.make("S090", scorer=PART, **options)
        assert made.value(batch(group(OUTCOMES, scores))).advantages[:, 0].tolist() == pytest.approx(wanted, abs=1e-5)
    faded = catalogue.make("S090", scorer=PART, decay=1.0)
    faded.reward.load_state_dict({"done": 60})
    assert faded.value(batch(group(OUTCOMES, SCORES))).advantages[:, 0].tolist() == pytest.approx(wanted, abs=1e-5)


def test_trust_wants_both_sides() -> None:
    """Prompts are apart; one that is all right, or all wrong, is trusted, and who abstained counts on no side."""
    found = TrustedThinking(PART)(
        batch(group((1.0, 1.0), (0.1, 0.9)), group((0.0, 0.2), (0.8, 0.9)), group((1.0, 0.0), (0.0, 0.5)))
    )
    assert found.terms["trust"].tolist() == pytest.approx([1, 1, 1, 1, math.exp(-0.5), math.exp(-0.5)])
    found = TrustedThinking(PART)(batch(group((1.0, 0.0, None), (0.2, 0.6, 0.9))))
    assert found.valid is not None and found.valid.tolist() == [True, True, False]
    assert found.terms["trust"].tolist()[:2] == pytest.approx([math.exp(-0.4)] * 2)
    assert TrustedThinking(PART)(batch(group((1.0, None), (0.2, 0.9)))).terms["trust"].tolist() == [1, 1]


def test_it_fades() -> None:
    """T is what is said, else the run's steps, else 500."""
    reward = TrustedThinking(PART)
    for _ in range(3):
        weight = reward.weight
        reward(batch(group((1.0,), (1.0,))))
    assert weight == pytest.approx(0.3 * math.exp(-2 / 500)) and reward.alpha == 0.3
    reward.planned(10)
    assert reward.weight == pytest.approx(0.3 * math.exp(-0.3))
    reward.planned(0)
    assert reward.weight == pytest.approx(0.3 * math.exp(-3))
    fixed = TrustedThinking(PART, alpha=0.5, decay=2.0)
    fixed.planned(10)
    fixed.load_state_dict({"done": 1})
    assert fixed.weight == pytest.approx(0.5 * math.exp(-0.5))


class Judge(Keywords):
    """Keeps what it is asked."""

    asked: list[str]

    def generate(self, requests: Any) -> Any:
        self.asked = [str(r.prompt) for r in requests]
        assert all(r.sampling.temperature == 0 and r.sampling.max_tokens == 16 for r in requests)
        return super().generate(requests)


def test_the_thought_alone_is_shown() -> None:
    judge = Judge([["neat", "So: 0.8"], ["odd", "Hm."], ["long", "0.25 or 1.0"]])
    texts = ['<think>neat "x"</think> 1234', "<think>odd</think> 1", "no thought, long", "<think>neat again</think>"]
    found = TrustedThinking(judge)(batch(group((1.0, 1.0, 0.0, None), texts=texts)))
    assert found.valid is not None and found.valid.tolist() == [True, False, True, False]
    assert found.terms["thinking"].tolist() == [0.8, 0, 1, 0]
    assert len(judge.asked) == 3 and '"neat \\"x\\""' in judge.asked[0] and 'Is \\"it\\"?' in judge.asked[0]
    assert not any("1234" in prompt for prompt in judge.asked)
    assert thought_of("<think>a</think>c") == "a"
    assert thought_of("  plain ") == "plain"
    table = TrustedThinking({"engine": judge, "template": "{thought}", "max_tokens": 16})
    table(batch(group((1.0,), texts=["<think>neat</think>"])))
    assert judge.asked == ["neat"]
    scores = {"0.7": 0.7, "1": 1, "1.0": 1, ".5": 0.5, "0": 0, "0.3, no 0.4": 0.4, "score:0.1.": 0.1}
    assert {text: read_score(text) for text in scores} == scores
    assert [read_score(text) for text in ("7", "10", "", "2.5", "1.5")] == [None] * 5
    alone = AskedThoughts(judge)(batch(group((1.0, None), texts=["neat", "neat"])))
    assert alone.values.tolist() == [0.8, 0] and alone.valid is not None and alone.valid.tolist() == [True, False]


def test_pictures_are_shown_to_the_scorer() -> None:
    """Two pictures, and the same words with another in the place of one: asked apart, pictures before the text."""

    def about(*drawn: bytes) -> Batch:
        images = tuple(Picture(data) for data in drawn)
        task = Task("t", ({"role": "user", "content": "<image>\n" * len(images) + "Which?", "images": images},))
        return batch(replace(group((1.0, 1.0), texts=["<think>neat</think> a"] * 2), ask=Ask(task, 2)))

    seen: list[Any] = []

    class Seeing(Keywords):
        def generate(self, requests: Any) -> Any:
            seen.extend(requests)
            return super().generate(requests)

    reward = TrustedThinking(Seeing([["neat", "0.5"]]))
    assert reward(about(b"1", b"2")).terms["thinking"].tolist() == [0.5, 0.5]
    reward(about(b"3", b"2"))
    [[one], [two]] = [r.prompt for r in seen]
    assert pictures((one,)) == [Picture(b"1"), Picture(b"2")] and pictures((two,))[0] == Picture(b"3")
    assert one["content"].startswith("<image>\n<image>\nYou judge") and one["content"].count("<image>") == 2
    assert '"Which?"' in one["content"] and seen[0].seed != seen[1].seed


def test_a_scorer_is_taught() -> None:
    """Two thoughts about a picture, one of them scored .7; and of twelve scores one of each tenth that there is."""
    images = (Picture(b"1"),)
    task = Task("t", ({"role": "user", "content": "<image>Is it?", "images": images},), "yes")

    class Answering(Keywords):
        def generate(self, requests: Any) -> Any:
            [[made], *_] = [super(Answering, self).generate([request]) for request in requests]
            return [[replace(made[0], text=f"<think>{c}</think> 9876") for c in "ab"][: r.n] for r in requests]

    judge = Judge([[r'Reasoning:\\n"a', "so 0.70"]], "hm")
    roles = {"writer": Model("w", Answering([], "x")), "judge": Model("j", judge)}
    [made] = Maker(read_pipeline("S090", {"n": 2}), roles).make([task]).tasks
    assert (made.id, made.reference, made.solution, made.parent) == ("t/thought/0", "0.7", "0.7", "t")
    assert made.prompt == thought_prompt(task, "<think>a</think> 9876") and pictures(made.prompt) == list(images)
    assert "9876" not in made.question and KindVerifier()(made, "0.7").passed
    assert not Maker(read_pipeline("S090", {}), roles | {"judge": Model("j", Judge([], "no"))}).make([task]).tasks
    here = Here(np.random.default_rng(0), lambda task, text: Verdict.right())
    scores = (0.0, 0.05, 0.1, 0.3, 0.3, 0.3, 0.6, 0.7, 0.9, 0.95, 1.0, 1.0)
    scored = [replace(made, id=str(i), meta={"thought_score": s}) for i, s in enumerate(scores)]
    kept, left = EvenScores(1).whole(scored, here)
    ids = [int(one.id) for one in kept]
    assert [min(int(scores[i] * 10 + 1e-9), 9) for i in ids] == [0, 1, 3, 6, 7, 9] and ids == sorted(ids)
    assert left == {"there are enough of its score": 6} and len(EvenScores().whole(scored, here)[0]) == 12
    drawn = {EvenScores(1).whole(scored, here)[0][2].id for _ in range(40)}
    assert drawn == {"3", "4", "5"}
    for wrong in (lambda: ScoredThoughts(0), lambda: EvenScores(0)):
        with pytest.raises(UsageError, match="must be at least 1"):
            wrong()


def test_the_switches_of_the_code() -> None:
    """With .2 as the least outcome wrong responses are not asked about, and trust is whole; flat groups have none."""
    judge = Judge([["thought 0", "0.4"], ["thought 1", "0.6"]], "0.9")
    reward = TrustedThinking(judge, min_outcome=0.2, skip_flat=True)
    found = reward(batch(group(OUTCOMES)))
    assert found.values.tolist() == pytest.approx([1.12, 1.18, 0, 0]) and len(judge.asked) == 2
    assert found.terms["trust"].tolist() == [1] * 4
    found = reward(batch(group((0.9, 1.0)), group((0.0, 0.1)), group((0.2, 0.15)), group((0.9, 0.89))))
    assert len(judge.asked) == 2 and found.terms["thinking"].tolist() == [0, 0, 0, 0, 0.4, 0, 0.4, 0.6]
    found = reward(batch(group((0.95, None))))
    assert found.terms["thinking"].tolist() == [0, 0]
    unskipped = TrustedThinking(judge, min_outcome=0.2)(batch(group((0.9, 1.0))))
    assert unskipped.terms["thinking"].tolist() == [0.4, 0.6]
    flat = TrustedThinking(PART, skip_flat=True)(batch(group((1.0, 0.9), (0.3, 0.5)), group((1.0, 0.0), (0.3, 0.2))))
    assert flat.terms["thinking"].tolist() == [0, 0, 0.3, 0.2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "nobody says how good a thought is"),
        ({"scorer": PART, "alpha": -0.1}, "alpha -0.1 must be"),
        ({"scorer": PART, "decay": 0.0}, "decay 0.0 above 0"),
        ({"scorer": PART, "min_outcome": 0.2}, "min_outcome is for a scorer that is asked"),
        ({"scorer": {"engine": Keywords([]), "template": "{question}"}}, "must show {thought}"),
        ({"scorer": {"engine": 3}}, "must be an engine"),
    ],
)
def test_what_it_cannot_act_on(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        TrustedThinking(**options)


def test_rules_of_outcomes() -> None:
    """One word of four replaced, one put in; the mean of three ROUGEs of two sentences by hand."""
    assert word_error_rate("the cat sat down", "the dog sat down") == 0.25
    assert word_error_rate("the cat sat down", "the big cat sat") == 0.5
    assert word_error_rate("a b c", "") == 1 and word_error_rate("a", "b c d") == 3 and word_error_rate("", "a") == 1
    assert word_error_rate("a b c d e", "b c d e a") == pytest.approx(0.4)
    assert word_error_rate("a b", "a b") == 0
    read, task = WordErrors(), Task("t", "?", "the cat sat down")
    assert read(task, "<answer>the dog sat down</answer>").score == 0.75 and read(task, "so it is, no more").score == 0
    assert read.max_chars == 20_000 and build("verify", "word_errors") == read
    # Of three words and four: 2 shared (F 4/7); of two pairs and three 1 (F 2/5); in order 2 (F 4/7).
    assert rouge_n("the cat sat", "the cat was here", 1) == pytest.approx(4 / 7)
    assert rouge_n("the cat sat", "the cat was here", 2) == pytest.approx(0.4)
    assert rouge_n("a", "a", 2) == 0 and rouge_n("The CAT!", "the cat", 2) == 1
    found = RougeMean()(Task("t", "?", "the cat sat"), "\\boxed{the cat was here}")
    assert found.score == pytest.approx((8 / 7 + 0.4) / 3) and found.passed


def test_the_method() -> None:
    made = catalogue.make("S090", scorer=PART, skip_flat=True, trust=False, decay=3.0, outcome={"name": "graded"})
    assert made.reward.skip_flat and not made.reward.trust and made.reward.decay == 3.0
    assert made.reward(batch(group((1.0, 0.0), SCORES[:2]))).terms["outcome"].tolist() == [1, -0.5]
    assert made.objective.kl_weight == 0.04 and made.credit.normalise
    default = catalogue.make("S090", scorer=PART).reward
    assert (default.alpha, default.decay, default.trust, default.skip_flat) == (0.3, None, True, False)
    assert default.least == -math.inf


def test_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    scorer = {"engine": {"name": "keywords", "replies": [[r'Reasoning:\\n"[a-z]', "0.5"]], "otherwise": "0.2"}}
    folder = run(
        tmp_path / "run",
        model={"nano": {"hidden": 16, "layers": 1, "heads": 2, "context": 64, "vision": {"hidden": 16, "layers": 1}}},
        tasks={"source": {"name": "shapes", "grid": 2, "pixels": 8, "questions": ["count"]}, "eval_size": 2},
        method={"name": "S090", "options": {"scorer": scorer}, "reward": None},
        warmup={"steps": 0},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    weights = [0.3, 0.3 * math.exp(-1 / 2)]
    for row, weight in zip(rows, weights, strict=True):
        assert row["reward/trust"] == 1 and 0.2 < row["reward/thinking"] < 0.5 and row["grad_norm"] > 0
        assert row["reward/mean"] == pytest.approx(row["reward/outcome"] + weight * row["reward/thinking"], abs=1e-6)


def test_the_setting() -> None:
    """A short run of the lab's: what is trusted keeps nearer to the plain style."""
    options = {"choices": [[[0.5, True, {"thought": 0.3}], [0.5, False, {"thought": 0.3}]],
                           [[0.4, True, {"thought": 0.5}], [0.6, False, {"thought": 1.0}]]], "steps": 40, "prompts": 2,
               "lr": 0.3}  # fmt: skip
    setting = load("choices", options)
    plain = {"scorer": PART, "kl_weight": 0.0}
    arms = [{"name": "S090", "options": plain | more} for more in ({"decay": 10.0}, {"decay": 1e9, "trust": False})]
    trusted, added = (setting.run(arm, 0, Path())["choice 0"] for arm in arms)
    assert trusted > added
