"""Cog-DRIFT: variants that are sound, a ladder for each question, and what it solves that is never solved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claimed import learned
from running import run, tables
from tasks.making.told import Told

from assay.catalogue import make
from assay.curriculum.variants import Variants
from assay.errors import UsageError
from assay.papers.data.s042_cog_drift import MakeVariants, choice, masked, variants_of_hard
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Here
from assay.types import Ask, Episode, Group, Task, Verdict
from assay.verify.kind import KindVerifier

pytestmark = pytest.mark.usefixtures("one_thread")

TASK = Task("q", "What is 6 times 7?", "42", "math")
HERE = Here(np.random.default_rng(0), KindVerifier())


def test_choices_with_sound_distractors() -> None:
    """Neither the answer in another form nor a wrong answer twice is a distractor; the right place is random."""
    made = choice(TASK, ["84/2", "41", "41", "42", "43", "44"], 4, HERE)
    assert made is not None and made["variant"] == "four_choice" and made["kind"] == "choice"
    assert sorted(made["options"].values()) == ["41", "42", "43", "44"] and list(made["options"]) == [
        "A",
        "B",
        "C",
        "D",
    ]
    assert all(f"{letter}) {text}" in made["prompt"] for letter, text in made["options"].items())
    assert made["prompt"].startswith(TASK.question) and made["reference"] == "42"
    assert made["prompt"].endswith("Put the right answer itself, not its letter, within \\boxed{}.")
    assert choice(TASK, ["84/2", "41", "41", "42", "43"], 4, HERE) is None
    ten = choice(TASK, [str(n) for n in range(9)], 10, HERE)
    assert ten is not None and ten["variant"] == "ten_choice" and len(ten["options"]) == 10
    places = [choice(TASK, ["1", "2", "3"], 4, HERE) for _ in range(200)]
    at = [[*p["options"].values()].index("42") for p in places if p is not None]
    assert all(30 <= at.count(k) <= 72 for k in range(4)), "50 of 200 at each place, within 3.6 standard deviations"


def test_masks_that_hide_something_of_the_answer() -> None:
    made = masked(TASK, " 4_ ")
    told = "The answer should look like: 4_. Fill the blank by giving the full answer."
    assert made == {"variant": "fill_in", "prompt": f"What is 6 times 7?\n\n{told}"}
    assert masked(TASK, "__") is not None
    of = Task("q", "?", "x_1 = 25", "math")
    assert masked(of, "x_1 = 2_") is not None and masked(of, "x__ = 25") is not None
    for mask in ("x_1 = 25", "__1 = 25", "x_1 _ 2_"):
        assert masked(of, mask) is None, "only digits are hidden"
    for mask in ("42", "4", "4__", "_3", ""):
        assert masked(TASK, mask) is None, mask


def test_the_letter_and_the_text_are_graded_alike() -> None:
    made = choice(TASK, ["41", "43", "44"], 4, HERE)
    assert made is not None
    task = Variants(None, 1, 1).now(Task("q", "?", "42", "math", meta={"variants": [made]}))  # type: ignore[arg-type]
    judge = KindVerifier()
    for letter, text in made["options"].items():
        right = text == "42"
        assert judge(task, f"The answer is {letter}.").passed is right
        assert judge(task, f"\\boxed{{{text}}}").passed is right


class Tasks:
    """A stream of the same tasks."""

    def __init__(self, *tasks: Task):
        self.tasks = tasks

    def next(self, n: int) -> list[Task]:
        return list(self.tasks[:n])


def laddered(id: str, *names: str) -> Task:
    return Task(
        id, f"open {id}", "42", "math", meta={"variants": [{"variant": n, "prompt": f"{n} {id}"} for n in names]}
    )


def judged(ask: Ask, *scores: float | None) -> Group:
    empty = np.zeros(0, dtype=np.int64)
    episodes = tuple(Episode(empty, empty, empty > 0, None, "", "eos") for _ in scores)
    verdicts = [Verdict.abstain("away") if s is None else Verdict(s, s == 1) for s in scores]
    return Group(ask, episodes).judged(verdicts)


def climbed(window: int, *scores: Any) -> list[str]:
    made = Variants(Tasks(laddered("a", "four_choice", "fill_in")), 1, 8, window=window)
    out = []
    for step, score in enumerate(scores):
        [ask] = made.next(step)
        made.observe([judged(ask, *(score if isinstance(score, tuple) else (score,)))])
        out.append(made.now(ask.task).meta["variant"])
    return out


def test_each_question_climbs_its_own_ladder() -> None:
    """Batch means .5, .625, .4, .75, .9 at a threshold of .5; with a window of 2, .4 and .7 make .55."""
    four, fill, itself = "four_choice", "fill_in", "open_ended"
    assert climbed(1, 0.5, 0.625, 0.4, 0.75, 0.9) == [four, fill, fill, itself, itself]
    assert climbed(2, 0.4, 0.7, 0.4, 0.7, 0.3) == [four, fill, fill, itself, itself]
    assert climbed(2, 0.4, 0.5, 0.9, 0.1, 0.8) == [four, four, fill, fill, fill], "0.45, 0.7, and then 0.1 and 0.45"
    assert climbed(2, 0.4, 0.7, 0.9) == climbed(9, 0.4, 0.7, 0.9) == [four, fill, itself], "not the whole window"
    assert climbed(1, (1.0, None, None), (None, None), (0.5, 0.25)) == [fill, fill, fill], "abstentions are left out"
    two = Tasks(laddered("a", "four_choice"), laddered("b", "fill_in"), laddered("c"))
    made = Variants(two, 3, 8)
    first = made.next(0)
    assert [a.task.prompt for a in first] == ["four_choice a", "fill_in b", "open c"] and first[0].n == 8
    made.observe([judged(first[0], 1.0), judged(first[1], 0.0), judged(first[2], 1.0)])
    second = made.next(1)
    assert [a.task.prompt for a in second] == ["open a", "fill_in b", "open c"]
    made.observe([judged(first[1], 1.0), judged(first[0], 0.0), judged(first[1], 1.0)])
    assert made.now(two.tasks[1]).meta["variant"] == "open_ended", "of a rung that was left nothing counts any more"
    bare, later = Tasks(TASK), Variants(two, 3, 8)
    later.load_state_dict(made.state_dict())
    later.stream = bare
    later.next(9)  # a run that goes on has had tasks with variants
    with pytest.raises(UsageError, match="none of the first tasks has variants"):
        Variants(bare, 1, 8).next(40)  # a stage of a run begins after its first step
    again = Variants(two, 3, 8)
    again.load_state_dict(made.state_dict())
    assert again.next(2) == made.next(2) and again.next(2)[0].task.prompt == "open a"


def test_what_the_ladder_cannot_do_is_said() -> None:
    with pytest.raises(UsageError, match="none of the first tasks has variants"):
        Variants(Tasks(TASK), 1, 8).next(0)
    for options in ({"threshold": 1.0}, {"threshold": -0.1}, {"window": 0}):
        with pytest.raises(UsageError, match="must be in"):
            Variants(Tasks(TASK), 1, 8, **options)
    assert Variants(Tasks(TASK), 1, 8, threshold=0.0, window=1)
    for sizes in ((10, 4), (4, 4), (1, 4), (4, 27)):
        with pytest.raises(UsageError, match="ascending"):
            MakeVariants(sizes)
    assert MakeVariants((2, 26)).sizes == (2, 26)
    MakeVariants().check([Task("a", "?", None), TASK])
    with pytest.raises(UsageError, match="no task has a reference"):
        read_pipeline("S042", {"tries": 0, "sound": 0}).check([Task("a", "?", None)])


def replies(solver: str) -> Callable[[str, int], str]:
    def answer(prompt: str, j: int) -> str:
        if "<wrong>" in prompt:
            return "<wrong>\n- 41\n2. 43\n-42\n</wrong>"
        return "<mask>4_</mask>" if "<mask>" in prompt else f"\\boxed{{{solver}}}"

    return answer


def test_only_what_is_never_solved_and_sound_is_rewritten() -> None:
    weak, strong = Told(replies("7")), Told(replies("42"))
    models = {"writer": Model("strong", strong), "judge": Model("strong", strong), "solver": Model("weak", weak)}
    tasks = [TASK, Task("easy", "What is 7 times 1?", "7", "math"), Task("wrong", "What is 1 + 1?", "3", "math")]
    made = Maker(read_pipeline("S042", {}), models).make(tasks)
    assert [t.id for t in made.tasks] == ["q"] and {r.n for r in weak.asked} == {64}
    assert made.counts["never solved"].dropped == {"solved too often": 1}
    assert made.counts["sound"].dropped == {"solved too seldom": 1} and made.counts["sound"].asked == 2
    assert [v["variant"] for v in made.tasks[0].meta["variants"]] == ["four_choice", "fill_in"]
    found = Maker(variants_of_hard(0, 0, (10,), False), models).make([TASK])
    assert found.counts["variants"].dropped == {"no variant of it is sound": 1}


def test_two_right_replies_of_three_make_a_task_sound() -> None:
    def made(*right: int) -> tuple[list[float], Told]:
        strong = Told(lambda prompt, j: replies("42" if j in right else "7")(prompt, j))
        models = {"writer": Model("s", strong), "judge": Model("s", strong), "solver": Model("w", Told(replies("7")))}
        return [t.meta["judge_pass_rate"] for t in Maker(variants_of_hard(), models).make([TASK]).tasks], strong

    assert made(1)[0] == []
    rates, strong = made(0, 2)
    assert rates == [2 / 3]
    assert [r.n for r in strong.asked] == [3, 1, 1], "replies of the judge, distractors, and a mask"
    assert "Write 9 wrong answers" in strong.asked[1].prompt, "for ten options"
    assert [(r.sampling.max_tokens, r.sampling.temperature) for r in strong.asked] == [
        (1024, 0.7),
        (512, 0.7),
        (512, 0.7),
    ]


def test_what_is_asked_for_and_of_which_tasks() -> None:
    """As many wrong answers as the most options need; nothing is asked of answers that are no text."""
    assert (MakeVariants().sizes, MakeVariants().mask) == (MakeVariants((4, 10), True).sizes, True)
    [named, _] = next(MakeVariants((2, 5))(TASK, HERE))  # type: ignore[arg-type]
    assert "Write 4 wrong answers" in named.prompt
    by = Told(replies("42"))
    tasks = [Task("yes", "Is it?", True, "math"), Task("all", "Which?", ["a"], "math")]
    made = Maker(variants_of_hard(0, 0), {"writer": Model("s", by)}).make([*tasks, TASK])
    assert made.counts["variants"].dropped == {"its reference is no text": 2} and len(by.asked) == 2
    assert [v["variant"] for v in made.tasks[0].meta["variants"]] == ["four_choice", "fill_in"]
    of = choice(TASK, ["1", "2", "3", "4", "5"], 3, HERE)
    assert of is not None and of["variant"] == "3_choice" and {*of["options"].values()} == {"1", "2", "42"}


def test_a_run_asks_variants(tmp_path: Path) -> None:
    """Every response of the untrained model scores above 0.5 on this reward's verdict: all climb after a step."""
    variants = [{"variant": "four_choice", "prompt": "1+1=", "kind": "none"}, {"variant": "fill_in", "prompt": "2+2="}]
    tasks = [Task(f"t{i}", f"{i}+3=", str(i + 3), "exact", f"{i + 3}", meta={"variants": variants}) for i in range(8)]
    write_tasks(tmp_path / "made.jsonl", tasks)
    folder = run(
        tmp_path / "run",
        tasks={"source": {"name": "made", "path": str(tmp_path / "made.jsonl")}, "eval_size": 2, "eval_share": 0.3},
        method={"name": "S042", "options": {"kl_weight": 0.0}},
        warmup={"steps": 0},
        train={"steps": 2, "mini_batches": 1, "epochs": 1},
        evaluate={"every": 0},
        rollout={"prompts": 2, "group": 2},
    )
    asked = [row["prompt"] for rows in tables(folder, "rollouts").values() for row in rows]
    assert set(asked) == {"1+1="} and len(asked) == 8
    from assay.records.checkpoints import last_checkpoint

    assert last_checkpoint(folder)[1] == 2


@pytest.mark.slow
def test_the_ladder_solves_what_is_never_solved() -> None:
    """400 answers, one of them right: without the ladder no reward is ever seen, with it, it is soon learned."""
    made = make("S042")
    assert made.curriculum == {"name": "variants", "threshold": 0.5, "window": 1}
    assert (made.objective.clip_high, made.objective.kl_weight) == (0.28, 0.01)  # type: ignore[attr-defined]
    ladder, direct = learned("S042", "ladder", steps=50), learned("S042", "direct", steps=50)
    assert ladder["start"] == direct["start"] < 0.006
    assert ladder["solved"] > 0.9 and direct["solved"] < 0.02 and ladder["rollouts"] == direct["rollouts"] == 400
