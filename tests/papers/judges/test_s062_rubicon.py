"""Rubicon: what marks come to, which tasks are kept, how hacks are found out, and a run of two stages."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from claimed import learned
from hypothesis import given
from hypothesis import strategies as st
from marked import Critic, stepped
from running import metrics, recipe
from tasks.making.told import Told

import assay
from assay.errors import UsageError
from assay.method import make_method
from assay.papers.judges.s062_rubicon import DEFENCE, defence_of, rubicon
from assay.tasks.making.maker import Maker, Model
from assay.tasks.making.marked import Band, Marking, Scored
from assay.tasks.making.recipe import read_pipeline
from assay.types import Task
from assay.verify.rubric.aggregate import Rubicon, mean
from assay.verify.rubric.criteria import Rubric

pytestmark = pytest.mark.usefixtures("one_thread")

PAIR, PLAIN = Rubric.read(["a", "b"]), Rubicon(0.0, b=1.0)


def test_saturation_prefers_balance() -> None:
    curve = Rubicon()
    assert [curve.saturated(s) for s in (0, 0.5, 1)] == [0, pytest.approx(0.817574, abs=1e-6), 1]
    flat = Rubicon(b=1.0)
    assert flat(PAIR, (1, 0)) == pytest.approx(0.5) and flat(PAIR, (0.5, 0.5)) == pytest.approx(0.817574, abs=1e-6)
    assert Rubicon(1e-9).saturated(0.3) == pytest.approx(0.3)


def test_the_high_end_is_stretched() -> None:
    shaped = [Rubicon().shaped(x) for x in (0, 0.5, 0.7, 0.9, 1)]
    assert shaped == pytest.approx([0, 0.384615, 0.538462, 0.846154, 1], abs=1e-6)
    assert Rubicon(0.0)(PAIR, (1, 0.8)) == pytest.approx(0.846154, abs=1e-6), "of a mean of 0.9"


def test_interactions_of_pairs() -> None:
    """0.2 for both at once, on top of a mean of 0.4; below 0 and above 1 it is cut; other rubrics have no such pair."""
    both = Rubicon(0.0, [["1", "2", 0.2]], b=1.0)
    assert both(PAIR, (0.5, 0.3)) == pytest.approx(0.43) and both(PAIR, (1, 1)) == 1
    assert Rubicon(0.0, [["1", "2", -3.0]], b=1.0)(PAIR, (1, 0.5)) == 0
    assert both(Rubric.read(["a"]), (0.5,)) == 0.5


def test_the_veto_comes_first() -> None:
    rubric = Rubric.read([{"text": "a", "weight": 2}, "b", {"text": "c", "veto": True}])
    assert PLAIN(rubric, (0.9, 0.5, 1)) == pytest.approx(0.825) and Rubicon()(rubric, (1, 1, 0)) == 0
    assert Rubicon()(rubric, (0, 0, 0.01)) == pytest.approx(Rubicon().shaped(Rubicon().saturated(0.01) / 4))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 9)), min_size=1, max_size=6))
def test_without_its_forms_it_is_the_weighted_mean(rows: list[tuple[float, float]]) -> None:
    rubric = Rubric.read([{"text": "x", "weight": w} for _, w in rows])
    marks = [s for s, _ in rows]
    found, plain = PLAIN(rubric, marks), mean(rubric, marks)
    assert found is not None and plain is not None and math.isclose(found, plain, abs_tol=1e-9)


def test_the_reward() -> None:
    """The defence weighs nothing and vetoes; a judge that failed leaves no reward."""
    said = {"fine": ["yes", "no", "yes", "yes"], "flatters": ["yes", "yes", "no", "yes"]}
    critic = Critic(lambda p, k: next((json.dumps(v) for n, v in said.items() if f"\n{n}\n" in p), None))
    batch = stepped([[1]] * 3, [True] * 3, texts=["fine", "flatters", "down"])
    batch.tasks = [Task("t", "q", meta={"rubric": ["a", "b"]})] * 3
    rubicon(critic).value(batch)
    assert batch.rewards.tolist() == pytest.approx([Rubicon().shaped(0.5), 0, 0], abs=1e-9)
    assert batch.valid.tolist() == [True, True, False] and all(text in str(critic.asked[0].prompt) for text in DEFENCE)
    plain = make_method("S062", options={"judge": critic, "kappa": 0.0, "b": 1.0, "defence": [], "form": "comma"})
    judge: Any = getattr(plain.reward, "judge")  # noqa: B009
    whole: Any = getattr(rubicon(critic, rubric=["c"], defence=["d"]).reward, "judge")  # noqa: B009
    assert [(c.text, c.weight, c.veto) for c in whole.also] == [("c", 1, False), ("d", 0, True)]
    assert [c.id for c in whole.also][1:] == ["defence 1"]
    assert judge.also == () and judge.aggregate == PLAIN and judge.question.form == "comma"
    usual: Any = getattr(rubicon(critic).reward, "judge")  # noqa: B009
    assert usual.aggregate == Rubicon(3.0, (), 0.7, 2.0)
    assert (usual.sampling.max_tokens, usual.question.block, usual.question.form) == (4096, 0, "json")


def test_tasks_of_the_middle() -> None:
    """Scores 0, .25, .5, .75, 1 of five tasks: the middle half is the three between the quartiles."""
    tasks = [Task(str(k), f"q{k}", meta={"rubric": ["a", "b", "c", "d"]}) for k in range(6)]

    def marked(prompt: str, j: int) -> str:
        k = int(prompt.partition("Question:\nq")[2][0])
        return json.dumps(["yes"] * k + ["no"] * (4 - k)) if k < 5 else "?"

    models = {"solver": Model("s", Told(lambda p, j: f"answer {j}")), "critic": Model("c", Told(marked))}
    found = Maker(read_pipeline("S062", {"n": 2}), models).make(tasks)
    assert [(t.id, t.meta["score"]) for t in found.tasks] == [("1", 0.25), ("2", 0.5), ("3", 0.75)]
    assert found.counts["scored"].dropped == {"no marks can be read": 1}
    assert found.counts["band"].dropped == {"too hard": 1, "too easy": 1}
    usual = dict(read_pipeline("S062", {}).steps)
    assert usual == {"scored": Scored(4), "band": Band(0.25, 0.75)} and Marking().n == 4
    with pytest.raises(UsageError, match="task x has no rubric"):
        read_pipeline("S062", {}).check([Task("x", "q")])
    for bad in (lambda: Band(0.5, 0.5), lambda: Band(-0.1), lambda: Scored(0), lambda: Scored(aggregate="x")):
        with pytest.raises(UsageError):
            bad()
    with pytest.raises(UsageError, match="put step 'scored' before"):
        Band().whole([Task("x", "q")], None)  # type: ignore[arg-type]
    assert Band().whole([], None) == ([], {})  # type: ignore[arg-type]


def test_a_defence_is_found_in_what_was_rewarded_most(tmp_path: Path) -> None:
    (tmp_path / "rollouts").mkdir()
    rows = {"response": ["Great question!", "plain", "Great question!", "odd"], "reward": [0.9, 0.2, 0.1, None]}
    pq.write_table(pa.table(rows), tmp_path / "rollouts" / "step-000001.parquet")
    analyst = Critic(lambda p, k: "<item>It does not\npraise the question.</item> <item> </item><item>More.</item>")
    out = tmp_path / "defence.json"
    assert defence_of(tmp_path, analyst, shown=1, most=1, out=out) == ["It does not praise the question."]
    asked = str(analyst.asked[0].prompt)
    assert "Response 1:\nGreat question!" in asked and "plain" not in asked and "odd" not in asked
    judge: Any = getattr(rubicon(analyst, defence=str(out)).reward, "judge")  # noqa: B009
    assert [(c.text, c.weight, c.veto) for c in judge.also] == [("It does not praise the question.", 0, True)]
    with pytest.raises(UsageError, match="has no stored rollouts"):
        defence_of(tmp_path / "none", analyst)
    with pytest.raises(UsageError, match="analyst failed"):
        defence_of(tmp_path, Critic(lambda p, k: None))
    for bad in (str(tmp_path / "none.json"), [" "]):
        with pytest.raises(UsageError, match="S062's defence"):
            rubicon(analyst, defence=bad)


def test_an_analyst_sees_the_best_sixteen_and_names_five(tmp_path: Path) -> None:
    """Of twenty responses those with the highest rewards, in this order; criteria can be read in the file."""
    (tmp_path / "rollouts").mkdir()
    rows = {"response": [f"told {k}." for k in range(20)], "reward": [k / 20 for k in range(20)]}
    pq.write_table(pa.table(rows), tmp_path / "rollouts" / "step-000001.parquet")
    analyst = Critic(lambda p, k: "".join(f"<item>Kein Lob für {k}</item>" for k in range(7)))
    out = tmp_path / "defence.json"
    found = defence_of(tmp_path, analyst, out=out)
    assert found == [f"Kein Lob für {k}" for k in range(5)] and "Lob für 4" in out.read_text(encoding="utf-8")
    [asked] = analyst.asked
    assert "Response 1:\ntold 19." in str(asked.prompt) and "Response 16:\ntold 4." in str(asked.prompt)
    assert "told 3." not in str(asked.prompt)
    assert (asked.sampling.max_tokens, asked.sampling.temperature) == (4096, 0)


def test_a_run_of_two_stages(tmp_path: Path) -> None:
    """Each has its tasks with their rubrics; an odd digit meets the first stage's, an even one the second's."""
    sources = []
    for name, text in (("first", "has an odd digit"), ("second", "has an even digit")):
        path = tmp_path / f"{name}.jsonl"
        lines = [
            json.dumps({"question": f"{a}+{b}=", "answer": str(a + b), "rubric": [text]})
            for a in range(6)
            for b in range(5)
        ]
        path.write_text("\n".join(lines) + "\n")
        sources.append({"name": "file", "path": str(path), "prompt": "question", "kind": "none", "meta": ["rubric"]})
    judge = {
        "name": "keywords",
        "replies": [
            [r"(?s)Response:\n[^\n]*[13579].*an odd", '["yes"]'],
            [r"(?s)Response:\n[^\n]*[02468].*an even", '["yes"]'],
        ],
        "otherwise": '["no"]',
    }
    made = recipe(
        tmp_path / "run",
        tasks={"source": sources[0], "eval_size": 2},
        method={"name": "S062", "reward": None, "options": {"judge": judge, "defence": []}},
        train={"mini_batches": 1, "epochs": 1},
        warmup={"steps": 0},
        evaluate={"every": 0},
        rollout={"group": 6, "max_rows": 24},
    )
    del made["train"]["steps"]
    made["stages"] = [
        {"name": name, "steps": 1, "tasks": source}
        for name, source in zip(("constrained", "open-ended"), sources, strict=True)
    ]
    assay.train(made, quiet=True)
    folder = tmp_path / "run"
    rows = [row for row in metrics(folder) if row["stage"] == "rl"]
    assert len(rows) == 2 and all(row["reward/unread"] == 0 for row in rows)
    assert all(0 < row["reward/mean"] < 1 and row["grad_norm"] > 0 for row in rows)


def test_no_flattery() -> None:
    vetoed, summed = (learned("S062", arm, steps=10, lr=30.0) for arm in ("veto", "weighted sum"))
    assert vetoed["worth"] > summed["worth"] + 0.3 and vetoed["flatters"] < 0.1 < 0.5 < summed["flatters"]


def test_tasks_without_a_rubric_are_refused_before_the_run(tmp_path: Path) -> None:
    options = {"judge": {"name": "keywords", "replies": []}}
    with pytest.raises(UsageError, match=r"has no rubric; give it meta\['rubric'\]"):
        assay.train(recipe(tmp_path, method={"name": "S062", "reward": None, "options": options}), quiet=True)
