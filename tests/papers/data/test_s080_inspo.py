"""INSPO: who is drawn, what instructions earn, who stays, what the author is shown, and a run with all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
import torch
from running import assert_same, tables
from scripted import Talking

import assay
from assay.curriculum.instructions import Instructions, chances
from assay.engines.base import Request, Sampling
from assay.engines.keywords import Keywords
from assay.errors import UsageError
from assay.inference.instructed import Instructed, best_instruction
from assay.method import make_method
from assay.records.checkpoints import checkpoint
from assay.records.files import write_folder
from assay.registry import build
from assay.rollout.turns.multi_turn import MultiTurn
from assay.tasks.listed import Listed
from assay.tasks.split import TrainStream
from assay.types import Ask, Episode, Group, Task, Verdict


def made(first: Sequence[str] = ("a", "b", "c", "d"), **options: Any) -> Instructions:
    stream = TrainStream(Listed([Task(f"t{i}", f"q{i}") for i in range(50)]))
    return Instructions(stream, options.pop("prompts", 1), options.pop("group", 4), tuple(first), **options)


def test_what_it_has_seen_is_no_option() -> None:
    with pytest.raises(TypeError):
        made(members=[])
    for name in ("_engine", "_rng", "_steps", "_made", "_low", "_seen", "_candidates"):
        with pytest.raises(TypeError):
            made(**{name: 0})
    assert "_engine" not in repr(made()) and "Generator" not in repr(made())


def judged(ask: Ask, scores: Sequence[float | None], text: str = "y") -> Group:
    tokens, mask = np.arange(1), np.ones(1, bool)
    episodes = tuple(Episode(tokens, tokens, mask, None, f"{text}{i}", "eos") for i in range(len(scores)))
    verdicts = tuple(Verdict.abstain("?") if s is None else Verdict(s, s == 1, {}, f"scored {s}") for s in scores)
    return Group(ask, episodes, verdicts)


def test_the_worked_example() -> None:
    assert chances([0.6, 0.4, 0.5], 0.1) == pytest.approx([0.665241, 0.090031, 0.244728], abs=5e-7)
    assert chances([0.0, 50.0], 0.05).tolist() == [0, 1], "whatever the worths are"
    curriculum = made(worth=0.6, rate=0.1)
    [ask] = curriculum.next(0)
    curriculum.observe([judged(ask, [1.0, 1.0, 1.0, 0.2])])
    number = ask.task.meta["instruction"]
    assert curriculum.members[number].worth == pytest.approx(0.62)
    assert [m.worth for m in curriculum.members if m.number != number] == [0.6] * 3
    curriculum.observe([judged(ask, [None, None])])
    assert curriculum.members[number].worth == pytest.approx(0.62) and curriculum.members[number].asked == 1
    curriculum.observe([judged(ask, [None, None]), judged(ask, [1.0])])
    assert curriculum.members[number].worth == pytest.approx(0.658), "one that is not judged holds no other up"


def test_a_group_never_mixes() -> None:
    curriculum = made(prompts=60)
    asks = curriculum.next(0)
    assert [a.instruction for a in asks] == ["abcd"[a.task.meta["instruction"]] for a in asks]
    assert {a.instruction for a in asks} == set("abcd") and {a.n for a in asks} == {4}
    curriculum.members[2].worth = 2.5
    assert {a.instruction for a in curriculum.next(1)} == {"c"}


def test_the_lower_half_goes() -> None:
    curriculum = made()
    for member, worth in zip(curriculum.members, (0.6, 0.1, 0.5, 0.3), strict=True):
        member.worth = worth
    curriculum._prune()
    assert [m.number for m in curriculum.members] == [0, 2] and curriculum.best.text == "a"
    three = made(first="abc")
    three._prune()
    assert len(three.members) == 2


class Noting(Keywords):
    """An author that notes what it was shown."""

    def __init__(self, *replies: str) -> None:
        super().__init__([])
        self.said, self.prompts, self.how = list(replies), [], list[Sampling]()  # type: ignore[var-annotated]

    def generate(self, requests: Sequence[Request]) -> list[list[Episode]]:
        self.prompts += [r.prompt for r in requests]
        self.how += [r.sampling for r in requests]
        out: list[list[Episode]] = []
        for request in requests:
            self.otherwise = self.said[len(out) % len(self.said)]
            out += super().generate([request])
        return out


def test_the_author_sees_low_attempts() -> None:
    author = Noting("I see. <instruction> be careful </instruction>")
    curriculum = made(first="ab", author=author, period=2, failures=2, buffer=3, proposals=3, seed=1)
    low: list[list[float | None]] = [[0.0, 1.0, 0.5, 0.25], [0.75, 1.0, None, 1.0]]
    for step, scores in enumerate(low):
        [ask] = curriculum.next(step)
        curriculum.observe([judged(ask, scores, f"{ask.instruction}-{step}-")])
    assert len(author.prompts) >= 1
    shown = author.prompts[0]
    kept = curriculum.members[0].text
    assert (f"The instruction:\n{kept}\n" in shown and "scored 0.0" in shown) or "scored 0.25" in shown
    assert "scored 1.0" not in shown and "scored 0.75" not in shown, "the buffer keeps the three lowest"
    assert shown.count("Attempt:") == 2 and curriculum._candidates == ["be careful"]


def under(curriculum: Instructions, number: int, ask: Ask) -> Ask:
    """What is asked, under an instruction of one's choice."""
    text = curriculum.members[number].text
    meta = {**ask.task.meta, "instruction": number, "instruction_text": text}
    return replace(ask, instruction=text, task=replace(ask.task, meta=meta))


def test_the_author_sees_the_lowest_of_its_own_instruction() -> None:
    """Of five attempts under each of two instructions it is shown one, of the two lowest, whichever comes first."""
    author = Noting("<instruction>no</instruction><instruction>a</instruction>")
    curriculum = made(first="ab", author=author, period=2, proposals=40, failures=1, keep=0.9)
    [ask] = curriculum.next(0)
    scores = [0.5, 0.1, 0.9, 0.0, 0.7]
    for number, name in enumerate("ab"):
        curriculum.observe([judged(under(curriculum, number, ask), scores, f"{name}-")])
    assert len(author.prompts) == 4 and not curriculum._candidates, "the last that is marked is there already"
    seen = {(p.split("instruction:\n")[1][0], p.split("Attempt: ")[1][:3]) for p in author.prompts}
    assert seen == {("a", "a-1"), ("a", "a-3"), ("b", "b-1"), ("b", "b-3")}


def test_of_equal_attempts_the_latest_is_kept() -> None:
    author = Noting("<instruction>new</instruction>")
    curriculum = made(first="ab", author=author, period=1, proposals=1, failures=3, buffer=1)
    [ask] = curriculum.next(0)
    curriculum.observe([judged(ask, [0.0, 0.0, 0.5])])
    assert author.prompts[0].count("Attempt: ") == 1 and "Attempt: y1\n" in author.prompts[0]


def test_nobody_joins_a_population_that_is_whole() -> None:
    """Two of two stay: a candidate that does well is let go, and the next one has a number of its own."""
    author = Noting("<instruction>new</instruction>")
    curriculum = made(first="ab", author=author, period=1, proposals=1, questions=1, keep=0.9)
    for step in range(2):
        [ask] = curriculum.next(2 * step)
        curriculum.observe([judged(ask, [0.0, 0.25])])
        [trial] = curriculum.next(2 * step + 1)
        assert (trial.instruction, trial.task.meta["instruction"]) == ("new", 2 + step)
        curriculum.observe([judged(trial, [1.0])])
        assert [m.text for m in curriculum.members] == ["a", "b"]
    again = made(first="ab", author=author, period=1, proposals=1, questions=1, keep=0.9)
    again.load_state_dict(curriculum.state_dict())
    assert again.state_dict() == curriculum.state_dict() and len(again.state_dict()["low"]) == 4


def test_the_best_candidates_join() -> None:
    replies = [f"<instruction>{name}</instruction>" for name in ("good", "poor", "a", "better")]
    curriculum = made(first="abcd", author=Noting(*replies), period=1, proposals=24, questions=3)
    curriculum.members[0].worth = 0.9
    [ask] = curriculum.next(0)
    curriculum.observe([judged(ask, [0.0] * 4)])
    left = [m.text for m in curriculum.members]
    assert len(left) == 2 and "a" in left
    asks = curriculum.next(1)
    assert len(asks) % 3 == 0 and all(a.n == 1 and a.task.meta["probe"] for a in asks)
    tried = list(dict.fromkeys(str(a.instruction) for a in asks))
    assert set(tried) <= {"good", "poor", "better"}, "one that is there already is no candidate"
    assert len({tuple(a.task.id for a in asks if a.instruction == name) for name in tried}) == 1, (
        "on the same questions"
    )
    worth = {"good": [1.0, 0.0, 1.0], "poor": [0.0, 0.0, 0.0], "better": [1.0, 1.0, 1.0]}
    groups = [judged(a, [worth[str(a.instruction)][i % 3]]) for i, a in enumerate(asks)]
    curriculum.observe(groups)
    joined = {m.text: m.worth for m in curriculum.members if m.text not in left}
    best = sorted(tried, key=lambda name: -float(np.sum(worth[name])))[:2]
    assert joined == {name: pytest.approx(np.mean(worth[name])) for name in best}
    assert not curriculum.next(2)[0].task.meta.get("probe")
    again = made(first="abcd", author=Noting(*replies), period=1, proposals=24, questions=3)
    again.load_state_dict(curriculum.state_dict())
    again.stream.load_state_dict(curriculum.stream.state_dict())  # type: ignore[attr-defined]
    assert again.next(3) == curriculum.next(3) and again.members == curriculum.members


def test_candidates_wait_for_their_trial_where_a_run_asks_ahead() -> None:
    """Two steps of a batch asked before come in between, and the candidates' own two batches after each other."""
    curriculum = made(first="ab", author=Noting("<instruction>new</instruction>"), period=1, proposals=1, questions=2)
    early = [curriculum.next(0), curriculum.next(1)]
    curriculum.observe([judged(early[0][0], [0.0] * 4)])
    trials = [curriculum.next(2), curriculum.next(3)]
    assert [len(asks) for asks in trials] == [2, 2] and trials[0][0].instruction == "new"
    curriculum.observe([judged(early[1][0], [0.0] * 4)])
    assert curriculum._candidates == ["new"] and len(curriculum.members) == 1
    curriculum.observe([judged(ask, [0.75]) for ask in trials[0]])
    assert [(m.text, m.worth) for m in curriculum.members][1:] == [("new", 0.75)]
    curriculum.observe([judged(ask, [0.25]) for ask in trials[1]])
    assert len(curriculum.members) == 2 and curriculum.members[1].worth == 0.75 and not curriculum._candidates
    nobody = made(first="ab", author=Noting("<instruction>new</instruction>"), period=1, proposals=1, questions=2)
    nobody.observe([judged(nobody.next(0)[0], [0.0] * 4)])
    nobody.observe([judged(ask, [None]) for ask in nobody.next(1)])
    assert len(nobody.members) == 1 and not nobody._candidates, "what could not be judged does not join"


def test_it_follows_what_works() -> None:
    """True success (.2, .3, .6, .4), turned round after 300 groups of 8."""
    on_third: list[float] = []
    on_second: list[float] = []
    for seed in range(5):
        curriculum, rng = made(group=8, seed=seed), np.random.default_rng(seed)
        for rates, seen, best in (((0.2, 0.3, 0.6, 0.4), on_third, 2), ((0.4, 0.6, 0.3, 0.2), on_second, 1)):
            for step in range(300):
                [ask] = curriculum.next(step)
                curriculum.observe(
                    [judged(ask, (rng.random(8) < rates[ask.task.meta["instruction"]]).astype(float).tolist())]
                )
            seen.append(chances([m.worth for m in curriculum.members], 0.1)[best])
    assert 0.7 < np.mean(on_third) < 0.95 and 0.7 < np.mean(on_second) < 0.95
    assert min(on_third) > 0.5 and min(on_second) > 0.5


@pytest.mark.parametrize(
    "options",
    [
        *({"first": ()}, {"temperature": 0.0}, {"rate": 0.0}, {"rate": 1.5}, {"keep": 0.0}, {"keep": 1.0}),
        *({"proposals": 0}, {"questions": 0}, {"failures": 0}, {"buffer": 0}),
    ],
)
def test_options_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="curriculum 'instructions'"):
        made(**options)


def test_what_it_starts_with() -> None:
    usual = made()
    assert (usual.temperature, usual.rate, usual.worth, usual.period, usual.keep) == (0.1, 0.1, 0.5, 25, 0.5)
    assert (usual.proposals, usual.questions, usual.failures, usual.buffer) == (4, 32, 3, 64)
    assert (usual.longest, usual.seed, usual.best.number) == (2048, 0, 0)
    table = make_method("S080", options={"first": ["a"]}).curriculum
    names = ("temperature", "rate", "period", "keep", "proposals", "questions")
    assert [table[name] for name in names] == [getattr(usual, name) for name in names] and "author" not in table
    assert make_method("S080", options={"first": ["a"], "author": "x"}).curriculum["author"] == "x"
    least = made(rate=1.0, proposals=1, questions=1, failures=1, buffer=1)
    [ask] = least.next(0)
    least.observe([judged(ask, [0.25, 0.75])])
    assert least.members[ask.task.meta["instruction"]].worth == 0.5, "at a rate of 1 it is what was scored last"


def test_what_the_author_writes_is_read_up_to_its_longest() -> None:
    """A proposal of as many characters as may be is a candidate, one of more is not; a reply of so many tokens."""
    author = Noting("<instruction>123456</instruction>", "<instruction>1234567</instruction>")
    curriculum = made(first="ab", author=author, period=1, proposals=2, longest=6, failures=1)
    [ask] = curriculum.next(0)
    curriculum.observe([judged(ask, [0.0] * 4, "x" * 3000)])
    assert curriculum._candidates == ["123456"] and author.prompts[0].count("x") == 1999
    assert {how.max_tokens for how in author.how} == {6}
    asks = curriculum.next(1)
    assert len(asks) == 32 and {a.task.meta["instruction"] for a in asks} == {2}, "numbers go on"


def recipe(folder: Path, steps: int) -> dict[str, Any]:
    options = {"first": ["1", "2"], "period": 1, "questions": 2, "proposals": 1}
    author = {"name": "keywords", "replies": [], "otherwise": "<instruction>3</instruction>"}
    method = {"name": "S080", "options": {**options, "author": author}}
    return running.recipe(folder, warmup={"steps": 0}, method=method, train={"steps": steps}, evaluate={"samples": 0})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspo") / "run"
    assay.train(recipe(folder, 4), quiet=True)
    return folder


@pytest.mark.slow
def test_a_run_evolves_instructions_and_goes_on_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    steps = list(tables(whole, "rollouts").values())
    first = [[row["instruction"] for row in step] for step in steps]
    assert set(first[0]) <= {"1", "2"} and first[1] == ["3", "3"] and set(first[2]) <= {"1", "2", "3"}
    rows = [row for row in running.metrics(whole) if row["stage"] == "rl"]
    assert [row["unselected"] for row in rows[:3]] == [0, 1, 0], "a step that only tries an instruction learns nothing"
    assay.train(recipe(tmp_path / "run", 2), quiet=True)
    assay.train(resume=tmp_path / "run", overrides=["train.steps=4"], quiet=True)
    assert_same(tmp_path / "run", whole)


def test_the_instruction_worth_most_is_taken_from_the_last_checkpoint(tmp_path: Path) -> None:
    rows = [[0, "a", 0.2, 9], [1, "b", 0.7, 1], [2, "c", 0.7, 3]]
    for step, kept in enumerate((rows, [])):
        state = {"curriculum": {"instructions": kept}}
        write_folder(checkpoint(tmp_path, "rl", step), lambda f, state=state: torch.save(state, f / "trainer.pt"))
        if kept:
            assert best_instruction(tmp_path) == "b"
    with pytest.raises(UsageError, match="keeps no instructions"):
        best_instruction(tmp_path)


def test_the_best_instruction_is_used_at_test_time(whole: Path) -> None:
    assert best_instruction(whole) in {"1", "2", "3"}
    strategy, engine = Instructed(run=str(whole)), Noting("4")
    strategy([Task("t", "2+2=")], engine, 1, np.random.default_rng(0))
    assert engine.prompts == [f"{strategy.instruction}\n2+2="]
    assert Instructed(instruction="Add.", sampling=Sampling(4)).instruction == "Add."
    wrongs: list[dict[str, Any]] = [{}, {"run": "x", "instruction": "y"}]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="needs the folder of a run, or an instruction"):
            Instructed(**wrong)


# Over several turns, with a search engine

DOCUMENTS = [{"id": "a", "title": "A", "text": "x is 17"}, {"id": "b", "title": "B", "text": "y is 25"}]
QUESTIONS = [{"question": "What is x?", "answer": "17"}, {"question": "What is y?", "answer": "25"}]
WORLD = '''
from dataclasses import replace

from assay.environments.search.environment import Search
from assay.tasks.listed import Listed

TURNS = ("<search>x</search>", "<answer>17</answer>")


class Short(Search):
    """Tasks in few words, shown to end a turn in one way or the other."""

    def tasks(self):
        found = super().tasks()
        return Listed([replace(found[i % 2], id=str(i), prompt=f"x{i}?", solution=TURNS[i % 2]) for i in range(12)])
'''


def searched(folder: Path) -> dict[str, Any]:
    """An environment over two documents, searched by tags."""
    for name, rows in (("corpus", DOCUMENTS), ("questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = {name: str(folder / f"{name}.jsonl") for name in ("corpus", "questions")}
    return {"name": "search", "protocol": "tags", "shown": 1, "searches": 3, **files}


def obedient(messages: list[dict[str, Any]], tools: list[str]) -> str:
    """Looks twice and answers with what was found, or guesses, as it is instructed."""
    instruction, _, question = messages[0]["content"].partition("\n")
    found = [m["content"] for m in messages if "<information>" in m["content"]]
    if instruction == "Guess.":
        return "<answer>3</answer>"
    if len(found) < 2:
        return f"<search>{'x' if 'x?' in question else 'y'}</search>"
    return f"<answer>{'17' if 'is 17' in found[-1] else '25'}</answer>"


def test_instructions_are_credited_for_searches(tmp_path: Path) -> None:
    """Worth 0.5 moves by a tenth to 1 where the policy searches, to 0 where it guesses: 0.55 and 0.45."""
    world, author = searched(tmp_path), Noting("<instruction>Look, twice.</instruction>")
    rollout = MultiTurn(world, Sampling(200), turns=4)
    stream = TrainStream(build("environment", world).tasks())
    options: dict[str, Any] = {"period": 2, "proposals": 1, "questions": 2, "seed": 3}
    curriculum = Instructions(stream, 1, 2, ("Search first.", "Guess."), author=author, **options)
    engine, worth = Talking(obedient), dict[str, float]()
    for step, member in enumerate(curriculum.members):
        [ask] = curriculum.next(step)
        ask = under(curriculum, member.number, ask)
        [group] = rollout.collect([ask], engine, np.random.default_rng(0))
        for episode in group.episodes:
            text = engine.decode(episode.prompt)
            assert f"user:{member.text}\n" in text and "What is" in text
            said, own = (engine.decode(episode.tokens[episode.mask == mine]) for mine in (False, True))
            assert ("<information>" in said) is (member.text == "Search first.") and "<information>" not in own
        assert [len(e.turns) for e in group.episodes] == [3 if member.text == "Search first." else 1] * 2
        curriculum.observe([group])
        worth |= {m.text: m.worth for m in curriculum.members}
    assert worth["Search first."] == pytest.approx(0.55)
    assert [m.text for m in curriculum.members] == ["Search first."], "the one to guess under has gone"
    assert "<answer>3</answer>" in author.prompts[0]
    asks = curriculum.next(2)
    assert [a.instruction for a in asks] == ["Look, twice."] * 2
    curriculum.observe(rollout.collect(asks, engine, np.random.default_rng(1)))
    assert [(m.text, m.worth) for m in curriculum.members] == [("Search first.", 0.55), ("Look, twice.", 1.0)]
    inner = {"name": "multi_turn", "environment": world, "turns": 4}
    tasks = [stream.source[i] for i in range(2)]
    for instruction, said, size in (("Look, twice.", ["17", "25"], 3), ("Guess.", ["3", "3"], 1)):
        strategy = Instructed(instruction=instruction, inner=inner, sampling=Sampling(200))
        answers = strategy(tasks, engine, 1, np.random.default_rng(0))
        assert [a.text for a in answers] == [f"<answer>{one}</answer>" for one in said]
        assert {len(a.episodes[0].turns) for a in answers} == {size}
        assert all(a.tokens == len(a.episodes[0].tokens) for a in answers)


def test_it_trains_by_searching(tmp_path: Path) -> None:
    """Some of its turns search and some answer; a group is asked under one instruction, and shown what was found."""
    (tmp_path / "world.py").write_text(WORLD)
    environment = {**searched(tmp_path), "name": f"{tmp_path / 'world.py'}:Short"}
    folder = running.run(
        tmp_path / "run",
        model={"nano": {"hidden": 32, "layers": 1, "heads": 2, "context": 260}},
        tasks={"source": {"name": "environment", "environment": environment}, "eval_share": 0.2, "eval_size": 1},
        warmup={"steps": 30, "lr": 2e-2, "batch": 6},
        method={
            "name": "S080",
            "options": {"first": ["1", "2"]},
            "rollout": {"name": "multi_turn", "environment": environment, "turns": 3},
        },
        rollout={"prompts": 3, "group": 4, "max_tokens": 24},
        train={"steps": 2, "lr": 1e-3, "epochs": 1, "mini_batches": 1},
        evaluate={"every": 0, "samples": 1},
    )
    rows = [row for row in running.metrics(folder) if row["stage"] == "rl"]
    assert all(row["environment/turns"] > 1 and row["environment/invalid"] < 1 for row in rows)
    steps = list(tables(folder, "rollouts").values())
    for step in steps:
        assert all(len({row["instruction"] for row in step if row["group"] == g}) == 1 for g in range(3))
        assert all(row["instruction"] in {"1", "2"} for row in step)
    assert any("<information>" in row["response"] for step in steps for row in step)
