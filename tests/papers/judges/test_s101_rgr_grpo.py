"""RGR-GRPO: what rubrics pay, which response is refined by what, whose place it takes, and how it is learned from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from claimed import learned
from marked import Critic
from running import metrics, recipe
from scripted import Told, judge, operated
from tasks.making.told import Told as Says

import assay
from assay.batch import Batch
from assay.engines.base import Request, Sampling
from assay.engines.marking import MARKS
from assay.errors import UsageError
from assay.lab.settings.open_ended.refined_answers import Setting
from assay.method import make_method
from assay.objectives.shaped import Shaped, shaped
from assay.papers.judges.s101_rgr_grpo import rgr_grpo
from assay.policies.tabular import TabularPolicy, Tree
from assay.rewards.judges.rubric_judge import RubricJudge
from assay.rollout.surgery.rubric_refined import REFINE, RubricRefined
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.types import Ask, Group, Origin, Task, Verdict
from assay.verify.none import NoVerifier
from assay.verify.rubric.criteria import Rubric

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = [
    {"text": "has an a", "weight": 3, "kind": "factual"},
    {"text": "has a b", "weight": 3, "kind": "factual"},
    {"text": "has a c", "weight": 2, "kind": "process"},
    {"text": "has a d", "weight": 1},
]
TASK = Task("t", "Q", "1", meta={"rubric": ROWS})


def letters(prompt: str, k: int) -> str | None:
    """A judge of letters; it fails on what has a "!", and cannot be read on what has a "%"."""
    text = prompt.partition("Response:\n")[2].partition("\n\nCriteria")[0]
    if "!" in text or "%" in text:
        return None if "!" in text else "who knows"
    return json.dumps(["yes" if letter in text else "no" for letter in "abcd"])


def refined(texts: str, refinements: str, who: Any = judge, **options: Any) -> tuple[Group, Told, Any, Critic]:
    """A group of these responses, words apart, and how the policy refines what it is shown."""
    critic, first, later = Critic(letters), texts.split(), refinements.split()
    engine = Told(lambda prompt, i: later[i] if "misses" in prompt else first[i])
    rollout = rgr_grpo(critic, **options).rollout
    assert not isinstance(rollout, str)
    group, made = operated(dict(rollout), engine, TASK, len(first), judge=who)
    return group, engine, made, critic


def words(group: Group) -> str:
    return " ".join(e.text for e in group.episodes)


def test_rewards_by_hand() -> None:
    """Met are a, c and d of weights 3, 3, 2, 1: 6/9."""
    method = rgr_grpo(Critic(letters))
    task = replace(TASK, reference="x")
    episodes = refined("acd ab b1 a!", "", bar=0.1)[0].episodes
    group = Group(Ask(task, 4), tuple(replace(e, meta={}) for e in episodes), (Verdict.wrong(),) * 4)
    batch = Batch.from_groups([group], torch.float64)
    method.value(batch)
    assert batch.rewards.tolist() == pytest.approx([0.666667, 0.666667, 0.333333, 0], abs=1e-6)
    assert batch.valid.tolist() == [True, True, True, False]


def test_the_defaults() -> None:
    method = rgr_grpo(Critic(letters))
    rollout: Any = method.rollout
    assert (rollout["bar"], rollout["tries"], rollout["template"]) == (1.0, 1, REFINE)
    assert method.objective == Shaped(gamma=0.1, kl_weight=0.0)
    marker = rgr_grpo({"judge": Critic(letters), "block": 2}, rubric=["short"]).reward.judge  # type: ignore[attr-defined]
    assert marker.question.block == 2 and [c.text for c in marker.also] == ["short"]
    plain = RubricRefined(Sampling(4), judge, marker=marker)
    assert (plain.bar, plain.tries) == (1.0, 1)


def test_the_best_failing_response_is_refined() -> None:
    """Of R = 1/3, 5/9, 5/9 and 3/9 it is the first of the best, which misses b and d; ad comes to 4/9, no more."""
    group, engine, made, _ = refined("a ac ca b", "ad")
    [_, asked] = engine.prompts
    assert asked == REFINE.format(question="Q", attempt="ac", criteria="has a b\nhas a d")
    assert words(group) == "a ac ca b" and group.before is None
    found = made.metrics()
    assert (found["surgery/cases"], found["surgery/sampled"], found["surgery/mended"]) == (1, 1, 0)


def test_a_better_refinement_takes_the_place_of_the_worst() -> None:
    """The better of two tries, abd, 7/9; what equals the best does not count."""
    group, _, made, critic = refined("ac a d b", "ab abd", tries=2)
    assert words(group) == "ac a abd b" and made.metrics()["surgery/mended"] == 1
    assert group.before is not None and words(group.before) == "ac a d b"
    assert group.episodes[2].meta["refined"] == 0 and group.verdicts[2].passed is False
    assert len(critic.asked) == 6, "each response is marked once"
    assert words(refined("ac a", "ca")[0]) == "ac a" and words(refined("ac a", "abc1")[0]) == "ac abc1"


def test_solved_groups_stay() -> None:
    """One response meets all, or the bar of 8/9; below it there is a refinement."""
    group, engine, made, _ = refined("abcd a", "abcd")
    assert len(engine.asked) == 1 and made.metrics()["surgery/cases"] == 0 and made.idle() is None
    assert all(MARKS in e.meta for e in group.episodes) and group.episodes[0].origins is None
    assert len(refined("abc a", "abcd", bar=8 / 9)[1].asked) == 1
    assert len(refined("abc a", "abcd", bar=0.9)[1].asked) == 2
    plain = make_method("grpo", reward={"name": "rubric", "judge": RubricJudge(Critic(letters))})
    for method in (plain, rgr_grpo(Critic(letters))):
        batch = Batch.from_groups([group], torch.float64)
        method.value(batch)
        assert batch.advantages[:, 0].tolist() == pytest.approx([0.707104, -0.707104], abs=1e-5)


def test_what_has_no_marks_takes_no_part() -> None:
    """Neither what the judge fails on or says unreadably, nor what the verifier fails on, but where there is none."""
    group, engine, _, _ = refined("a! b% c", "abcd")
    assert words(group) == "a! b% abcd" and "\nc\n" in engine.prompts[1]
    group, engine, _, _ = refined("abc? b", "abcd?")
    assert words(group) == "abc? b" and "\nb\n" in engine.prompts[1], "a refinement that is not judged is dropped"
    assert len(refined("a! a!", "abcd")[1].asked) == 1

    def nobody(groups: Any) -> list[Group]:
        return [g if g.verdicts else g.judged([NoVerifier()(TASK, "")] * len(g.episodes)) for g in groups]

    group, _, _, _ = refined("c b", "abcd", who=nobody)
    assert words(group) == "abcd b"


def test_advantages_of_a_mixed_group() -> None:
    """Refined .9 takes the place of .2 among (.2, .4, .4, .6): advantages of (.9, .4, .4, .6)."""
    share = {"v": 0.2, "w": 0.4, "x": 0.4, "y": 0.6, "z": 0.9}
    rubric = Rubric.read([{"text": "t", "tiers": 10}])

    def tenths(prompt: str, k: int) -> str:
        text = prompt.partition("Response:\n")[2][0]
        return json.dumps([str(round(10 * share[text]))])

    method = rgr_grpo(Critic(tenths))
    engine = Told(lambda prompt, i: "z" if "misses" in prompt else "vwxy"[i])
    task = replace(TASK, meta={"rubric": rubric.rows()})
    group, _ = operated(dict(method.rollout), engine, task)  # type: ignore[call-overload]
    batch = Batch.from_groups([group], torch.float64)
    method.value(batch)
    assert batch.rewards.tolist() == pytest.approx([0.9, 0.4, 0.4, 0.6])
    expected = [1.375418, -0.740610, -0.740610, 0.105801]
    assert batch.advantages[:, 0].tolist() == pytest.approx(expected, abs=1e-5)


def test_a_refinement_is_learned_off_policy() -> None:
    """Its prompt is the plain one, its author another, whose probabilities are not known."""
    group, engine, _, _ = refined("a b", "abcd")
    episode = group.episodes[0]
    assert engine.decode(episode.prompt) == "Q" and "misses" in engine.decode(episode.sampled_prompt)  # type: ignore[arg-type]
    assert episode.logprobs is None and episode.entropies is None
    assert episode.origins is not None and episode.origins.tolist() == [Origin.TEACHER] * 4
    p = torch.tensor([[0.01, 0.1, 0.5, 0.9]], dtype=torch.float64, requires_grad=True)
    values = shaped(p, 0.1)
    values.sum().backward()  # type: ignore[no-untyped-call]
    assert values[0].tolist() == pytest.approx([0.090909, 0.5, 0.833333, 0.9], abs=1e-6)
    assert p.grad is not None
    assert p.grad[0].tolist() == pytest.approx([8.264463, 2.5, 0.277778, 0.1], abs=1e-6)


def test_marks_by_kind() -> None:
    """Of responses as they were sampled: a, b met by 1 and 1 of two, c by one; d is of no kind."""
    _, _, made, _ = refined("ac bd a%", "abcd")
    found = made.metrics()
    assert found["rubric/factual"] == 0.5 and found["rubric/process"] == 0.5 and "rubric/" not in found
    _, _, made, _ = refined("a ab", "abcd")
    assert made.metrics()["rubric/factual"] == 0.75 and made.metrics()["rubric/process"] == 0


def test_rubrics_are_written_for_tasks() -> None:
    """From question and right answer, the worked solution if there is one; of two kinds, with weights above 0."""
    replies = {
        "fine": [{"text": "says 4", "kind": "factual", "weight": 5}, {"text": "adds", "kind": "process", "weight": 1}],
        "style": [{"text": "adds", "kind": "process"}, {"text": "is kind", "kind": "style"}],
        "weightless": [{"text": "adds", "kind": "process", "weight": 0}],
    }

    def write(prompt: str, k: int) -> str:
        return next((json.dumps(rows) for name, rows in replies.items() if f"\n{name}\n" in prompt), "no list")

    writer = Says(write)
    tasks = [Task(name, name, "4", solution="2 + 2 = 4" * (name == "fine")) for name in (*replies, "other")]
    found = Maker(read_pipeline("S101", {}), {"writer": Model("w", writer)}).make(tasks)
    [made] = found.tasks
    rubric = Rubric.of(made)
    assert [(c.text, c.kind, c.weight) for c in rubric.criteria] == [("says 4", "factual", 5), ("adds", "process", 1)]
    assert Rubric.read(rubric.rows()) == rubric
    assert found.counts["rubric"].dropped == {
        "no rubric is written": 1,
        "a criterion of another kind, or without weight": 2,
    }
    assert "A right answer:\n2 + 2 = 4\n" in str(writer.asked[0].prompt)
    assert "A right answer:\n4\n" in str(writer.asked[1].prompt)
    with pytest.raises(UsageError, match="criterion 1 has the kind 3, which is no word"):
        Rubric.read([{"text": "x", "kind": 3}])


def test_the_lab_mends_attempts() -> None:
    """What is missing takes the place of an idle word or of a repetition, if it is told in a prompt with an attempt."""
    setting = Setting(facts=2, length=3, idle=1, mends=1.0)
    engine = setting.engine(TabularPolicy(Tree.uniform(3, 3, [0.0] * 27)), 0)
    sampling = Sampling(3)
    asked = {
        "x\n0/2/2\nstates fact 1": "0/1/2",
        "x\n0/0/2\nstates fact 1": "0/1/2",
        "x\n2/2/1\nstates fact 0": "0/2/1",
        "x\n0/1/2\n": "0/1/2",
    }
    found = engine.generate([*(Request(text, 1, sampling, 0) for text in asked), Request("plain", 2, sampling, 0)])
    assert [row[0].text for row in found[:-1]] == list(asked.values()) and engine.sampled == 6
    few = {"steps": 1, "facts": 3, "length": 3, "idle": 2}
    guided, alone = (learned("S101", arm, **few) for arm in ("guided", "marks alone"))
    assert guided["rollouts"] > alone["rollouts"] == 16 and guided["start"] == alone["start"]


def test_a_run_refines(tmp_path: Path) -> None:
    """An odd digit is one of two things that an answer has to have; what a refinement misses is told in its prompt."""
    path = tmp_path / "sums.jsonl"
    rubric = [{"text": "1+3", "kind": "process"}, {"text": "=", "weight": 9, "kind": "factual"}]
    rows = [{"question": f"{a}+{b}\n=", "answer": str(a + b), "rubric": rubric} for a in range(6) for b in range(5)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    odd = [r"Response:\n[^\n]*[13579]", '["yes", "no"]']
    critic = {"name": "keywords", "replies": [odd], "otherwise": '["no", "no"]'}
    options = {"judge": critic, "template": "{attempt}={criteria}="}
    made = recipe(
        tmp_path / "run",
        tasks={
            "source": {"name": "file", "path": str(path), "prompt": "question", "kind": "none", "meta": ["rubric"]},
            "eval_size": 2,
        },
        method={"name": "S101", "reward": None, "options": options},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
        rollout={"group": 6, "max_rows": 24},
    )
    assay.train(made, quiet=True)
    found = [row for row in metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert len(found) == 2 and all(row["surgery/cases"] > 0 and row["grad_norm"] > 0 for row in found)
    assert all(0 < row["rubric/process"] < 1 and row["rubric/factual"] == 0 for row in found)


def test_what_it_cannot_do() -> None:
    critic = Critic(letters)
    marker = RubricJudge(critic)
    with pytest.raises(UsageError, match="task x has no rubric"):
        RubricRefined(Sampling(4), judge, marker=marker).check_tasks([TASK, Task("x", "q")])
    with pytest.raises(UsageError, match="needs a marker"):
        RubricRefined(Sampling(4), judge)
    for bad in ({"bar": 0.0}, {"bar": 1.1}, {"tries": 0}, {"template": "{attempt}"}, {"template": "{criteria}"}):
        with pytest.raises(UsageError, match="rubric_refined"):
            RubricRefined(Sampling(4), judge, marker=marker, **bad)
    for bad in ({"when": "always"}, {"share": 0.4}):
        with pytest.raises(UsageError, match="goes by marks"):
            RubricRefined(Sampling(4), judge, marker=marker, **bad)
