"""PC-GRPO: puzzles undone by their answers, dispersion and weights by hand, a judge beside, and a run that sees."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from running import metrics, recipe, run

from assay import catalogue
from assay.batch import Batch
from assay.credit.scaled.dispersion import Dispersion, answered, dispersion
from assay.engines.keywords import Keywords
from assay.errors import RunError, UsageError
from assay.lab.settings import load
from assay.media import MARK, Picture
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.likelihood.consistency_bonus import ConsistencyBonus
from assay.rewards.shaping.monitored import Monitored
from assay.signals.base import Models
from assay.signals.likelihoods.averaged import AveragedLogprobs
from assay.tasks.pictures import cuts
from assay.tasks.pictures.self_puzzles import ANGLES, SelfPuzzles
from assay.tasks.pictures.unlabelled import Unlabelled, scene
from assay.tasks.seeded import generator
from assay.types import Ask, Episode, Group, Task, Verdict, pictures
from assay.verify.kind import KindVerifier
from assay.verify.lists.permutation import Permutation

JUDGE = KindVerifier()
ONE = np.ones(1, dtype=np.int64)
SIX = {"options": {x: f"patch {x}" for x in "ABCDEF"}}
FOUR = {"options": {str(a): f"{a} degrees" for a in ANGLES}}


def batch(task: Task, answers: Sequence[str], abstain: int = 0) -> Batch:
    texts = [f"<answer>{a}</answer>" for a in answers]
    episodes = tuple(Episode(ONE, ONE, ONE > 0, np.zeros(1), text, "eos") for text in texts)
    verdicts = [JUDGE(task, text) for text in texts]
    verdicts[len(verdicts) - abstain :] = [Verdict.abstain("broken")] * abstain
    return Batch.from_groups([Group(Ask(task, len(texts)), episodes, tuple(verdicts))], torch.float64)


def test_the_dispersion_of_answers() -> None:
    """Entropy over the logarithm of the options, or different answers less one over answers less one."""
    assert dispersion("A" + "B" * 7, 6) == pytest.approx(0.210279, abs=1e-6)
    assert dispersion("ABBCCDEF", 6) == pytest.approx(0.967132, abs=1e-6)
    assert dispersion("AAAABBBB", 4) == pytest.approx(0.5)
    assert dispersion("AABBCCDD", 4) == pytest.approx(1.0) and dispersion("ABCDE", 4) == 1.0
    assert [dispersion([min(i, k - 1) for i in range(8)], None) for k in (1, 4, 8)] == [0, pytest.approx(3 / 7), 1]
    assert dispersion("A", 4) == dispersion("A", None) == dispersion("", 4) == 0
    assert dispersion([None, None, "A", "A"], 4) == pytest.approx(0.5) and dispersion([None, "A"], None) == 1


def test_what_answers_say() -> None:
    """The option by its letter or its text; items in their order; nothing where it is none of either."""
    letters, jigsaw = Task("t", "?", "B", "choice", meta=SIX), Task("t", "?", [2, 1], "permutation")
    right, wrong = Verdict.right(), Verdict(0.0, False, {"valid": 0.0})
    assert answered(letters, "(B)", right) == answered(letters, "patch B", right) == "B"
    assert answered(letters, "Z", right) is answered(letters, "A, B", right) is answered(letters, None, right) is None
    assert answered(jigsaw, "2,1", right) == answered(jigsaw, "[2, 1]", right) != answered(jigsaw, "1, 2", right)
    assert answered(jigsaw, "2, 2", wrong) is None and answered(jigsaw, "", right) is None
    assert answered(jigsaw, "2, 1", Verdict(0.5, False, {"valid": 1.0})) is not None


def test_the_worked_weights() -> None:
    """Equation 1 on groups of eight, and advantages of a jigsaw without division by the deviation."""
    credit, letters = Dispersion(), Task("t", "?", "A", "choice", meta=SIX)
    turn = Task("t", "?", "90", "choice", meta=FOUR)

    def weight(task: Task, answers: Sequence[str], rewards: Sequence[float] | None = None) -> float:
        made = batch(task, answers)
        given = [v.score for v in made.verdicts] if rewards is None else rewards
        w = credit.weights(made, torch.full((len(answers),), sum(given) / len(given), dtype=torch.float64))
        assert len(set(w.tolist())) == 1
        return float(w[0])

    assert weight(letters, "ABBBBBBB") == pytest.approx(0.200621, abs=1e-6)
    assert weight(letters, "ABBCCDEF") == pytest.approx(0.430250, abs=1e-6)
    assert weight(turn, ["90"] * 4 + ["0"] * 4) == pytest.approx(0.707107, abs=1e-6)
    assert weight(turn, ["90", "90", "0", "0", "180", "180", "270", "270"]) == pytest.approx(0.75)
    assert weight(turn, ["90"] * 8) == weight(turn, ["0"] * 8) == 0
    places = [*itertools.permutations((1, 2, 3, 4))]
    jigsaw, said = Task("t", "?", [1, 2, 3, 4], "permutation"), [",".join(map(str, p)) for p in places]
    rewards = [0.25, 0.5, 0.5, 1, 0.25, 0.25, 0.5, 0.25]
    for distinct, expected in ((1, 0), (2, 0.372059), (4, 0.644425), (5, 0.744118), (8, 0.984375)):
        mixed = [said[min(i, distinct - 1)] for i in range(8)]
        assert weight(jigsaw, mixed, rewards) == pytest.approx(expected, abs=1e-6)
    made = batch(jigsaw, [said[min(i, 3)] for i in range(8)])
    made.rewards = torch.tensor(rewards, dtype=torch.float64)
    low, middle, high = -0.120830, 0.040277, 0.362489
    assert credit(made)[:, 0].tolist() == pytest.approx([low, middle, middle, high, low, low, middle, low], abs=1e-6)
    plain = Dispersion(gamma=0.0)
    for d, expected in ((0, 0), (0.125, 0.4375), (0.25, 0.75), (0.5, 1), (0.75, 0.75), (1, 0), (1.5, 0), (-1, 0)):
        assert plain.weights(made, torch.full((8,), d, dtype=torch.float64)).tolist() == pytest.approx([expected] * 8)
    assert float(Dispersion(2.0, 0.0).weights(made, torch.full((8,), 0.5))[0]) == 0.5


def test_groups_are_apart_and_abstentions_do_not_count() -> None:
    turn = Task("t", "?", "90", "choice", meta=FOUR)
    one, other = batch(turn, ["90", "0", "0", "0"]), batch(turn, ["90", "0", "180", "90"])
    both = Batch.from_groups(
        [Group(Ask(turn, 4), tuple(b.episodes), tuple(b.verdicts)) for b in (one, other)], torch.float64
    )
    method = catalogue.make("S089")
    expected = [*method.value(one).advantages[:, 0].tolist(), *method.value(other).advantages[:, 0].tolist()]
    assert method.value(both).advantages[:, 0].tolist() == pytest.approx(expected) and expected[0] > 0
    some = method.value(batch(turn, ["90", "0", "180", "270"], abstain=2))
    # Of two that count, one is right: entropy log 2 over log 4.
    assert some.advantages[:, 0].tolist() == pytest.approx([0.5**0.5 * 0.5, -(0.5**0.5) * 0.5, 0, 0])
    assert not method.value(batch(turn, ["90", "0"], abstain=2)).advantages.any()


def test_permutations() -> None:
    """Two of four in their place .5, all right, and 0 of what names an item twice or leaves one out."""
    task, judge = Task("t", "?", [2, 0, 3, 1], "permutation"), Permutation()
    for said, score, valid in (
        ("2, 0, 1, 3", 0.5, 1),
        ("[2, 0, 3, 1]", 1, 1),
        ("1, 3, 0, 2", 0, 1),
        ("2, 2, 3, 1", 0, 0),
        ("2, 0, 3", 0, 0),
        ("2, 0, 3, 1, 1", 0, 0),
        ("2, 0, 3, 4", 0, 0),
        ("2," * 500, 0, 0),
    ):
        found = judge(task, f"<think>3, 1</think><answer>{said}</answer>")
        assert (found.score, found.passed, found.parts) == (score, score == 1, {"valid": valid}), said
    assert judge(task, "so\n2, 0, 3, 1").passed and judge(task, "2, 0, 3, 1\nor so").passed is False
    assert judge(task, "").parts == {"valid": 0} and "2 of 4" in judge(task, "2, 0, 1, 3").feedback
    near = " " * 784 + "2, 0, 3, 1" + " " * 6
    assert judge(task, f"<answer>x{near[1:]}</answer>").passed is False
    assert judge(replace(task, reference=["x", "y"]), "\\boxed{x, y}").passed
    for wrong in ([], [1, 1], None, 3):
        found = judge(replace(task, reference=wrong), "1")
        assert found.passed is None and found.fault == "tests"


def pixels(task: Task) -> list[np.ndarray]:
    return [np.asarray(p.open()) for p in pictures(task.prompt)]


def test_turned_back_it_is_the_picture() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, counts = SelfPuzzles(seed=4, puzzles=("rotation",), pixels=24), Counter[str]()
    for i in range(48):
        task = source[i]
        [shown] = pixels(task)
        clockwise = " clockwise" in task.question
        assert clockwise or " counter-clockwise" in task.question
        back = np.rot90(shown, (1 if clockwise else -1) * int(task.reference) // 90)
        assert np.array_equal(back, scene(generator(4, i), 24))
        counts[f"{task.reference} {clockwise}"] += 1
        assert JUDGE(task, task.solution or "").passed and not JUDGE(task, "<answer>45</answer>").passed
    assert len(counts) == 8 and min(counts.values()) > 1
    corner = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert np.array_equal(cuts.turned(corner, 90, True)[0, 1], corner[0, 0])
    assert np.array_equal(cuts.turned(corner, 90, False)[1, 0], corner[0, 0])


def test_the_answer_puts_tiles_back() -> None:
    """The i-th tile shown goes to the place that the answer says, read in order; the inverse puts it elsewhere."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, sizes, differs, placed = SelfPuzzles(seed=1, puzzles=("jigsaw",), pixels=36), Counter[str](), 0, 0.0
    for i in range(64):
        task = source[i]
        size = task.question.split("cut into ")[1].split(" tiles")[0]
        rows, columns = map(int, size.split(" x "))
        shown, answer = cuts.tiles(pixels(task)[0], rows, columns), task.reference
        home = dict(zip(answer, shown, strict=True))
        assert np.array_equal(cuts.laid([home[k + 1] for k in range(len(shown))], columns), scene(generator(1, i), 36))
        assert JUDGE(task, task.solution or "").score == 1
        inverse = [answer.index(k + 1) + 1 for k in range(len(answer))]
        verdict = JUDGE(task, f"<answer>{', '.join(map(str, inverse))}</answer>")
        differs += inverse != answer
        assert verdict.passed is (inverse == answer)
        fixed = JUDGE(task, f"<answer>{', '.join(str(k + 1) for k in range(len(answer)))}</answer>").score
        placed += fixed * len(answer)
        sizes[size] += 1
    assert len(sizes) == 8 and min(sizes.values()) > 1 and differs > 12
    # By chance one tile is in its place, whatever their number.
    assert placed / 64 == pytest.approx(1, abs=0.4)


def test_a_patch_fits_where_it_was() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source, counts, letters = SelfPuzzles(seed=2, puzzles=("patch_fit",), pixels=32), Counter[int](), Counter[str]()
    kinds = Counter[str]()
    for i in range(32):
        task = source[i]
        shown, *patches = pixels(task)
        whole, options = scene(generator(2, i), 32), task.meta["options"]
        grey = (shown != whole).any(-1)
        row, column = (int(v.min()) for v in grey.nonzero())
        own = patches["ABCDEFGH".index(task.reference)]
        assert any(
            np.array_equal(whole[r : r + 8, c : c + 8], own) and (shown[r : r + 8, c : c + 8] == cuts.GREY).all()
            for r in range(max(row - 2, 0), row + 1)
            for c in range(max(column - 2, 0), column + 1)
        )
        assert (
            cuts.different(patches) and len(patches) == len(options) and task.question.count(MARK) == len(patches) + 1
        )
        counts[len(patches) - 1] += 1
        letters[task.reference] += 1
        colours = sorted(own.reshape(-1, 3).tolist())
        for patch in patches:
            same = sorted(patch.reshape(-1, 3).tolist()) == colours
            kinds["own" if patch is own else "turned" if same else "other"] += 1
        assert JUDGE(task, f"<answer>({task.reference})</answer>").passed
    assert set(counts) == {3, 5, 7} and min(counts.values()) > 4 and len(letters) > 5
    assert kinds["own"] == 32 and kinds["turned"] > 20 and kinds["other"] > 20
    # 1/4, 1/6 and 1/8 by chance
    assert sum(1 / (n + 1) for n in source.decoys) / 3 == pytest.approx(0.180556, abs=1e-6)


def test_decoys() -> None:
    """Ten ways to alter a patch; squares from elsewhere do not touch it, and the nearer colour of four is taken."""
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    image = scene(generator(0, 0), 16)
    piece = np.ascontiguousarray(cuts.patch(image, (4, 8), 4))
    assert len(list(cuts.changed(piece, generator(0)))) == 10
    assert cuts.different([piece, *cuts.changed(piece, generator(0))])
    assert (cuts.patch(cuts.covered(image, (4, 8), 4), (4, 8), 4) == 128).all() and (image != 128).any()
    halves = np.zeros((8, 8, 3), dtype=np.uint8)
    halves[:, :4] = 200
    found = [piece.mean() for piece in cuts.elsewhere(halves, (0, 0), 2, generator(1))]
    free = 7 * 7 - 4
    assert len(found) == -(-free // 4) and np.mean(found) > 120
    assert cuts.tiles(np.zeros((7, 9, 3)), 2, 2)[3].shape == (3, 4, 3)


def test_pictures_of_a_folder(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    wide = np.zeros((20, 40, 3), dtype=np.uint8)
    wide[:, 10:30] = scene(generator(0, 1), 20)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.PNG").write_bytes(Picture.of(wide).data)
    (tmp_path / "a.png").write_bytes(Picture.of(np.zeros((20, 20, 3), dtype=np.uint8)).data)
    (tmp_path / "notes.txt").write_text("no picture")
    read = Unlabelled(0, 20, str(tmp_path))
    assert [p.name for p in read.files] == ["a.png", "b.PNG"]
    assert np.array_equal(read[3], wide[:, 10:30]) and not read[2].any() and read[0].shape == (20, 20, 3)
    source = SelfPuzzles(puzzles=("rotation",), folder=str(tmp_path), pixels=20)
    # The black picture, whose turns are alike, is passed over.
    assert all(pixels(source[i])[0].any() for i in range(4))
    (tmp_path / "inner" / "b.PNG").unlink()
    for puzzle in ("rotation", "jigsaw", "patch_fit"):
        with pytest.raises(UsageError, match=f"20 pictures from number 0 on .* no {puzzle} can be made"):
            SelfPuzzles(puzzles=(puzzle,), folder=str(tmp_path), pixels=20)[0]
    (tmp_path / "a.png").unlink()
    with pytest.raises(UsageError, match="is no folder with pictures"):
        SelfPuzzles(folder=str(tmp_path))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed -1"),
        ({"puzzles": ()}, "puzzles must name some of"),
        ({"pixels": 11}, "pixels 11"),
        ({"pixels": 2049}, "pixels 2049"),
        ({"decoys": ()}, "decoys"),
        ({"decoys": (3, 8)}, "decoys"),
        ({"decoys": (0,)}, "decoys"),
        ({"grid": 1}, "grid 1"),
        ({"grid": 4}, "grid 4"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        SelfPuzzles(**options)


def test_sources_repeat() -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    source = SelfPuzzles(seed=3, pixels=12)
    assert source[5] == source[5] != source[6] and source[5] != SelfPuzzles(seed=4, pixels=12)[5]
    assert source.size is None and {source[i].meta["category"] for i in range(12)} == set(source.puzzles)
    assert source[0].id == "self_puzzles/3/0" and "<think>" in source[0].question
    default = SelfPuzzles()
    assert (default.decoys, default.grid, default.pixels, default.seed) == ((3, 5, 7), 3, 224, 0)
    assert default.puzzles == ("patch_fit", "rotation", "jigsaw") and default.folder is None


def test_a_judge_is_asked_and_not_heard() -> None:
    """Every third step, of each response, quoted; its word is a term, and rewards are what they were."""
    asked: list[str] = []

    class Judge(Keywords):
        def generate(self, requests: Any) -> Any:
            asked.extend(str(r.prompt) for r in requests)
            assert all(r.sampling.max_tokens == 16 and r.sampling.temperature == 0 for r in requests)
            return super().generate(requests)

    judge = Judge([['<answer>90</answer>"', "Yes."], ["<answer>0", "no, yes, no"]], "Hm.")
    turn = Task("t", 'What "turn"?', "90", "choice", meta=FOUR)
    reward = catalogue.make("S089", judge=judge, every=3).reward
    seen = []
    for _ in range(7):
        found = reward(batch(turn, ["90", "0", "180"]))
        assert found.values.tolist() == [1, 0, 0] and found.valid.tolist() == [True] * 3
        seen.append("rac" in found.terms)
    assert seen == [True, False, False, True, False, False, True] and len(asked) == 9
    assert '\\"turn\\"' in asked[0] and "support" in asked[0]
    found = reward.consistency(batch(turn, ["90", "0", "180"]))
    assert found["rac"].tolist() == [1, 0, 0] and found["rac_told"].tolist() == [1, 1, 0]
    again = Monitored(judge=judge, every=3)
    again.load_state_dict(reward.state_dict())
    assert reward.state_dict() == {"step": 7} and "rac" not in again(batch(turn, ["90"])).terms
    assert set(Monitored()(batch(turn, ["90"])).terms) == {"verdict"} and Monitored().every == 10
    inner = Monitored({"name": "confidence"})
    assert inner.needs == inner.members[0].needs != frozenset() == Monitored().needs
    for options in ({"every": 0}, {"max_tokens": 0}, {"template": "{question}"}):
        with pytest.raises(UsageError, match="reward 'monitored': every and max_tokens must be"):
            Monitored(**options)
    with pytest.raises(UsageError, match="reward 'monitored': the judge must be"):
        Monitored(judge=3)


def supported(r: Sequence[float], p: Sequence[float | None], groups: Sequence[int] = (), **options: Any) -> Any:
    """The reward of responses of two tokens, the second their answer's, with those likelihoods under the slow copy."""
    ones = np.ones(2, dtype=np.int64)
    episodes = tuple(Episode(ones, ones, ones > 0, np.zeros(2), "", "eos") for _ in r)
    verdicts = tuple(Verdict(x, x >= 1) for x in r)
    made = Batch.from_groups([Group(Ask(Task("t", "?", "1"), len(r)), episodes, verdicts)], torch.float64)
    made.group = torch.tensor(groups or [0] * len(r))
    reward = ConsistencyBonus(**options)
    made.signals["answer_tokens"] = torch.tensor([[False, x is not None] for x in p])
    # What stands before the answer is as good as impossible, and must not count.
    logs = [[-20.0, 0.0 if x is None else math.log(x)] for x in p]
    made.signals["averaged_logprobs"] = torch.tensor(logs, dtype=torch.float64)
    return reward(made)


def test_the_worked_bonus() -> None:
    """Capped at .95, .778 is at least the mean .776 of the right ones; at .99 that would be .789, and .778 below it."""
    found = supported([1, 1, 1, 0, 1], [0.99, 0.778, 0.6, 0.99, None], margin=0.0)
    assert found.values.tolist() == [1.5, 1.5, 1, 0, 1] and found.terms["bonus"].tolist() == [0.5, 0.5, 0, 0, 0]
    assert found.terms["support"].tolist() == pytest.approx([0.95, 0.778, 0.6, 0.95, 0])
    assert found.terms["task"].tolist() == [1, 1, 1, 0, 1]
    uncapped = supported([1, 1, 1, 0, 1], [0.99, 0.778, 0.6, 0.99, None], margin=0.0, cap=1.0)
    assert uncapped.values.tolist() == [1.5, 1, 1, 0, 1]
    # Of partial credit only what is at least the mean, .3875, is compared; and its share of the bonus is its own.
    assert supported([0.25, 0.5, 0.75, 0.05], [0.9, 0.3, 0.5, 0.9]).values.tolist() == [0.25, 0.5, 1.125, 0.05]
    # What is as likely as the mean has it, and what is less by no more than the margin.
    assert supported([1, 1], [0.4, 0.4]).values.tolist() == [1.5, 1.5]
    assert supported([1, 1], [0.5, 0.485]).values.tolist() == [1.5, 1.5], "0.0075 below the mean"
    assert supported([1, 1], [0.5, 0.475]).values.tolist() == [1.5, 1], "0.0125 below the mean"
    # A group that earns next to nothing has none: .1 is not enough.
    assert supported([0.1, 0.1], [0.4, 0.4]).values.tolist() == [0.1, 0.1]
    assert supported([0.11, 0.1], [0.4, 0.9], bonus=2.0).values.tolist() == pytest.approx([0.33, 0.1])
    # Groups are apart.
    assert supported([1, 1, 1, 1], [0.5, 0.4, 0.3, 0.2], [0, 1, 0, 1]).values.tolist() == [1.5, 1.5, 1, 1]


def test_the_bonus_of_what_could_not_be_judged() -> None:
    """It has no reward, and its siblings are not measured by it; the answer's place is the verifier's."""
    reward, made = ConsistencyBonus(margin=0.0), batch(Task("t", "?", "1"), ["1", "1", "1"], abstain=1)
    made.signals = {"answer_tokens": torch.ones(3, 1) > 0, "averaged_logprobs": torch.tensor([[-1.0], [-2.0], [0.0]])}
    found = reward(made)
    assert found.valid.tolist() == [True, True, False] and found.values[:2].tolist() == [1.5, 1]
    assert {n.name for n in reward.needs} == {"answer_tokens", "averaged_logprobs"}
    made = ConsistencyBonus(slow={"every": 3}, answer={"rules": ("boxed",)}, reward={"name": "confidence"})
    assert made.slow.every == 3 and made.answer.rules == ("boxed",) and len(made.members) == 1
    assert made.needs >= made.members[0].needs
    for options in ({"bonus": -1.0}, {"cap": 0.0}, {"cap": 1.1}, {"margin": -0.1}, {"least": -0.1}):
        with pytest.raises(UsageError, match=r"reward 'consistency_bonus': bonus .* must be at least 0, and cap"):
            ConsistencyBonus(**options)


def test_the_slow_copy() -> None:
    """After ten steps it has gone .005 of the way: logits 0.02 and 0, whatever the temperature of sampling."""
    policy = TabularPolicy(Tree.bandit(2))
    here, signal = Models(policy, temperature=2.0), AveragedLogprobs()
    episodes = policy.episodes(torch.tensor([[0], [1]]), torch.ones(2, dtype=torch.int64))
    made = Batch.from_groups([Group(Ask(Task("t", "?"), 2), tuple(episodes))], torch.float64)
    with pytest.raises(RunError, match="not been started"):
        signal(made, here)
    signal.start(here)
    with torch.no_grad():
        policy.logits[0, 0] = 4.0
    for _ in range(9):
        assert signal.learn(made, here) == {}
    assert signal(made, here).exp().flatten().tolist() == pytest.approx([0.5, 0.5])
    signal.learn(made, here)
    x = math.exp(0.02)
    assert signal(made, here).exp().flatten().tolist() == pytest.approx([x / (1 + x), 1 / (1 + x)])
    other = AveragedLogprobs(temperature=None)
    other.start(here)
    other.load_state_dict(signal.state_dict())
    x = math.exp(0.01)
    assert other(made, here).exp().flatten().tolist() == pytest.approx([x / (1 + x), 1 / (1 + x)])
    for options in ({"rate": -0.1}, {"rate": 1.1}, {"every": 0}, {"temperature": 0.0}):
        with pytest.raises(UsageError, match="signal 'averaged_logprobs': rate"):
            AveragedLogprobs(**options)


def test_difficulty_is_the_puzzles_own() -> None:
    """With the bonus .75 and not the 1.125 that all earned: 4 .75 .25 of an advantage of +-.25 or .25 - .5."""
    turn = Task("t", "?", "90", "choice", meta=FOUR)
    made, credit = batch(turn, ["90", "90", "90", "0"]), Dispersion(gamma=0.0, of="task")
    made.rewards = torch.tensor([1.5, 1, 1, 0], dtype=torch.float64)
    made.reward_terms["task"] = torch.tensor([1.0, 1, 1, 0], dtype=torch.float64)
    assert credit(made)[:, 0].tolist() == pytest.approx([0.75 * (r - 0.875) for r in (1.5, 1, 1, 0)])
    with pytest.raises(UsageError, match="credit 'dispersion': the reward has no term 'tsk'; did you mean 'task'"):
        Dispersion(of="tsk")(made)
    with_it = catalogue.make("S089", bonus=0.5)
    paid = with_it.reward.reward
    assert with_it.credit.of == "task" and (paid.bonus, paid.cap, paid.margin, paid.least) == (0.5, 0.95, 0.01, 0.1)
    assert (paid.slow.rate, paid.slow.every, paid.slow.temperature) == (0.005, 10, 1.0)
    assert [type(x) for x in with_it.learners] == [AveragedLogprobs]
    assert catalogue.make("S089").credit.of is None and not catalogue.make("S089").learners


def test_the_bonus_is_paid_in_a_run(tmp_path: Path) -> None:
    """In the first step the copy is the policy; in the second it lags behind."""
    reward = {"name": "consistency_bonus", "reward": recipe("")["method"]["reward"], "slow": {"every": 1, "rate": 0.5}}
    sections: dict[str, Any] = {"warmup": {"steps": 15, "lr": 1e-2, "batch": 8}, "evaluate": {"every": 0}}
    folder = run(
        tmp_path / "run", method={"name": "S089", "reward": reward}, train={"steps": 2, "lr": 1e-2}, **sections
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(0 < row["reward/support"] < 1 and row["grad_norm"] > 0 for row in rows)
    assert all(0 < row["reward/bonus"] <= 0.5 * row["reward/task"] for row in rows)


def test_the_method() -> None:
    made = catalogue.make("S089")
    assert made.credit == Dispersion(4.0, 0.5) and catalogue.make("S089", gamma=0.0).credit == Dispersion(4.0, 0.0)
    assert made.reward.judge is None and made.reward.every == 10 and made.group_relative
    assert made.objective.aggregation == "sequence_mean" and made.objective.kl_weight == 0
    assert made.credit.summary["normalisation"] == "difficulty and dispersion"
    for options in ({"scale": 0.0}, {"gamma": -0.1}):
        with pytest.raises(UsageError, match=r"credit 'dispersion': scale .* must be above 0"):
            Dispersion(**options)


def test_it_trains(tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    letters = "".join(sorted(set("By how many degrees was this picture turned counter-clockwise: 0, 90, 180, 270?")))
    nano = {"hidden": 16, "layers": 1, "heads": 2, "context": 96, "alphabet": letters}
    form = {"name": "self_puzzles", "puzzles": ["rotation"], "pixels": 12, "form": ""}
    folder = run(
        tmp_path / "run",
        model={"nano": {**nano, "vision": {"hidden": 16, "layers": 1, "pixels": 32}}},
        tasks={"source": form, "eval_size": 2},
        method={"name": "S089", "reward": None},
        warmup={"steps": 25, "batch": 8, "lr": 1e-2},
        run={"checkpoint_every": 100},
        rollout={"prompts": 2, "group": 4, "max_tokens": 4},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
    )
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and any(0 < row["pass_rate"] < 1 and row["grad_norm"] > 0 for row in rows)


def test_the_setting() -> None:
    """Pictures that are told rightly ever more often; of groups at the rim less is learned."""
    setting = load("turned", {"pictures": 8, "steps": 12})
    weighted = setting.run({"name": "S089"}, 0, Path())
    plain = setting.run({"name": "S089", "credit": {"name": "grpo", "normalise": False}}, 0, Path())
    assert weighted["start"] == plain["start"] < weighted["area"] < weighted["final"]
    assert plain["middle"] + 0.05 < weighted["middle"] < 1 and weighted["rollouts"] == 12 * 8 * 8
