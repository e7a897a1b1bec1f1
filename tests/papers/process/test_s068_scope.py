"""SCOPE: where wrong responses are cut, what goes on from there, what enters the group, and what is learned of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from claimed import learned
from running import metrics, run
from scripted import Scripted, Shared

from assay.batch import Batch
from assay.engines.base import Sampling
from assay.errors import UsageError
from assay.method import make_method
from assay.objectives.shaped import Shaped, shaped
from assay.papers.process.s068_scope import scope
from assay.registry import build
from assay.rollout.spliced import Spliced, diversity
from assay.signals.steps import Steps
from assay.types import Ask, Group, Origin, Task, Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

LINES = Steps("newline")
SCORES = {"even": 0.5, "good": 0.9, "fair": 0.85, "bad": 0.3, "late": 0.7}


class ByWord:
    """A scorer of steps that knows words; a response with "?" cannot be scored."""

    def scores(self, responses):
        return [
            None if any("?" in s for s in steps) else [2 * SCORES.get(s.strip(), 0.9) - 1 for s in steps]
            for _, steps in responses
        ]


def judge(groups):
    """Right is what ends with "4"."""
    return [
        g
        if g.verdicts
        else g.judged([Verdict.right() if e.text.endswith("4") else Verdict.wrong() for e in g.episodes])
        for g in groups
    ]


class Ending(Scripted):
    """An engine with a token that ends a response, which its text does not show."""

    def encode_response(self, text, end=True):
        return self.encode(text + "$" * end)

    def decode(self, tokens):
        return super().decode(tokens).removesuffix("$")


def collected(responses, go_on="good\n4", n=None, solution=None, teacher=None, kind=Scripted, **options):
    """One group of these responses, and who was asked."""
    engine = kind([(r, "eos") for r in responses], lambda prefix: go_on)
    made = Spliced(Sampling(40), judge, **{"prm": ByWord(), "steps": LINES, "teacher": teacher, **options})
    asked = Ask(Task("t", "Q:", "4", solution=solution), n or len(responses))
    [group] = made.collect([asked], engine, np.random.default_rng(0))
    return group, made, engine


WRONG = "good\nfair\nbad\nlate"


def test_where_it_is_cut() -> None:
    """Scores 0.9, 0.85, 0.3, 0.7: the third step is the first below 1/2, two of four stay."""
    engine = Scripted([(WRONG, "eos")])
    made = Spliced(Sampling(40), judge, prm=ByWord(), steps=LINES)

    def cuts(*texts, **options):
        engine = Scripted([(t, "eos") for t in texts])
        cutter = Spliced(Sampling(40), judge, **{"prm": ByWord(), "steps": LINES, **options})
        episodes = [e for [e] in engine.generate([request() for _ in texts])]
        group = Group(Ask(Task("t", "Q:", "4"), len(texts)), tuple(episodes))
        return [(c.index, c.steps, c.tokens) for c in cutter.cuts(judge([group]), engine)]

    assert cuts(WRONG) == [(0, 2, len("good\nfair\n"))]
    assert cuts(WRONG, threshold=0.2) == [] and cuts(WRONG, share=0.6) == [] and cuts(WRONG, share=0.5) != []
    assert cuts(WRONG, threshold=0.87) == [] and cuts(WRONG, threshold=0.87, share=0.25) == [(0, 1, 5)]
    assert cuts("bad\ngood", share=0.0) == [], "of what is wrong from the beginning nothing stays"
    assert cuts("good\ngood", "good\nbad\n4", "good\n?") == [], "no error, a right answer, no scores"
    longer = "good\n" * 3 + "bad"
    assert cuts(WRONG, longer) == [(1, 3, 15)] and cuts(WRONG, longer, most=2) == [(1, 3, 15), (0, 2, 10)]
    # The part that would stay counts, not its length: 2 of 3 steps before 3 of 5. At the threshold a step is sound.
    assert cuts("good\ngood\nbad", "good\ngood\ngood\nbad\nlate") == [(0, 2, 10)]
    assert cuts("good\neven\nbad") == [(0, 2, 10)] and cuts(WRONG, WRONG) == [(0, 2, 10)]
    assert made.collect([], engine, np.random.default_rng(0)) == []
    assert made.metrics() == {"splice/cut": 0, "splice/repaired": 0, "splice/diversity": 0}


def test_scores_of_the_verdict() -> None:
    """Each step's part of it; a response without all of them, one not judged and one that failed stay as they are."""
    engine = Scripted([("a\nb\nc", "eos")] * 3 + [("a\nb\nc", "error"), ("", "eos")])
    parts = {"step 0": 0.9, "step 1": 0.0, "step 2": 0.9}
    wrong = Verdict(0.0, False, parts)
    verdicts = [wrong, Verdict(0.0, False, {"step 1": 0.0, "step 2": 0.9}), Verdict(0.0, None, parts), wrong, wrong]
    episodes = tuple(e for [e] in engine.generate([request() for _ in verdicts]))
    group = Group(Ask(Task("t", "Q:", "4"), 5), episodes).judged(verdicts)
    made = Spliced(Sampling(40), judge, steps=LINES, share=0.25, most=5)
    assert [(c.index, c.steps, c.tokens) for c in made.cuts([group], engine)] == [(0, 1, 2)]


def request():
    from assay.engines.base import Request

    return Request("Q:", 1, Sampling(40), 0)


def test_a_wrong_response_is_repaired() -> None:
    teacher = Scripted((), lambda prefix: "good\n4")
    group, made, engine = collected([WRONG, "good\n4", "good"], teacher=teacher)
    assert [e.text for e in group.episodes] == ["good\nfair\ngood\n4", "good\n4", "good"]
    assert [v.passed for v in group.verdicts] == [True, True, False] and len(group.episodes) == 3
    [asked] = teacher.asked
    assert teacher.decode(asked.prefix) == "good\nfair\n" and asked.sampling.max_tokens == 30 and asked.n == 1
    assert made.metrics()["splice/cut"] == 1 and made.metrics()["splice/repaired"] == 1
    assert len(engine.asked) == 1, "the policy was asked for its responses and nothing else"


class SharedScripted(Shared, Scripted):
    pass


def test_processes_ask_the_teacher_together() -> None:
    teacher = Scripted((), lambda prefix: "good\n4")
    group, _, engine = collected([WRONG, "good\n4", "good"], teacher=teacher, kind=SharedScripted)
    assert engine.divisions == 1 and [v.passed for v in group.verdicts] == [True, True, False]


def test_the_beginning_stays_as_it_was_sampled() -> None:
    teacher = Scripted((), lambda prefix: "4")
    group, _, engine = collected([WRONG], teacher=teacher)
    [episode] = group.episodes
    begun = engine.encode("good\nfair\n")
    assert episode.tokens[:10].tolist() == begun.tolist() and episode.meta["spliced"] == 10
    assert episode.origins is not None and episode.logprobs is not None
    assert episode.origins.tolist() == [Origin.OWN] * 10 + [Origin.TEACHER]
    assert np.isfinite(episode.logprobs[:10]).all() and np.isnan(episode.logprobs[10:]).all()
    assert episode.mask.all() and len(episode.mask) == len(episode.tokens) == 11 and episode.stop == "eos"


def test_the_policy_itself_may_go_on() -> None:
    group, _, engine = collected([WRONG], go_on="4")
    [episode] = group.episodes
    assert episode.text == "good\nfair\n4" and episode.origins is not None and not episode.origins.any()
    assert episode.logprobs is not None and np.isfinite(episode.logprobs).all() and len(engine.asked) == 2


def test_only_right_repairs_enter() -> None:
    """A repair that is wrong, or could not be made, leaves the response as it was; of several tries the first right."""
    for reply in ("good\n5", ""):
        group, made, _ = collected([WRONG], teacher=Scripted((), lambda prefix, reply=reply: reply))
        assert group.episodes[0].text == WRONG and group.episodes[0].origins is None
        assert made.metrics()["splice/repaired"] == 0 and group.verdicts[0].passed is False
    said = iter(["5", "and 4", "4"])
    group, made, _ = collected([WRONG, WRONG], teacher=Scripted((), lambda prefix: next(said)), tries=3)
    assert group.episodes[0].text == "good\nfair\nand 4" and made.metrics()["splice/cut"] == 1
    # What failed or is empty is no try, and what did not come to its end has none.
    for stop, ended in (("length", ""), ("eos", "$"), ("stop", "$")):
        teacher = Scripted([("4", "error"), ("", "eos"), ("so 4", stop)])
        group, _, _ = collected([WRONG], teacher=teacher, tries=3, template="{prefix}", kind=Ending)
        assert Scripted().decode(group.episodes[0].tokens) == "good\nfair\nso 4" + ended
        assert group.episodes[0].stop == stop


def test_every_prompt_has_its_repairs() -> None:
    """As many of a prompt as may be; how unlike the responses of a prompt are is a mean over prompts."""
    engine = Scripted([(WRONG, "eos"), ("x", "eos"), (WRONG, "eos"), (WRONG, "eos")], lambda prefix: "4")
    made = Spliced(Sampling(40), judge, ByWord(), steps=LINES, most=2)
    groups = made.collect([Ask(Task(t, "Q:", "4"), 2) for t in "ab"], engine, np.random.default_rng(0))
    assert [[e.text[-6:] for e in g.episodes] for g in groups] == [["fair\n4", "x"], ["fair\n4"] * 2]
    assert made.metrics() == {"splice/cut": 3, "splice/repaired": 3, "splice/diversity": 0.5}
    assert len({r.seed for r in engine.asked}) == 5, "each with a seed of its own"


def test_one_step_of_the_teacher_and_then_the_policy() -> None:
    teacher = Scripted((), lambda prefix: "good\nnever read")
    group, _, engine = collected([WRONG], go_on="4", teacher=teacher, source="step")
    [episode] = group.episodes
    assert episode.text == "good\nfair\ngood\n4" and episode.origins is not None
    assert episode.origins.tolist() == [0] * 10 + [Origin.TEACHER] * 5 + [0]
    assert (
        episode.logprobs is not None and np.isnan(episode.logprobs[10:15]).all() and np.isfinite(episode.logprobs[15])
    )
    last = engine.asked[-1]
    assert engine.decode(last.prefix) == "good\nfair\ngood\n" and (last.n, last.sampling.max_tokens) == (1, 25)
    # Where the step fills the response nothing is asked for, and where the policy fails there is no repair.
    full = Scripted((), lambda prefix: "x" * 29 + "4")
    group, _, engine = collected([WRONG], teacher=full, source="step")
    assert group.episodes[0].text == WRONG and len(engine.asked) == 1
    # The policy's own step and what it writes after it are both its own.
    group, _, _ = collected([WRONG], go_on="4", source="step")
    [own] = group.episodes
    assert own.text == "good\nfair\n44" and np.isfinite(own.logprobs).all() and not own.origins.any()


def test_a_policy_that_fails_after_the_teachers_step() -> None:
    class Failing(Scripted):
        def _next(self, request):
            text, stop, told = super()._next(request)
            return text, "error" if request.prefix else stop, told

    group, _, engine = collected([WRONG], "4", teacher=Scripted((), lambda _: "good\n"), source="step", kind=Failing)
    assert group.episodes[0].text == WRONG and len(engine.asked) == 2


def test_the_rest_of_a_worked_solution() -> None:
    group, _, _ = collected([WRONG], solution="one\ntwo\nthree\nso 4", source="gold")
    assert group.episodes[0].text == "good\nfair\nthree\nso 4"
    short, _, _ = collected([WRONG], solution="at once\n4", source="gold")
    assert short.episodes[0].text == WRONG
    assert collected([WRONG], solution="4", source="gold")[0].episodes[0].text == WRONG
    ends, _, _ = collected([WRONG], solution="one\ntwo\nso 4", source="gold")
    assert ends.episodes[0].text == "good\nfair\nso 4"
    # Steps of so many tokens are none of the solution's.
    fixed = collected(["abbb"], solution="so 4", source="gold", steps=Steps("fixed", 1), share=0.0, prm=Halves())
    assert fixed[0].episodes[0].text == "abbb"
    assert collected([WRONG], source="gold")[0].episodes[0].text == WRONG


def test_a_teacher_that_is_asked_in_words() -> None:
    teacher = Scripted([("4", "eos")])
    template = "Go on:\n{question}\n{prefix}"
    group, _, _ = collected([WRONG], teacher=teacher, template=template)
    assert teacher.asked[0].prompt == "Go on:\nQ:\ngood\nfair\n" and group.episodes[0].text == "good\nfair\n4"


def test_an_all_wrong_group_learns_from_a_repair() -> None:
    """Eight wrong ones, one of them repaired: 2.474874 for it and -0.353553 for the others; without it all are 0."""
    for go_on, want in (("4", [2.474874] + [-0.353553] * 7), ("5", [0.0] * 8)):
        group, _, _ = collected([WRONG] + ["good"] * 7, teacher=Scripted((), lambda prefix, go_on=go_on: go_on))
        batch = Batch.from_groups([group], torch.float64)
        found = scope(ByWord()).value(batch).advantages[:, 0].tolist()
        assert found == pytest.approx(want, abs=1e-5)


def test_the_shaped_probability() -> None:
    """Own tokens of a repaired response have their ratio, the teacher's p / (p + 0.1)."""
    group, _, _ = collected([WRONG, "good"], teacher=Scripted((), lambda prefix: "4"))
    batch = Batch.from_groups([group], torch.float64)
    method = scope(ByWord())
    method.value(batch)
    assert isinstance(method.objective, Shaped)
    now = torch.where(batch.mask, torch.log(torch.tensor(0.5, dtype=torch.float64)), 0.0)
    loss = method.objective(now, batch)
    a = float(batch.advantages[0, 0])
    # The behaviour's chances are 1: a ratio of 1/2 is below the clip range.
    own = [-min(0.5 * a, 0.8 * a)] * 10
    other = [-a * float(shaped(torch.tensor([[0.5]]), 0.1))]
    wrong = [-min(0.5 * -a, 0.8 * -a)] * 4
    assert loss.value.item() == pytest.approx(sum(own + other + wrong) / 15)
    assert float(shaped(torch.tensor([[0.05]]), 0.1)) == pytest.approx(0.333333, abs=1e-6)


def test_without_an_error_it_is_grpo() -> None:
    """A judge of steps that never flags: the same groups, and the clipped surrogate on them."""
    texts = ["good\n5", "good\nfair\n4"]
    group, _, _ = collected(texts)
    assert [e.text for e in group.episodes] == texts and all(e.origins is None for e in group.episodes)
    batch = Batch.from_groups([group], torch.float64)
    plain = make_method("grpo")
    plain.value(batch)
    now = batch.logprobs - 0.05
    assert scope(ByWord()).objective(now, batch).value == plain.objective(now, batch).value


def test_diversity() -> None:
    """Of word pairs {ab, bc} and {ab, bd}: one of three is shared."""
    assert diversity(["a b c", "a b d"]) == pytest.approx(2 / 3)
    assert diversity(["a b c", "a b c"]) == 0 and diversity(["x", "y"]) == 1 and diversity(["a"]) == 0
    assert diversity(["a b c", "a b d", "a b c"]) == pytest.approx((2 / 3 + 0 + 2 / 3) / 3)
    assert diversity(["", ""]) == 0


def test_options() -> None:
    for bad in ({"threshold": 1.5}, {"share": -0.1}, {"most": 0}, {"tries": 0}):
        with pytest.raises(UsageError, match="spliced"):
            Spliced(Sampling(4), judge, **bad)
    for edge in (0.0, 1.0):
        made = Spliced(Sampling(4), judge, threshold=edge, share=edge)
        assert (made.threshold, made.share, made.most, made.tries) == (edge, edge, 1, 1)
    with pytest.raises(TypeError):
        Spliced(Sampling(4), judge, _seen={})  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="prefix"):
        Spliced(Sampling(4), judge, template="{question}")
    with pytest.raises(UsageError, match="method S068 takes"):
        Spliced(Sampling(4), judge, prm="file.py:f")
    with pytest.raises(UsageError, match=r"S068 \(SCOPE\) needs prm"):
        make_method("S068")
    made = make_method("S068", options={"prm": f"{__file__}:halves"})
    rollout = build("rollout", made.rollout, sampling=Sampling(4), judge=judge)
    assert (rollout.threshold, rollout.share, rollout.most, rollout.tries, rollout.source) == (0.5, 0.5, 1, 1, "suffix")
    assert rollout.prm.scores([(Task("t", ""), ["a", "b"])]) == [[0.8, -0.8]] and made.objective.gamma == 0.1


class Halves:
    def scores(self, responses):
        return [halves(*one) for one in responses]


def halves(task, steps) -> list[float]:
    """Steps after the first are bad."""
    return [0.8 if k == 0 else -0.8 for k in range(len(steps))]


def test_a_run_repairs(tmp_path: Path) -> None:
    """Wrong responses of one digit are kept for their first token, after which a teacher writes what is then judged."""
    teacher = {"name": "keywords", "replies": [], "otherwise": "7"}
    options = {"prm": f"{__file__}:halves", "steps": {"by": "fixed", "size": 1}, "share": 0.0}
    folder = run(
        tmp_path / "run",
        method={"name": "S068", "options": {**options, "teacher": teacher, "template": "{prefix}", "most": 2}},
        rollout={"prompts": 8},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert all(row["splice/cut"] > 0 and 0 <= row["splice/repaired"] <= row["splice/cut"] for row in rows)
    assert all(0 <= row["splice/diversity"] <= 1 for row in rows)


def test_sooner_with_repairs() -> None:
    repaired, own = (learned("S068", arm, steps=25, lr=5.0) for arm in ("scope", "own"))
    assert repaired["area"] > own["area"] + 0.05 and repaired["rollouts"] == own["rollouts"]
