"""Domains, clients and talks that models write: what is refused, what goes back, and what becomes a task."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tasks.making.told import Told

from assay.audit.environment import audit_environment
from assay.environments.hosted.worlds import Worlds
from assay.environments.shop.environment import Shop
from assay.environments.shop.writing import Architect, Designer, Explorer, spoilers
from assay.environments.shop.written import BadDomain, begun, domain_of, plain_domain, read_call, read_domain, unproven
from assay.environments.tools import call, say
from assay.errors import UsageError
from assay.registry import build
from assay.tasks.making.maker import Made, Maker, Model
from assay.tasks.making.recipe import read_pipeline
from assay.tasks.making.task_file import write_tasks
from assay.tasks.making.work import Pipeline
from assay.types import Task

LANE = "(SELECT {} FROM lane WHERE id = {}.lane)"
POOL: dict[str, Any] = {
    "name": "pool",
    "tables": [
        {
            "name": "swimmer",
            "columns": [
                {"name": "id", "type": "text"},
                {"name": "name", "type": "text"},
                {"name": "level", "check": "level BETWEEN 0 AND 3"},
            ],
            "key": ["id"],
        },
        {
            "name": "lane",
            "columns": [
                {"name": "id", "type": "text"},
                {"name": "name", "type": "text"},
                {"name": "level"},
                {"name": "places"},
                {"name": "taken", "default": 0, "settable": False},
            ],
            "key": ["id"],
        },
        {
            "name": "slot",
            "columns": [
                {"name": "swimmer", "type": "text", "references": "swimmer"},
                {"name": "lane", "type": "text", "references": "lane"},
                {"name": "towel", "type": "text", "choices": ["yes", "no"], "default": "no"},
            ],
            "key": ["swimmer", "lane"],
            "operations": ["create", "read", "update", "delete"],
            "number": True,
        },
    ],
    "rules": [
        {
            "table": "slot",
            "event": "insert",
            "code": "POLICY_FULL",
            "words": "no place of the lane is left",
            "sql": "(SELECT taken >= places FROM lane WHERE id = NEW.lane)",
        },
        {
            "table": "slot",
            "event": "insert",
            "words": "taken of the lane rises by one",
            "sql": "UPDATE lane SET taken = taken + 1 WHERE id = NEW.lane",
        },
    ],
}
ROWS = {
    "swimmer": [{"id": "S1", "name": "Ada", "level": 1}],
    "lane": [
        {"id": "L1", "name": "quick", "level": 2, "places": 1, "taken": 1},
        {"id": "L2", "name": "calm", "level": 0, "places": 2},
    ],
}
FULL, FREE = (["create", "slot", {"swimmer": "S1", "lane": lane}] for lane in ("L1", "L2"))


def changed(*path: Any, to: Any) -> dict[str, Any]:
    out = copy.deepcopy(POOL)
    at: Any = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return out


def test_domains_are_read_and_told_again() -> None:
    domain = read_domain(POOL)
    assert domain_of(plain_domain(domain)) == domain and domain.written
    [create] = [tool for tool in domain.tools() if tool.name == "create_slot"]
    assert "Refused with POLICY_FULL if no place of the lane is left." in create.description
    assert "Afterwards taken of the lane rises by one." in create.description


@pytest.mark.parametrize(
    ("path", "to", "why"),
    [
        (("rules", 0, "code"), "FULL", "a code is POLICY_"),
        (("rules", 0, "event"), "update of depth", "has no column depth"),
        (("rules", 0, "event"), "select", "needs a table, an event"),
        (("rules", 0, "table"), "pool", "needs a table"),
        (("rules", 0, "sql"), 3, "made of texts"),
        (("rules", 0, "sql"), "1 WHEN", "SQLite"),
        (("rules", 0, "sql"), "1 BEGIN SELECT 1; END; ATTACH 'x' AS y; --", "not authorized"),
        (("rules", 0, "colour"), "red", "'colour' is none of"),
        (("rules",), [], "no rule refuses"),
        (("tables",), [], "there are no tables"),
        (("tables", 0, "name"), "Robert'); DROP", "small letters"),
        (("tables", 0, "key"), ["zz"], "its key is some of them"),
        (("tables", 0, "operations"), ["drop"], "operations are"),
        (("tables", 0, "columns", 0, "type"), "blob", "text or integer"),
        (("tables", 0, "columns", 1, "references"), "nothing", "references a table"),
        (("tables", 0, "columns", 2, "check"), "datetime('now') > 0", "not authorized"),
        (("tables", 0, "columns", 2, "check"), 5, "check is SQL"),
        (("tables", 0, "columns", 2, "default"), 0.5, "default is a text or a whole number"),
        (("tables", 0, "columns"), 7, "it is no domain"),
    ],
)
def test_what_is_no_domain(path: tuple[Any, ...], to: Any, why: str) -> None:
    with pytest.raises(BadDomain, match=why):
        read_domain(changed(*path, to=to))


def test_every_rule_has_to_be_shown() -> None:
    domain = read_domain(POOL)
    assert unproven(domain, ROWS, [[FULL], [FREE]]) == []
    assert unproven(domain, ROWS, [[FREE]]) == ["no probe of create_slot is refused with POLICY_FULL"]
    assert (
        unproven(domain, ROWS, [[FULL]])[-1] == "no probe shows that after create_slot taken of the lane rises by one"
    )
    idle = read_domain(changed("rules", 1, "sql", to="UPDATE lane SET taken = taken WHERE id = NEW.lane"))
    assert unproven(idle, ROWS, [[FULL], [FREE]]) == [
        "no probe shows that after create_slot taken of the lane rises by one"
    ]
    # What a rule may not do, or does without end, shows as a refusal of another kind.
    for sql in ("random() > 0", f"(SELECT COUNT(*) FROM {', '.join(f'lane l{i}' for i in range(40))}) > 0"):
        wild = read_domain(changed("rules", 0, "sql", to=sql))
        assert "refused with POLICY_FULL" in unproven(wild, ROWS, [[FULL], [FREE]])[0]
    for probes, why in (
        ([[FULL, FREE]], "POLICY_FULL, before its last call"),
        ([[]], "one call or more"),
        ([[["drop", "slot", {}]]], "is no call"),
        ([[["create", "slot", {"lane": "L1"}]]], "create_slot takes swimmer"),
        ([["create"]], "is no call"),
    ):
        with pytest.raises(BadDomain, match=why):
            unproven(domain, ROWS, probes)
    for rows, why in (([], "an object from"), ({"pool": []}, "an object from"), ({"lane": [{"x": 1}]}, "rows of lane")):
        with pytest.raises(BadDomain, match=why):
            begun(domain, rows)
    with pytest.raises(BadDomain, match="CHECK"):
        begun(domain, {"swimmer": [{"id": "S", "name": "n", "level": 9}]})
    assert read_call(domain, ["read", "lane", {}]) == ("read", "lane", {})


def domain_said(domain: Any = POOL, rows: Any = ROWS, probes: Any = ((FULL,), (FREE,))) -> str:
    told = {"domain": domain, "start": rows, "probes": probes}
    return "".join(f"<{tag}>{json.dumps(value)}</{tag}>" for tag, value in told.items())


PERSONA = {"name": "Ada", "speaks": "briefly", "wants": "a place in the quick lane, else the calm one, with a towel"}
SETTING = f"<start>{json.dumps(ROWS)}</start><persona>{json.dumps(PERSONA)}</persona>"


def call_said(*what: Any) -> str:
    return f"<call>{json.dumps(list(what))}</call>"


TALK = [
    *("<menu>the quick lane\nthe calm lane</menu>", "The quick one.", call_said(*FULL)),
    *("<menu>the calm lane</menu>", "Then the calm one, please.", call_said(*FREE)),
    *("<menu>a towel</menu>", "A towel.", call_said("update", "slot", {"swimmer": "S1", "lane": "L2", "towel": "yes"})),
    *("<menu></menu>", "DONE."),
]
SAID = "<said>I am Ada. A place in the quick lane,\n\nelse in the calm one; and a towel.</said>"


def made(replies: list[str], step: Any, *tasks: Task) -> tuple[Made, list[tuple[str, str]]]:
    asked: list[tuple[str, str]] = []

    def by(role: str) -> Model:
        def says(prompt: str, _: int) -> str:
            asked.append((role, prompt))
            return replies[len(asked) - 1]

        return Model(role, Told(says))

    steps = step if isinstance(step, list) else [("step", step)]
    return Maker(Pipeline("S004", steps), {"writer": by("writer"), "client": by("client")}).make(tasks), asked


POOL_SEED = Task("pool", "a swimming pool", kind="none")


def test_a_domain_is_written_until_it_holds() -> None:
    replies = [
        "<policy>1. A lane has so many places.</policy>",
        "I would rather not.",
        domain_said(changed("rules", 0, "code", to="X")),
        domain_said(probes=[[FREE]]),
        domain_said(rows={"lane": 1}),
        domain_said(probes=[1]),
        domain_said(),
    ]
    found, asked = made(replies, Architect(6), POOL_SEED)
    [task] = found.tasks
    assert domain_of(task.meta["domain"]) == read_domain(POOL) and task.meta["policy"].startswith("1. A lane")
    prompts = [prompt for _, prompt in asked]
    assert "a swimming pool" in prompts[0] and "1. A lane has" in prompts[1] and "again" not in prompts[1]
    reasons = ("nothing stands between <domain>", "a code is POLICY_", "no probe of", "rows of", "probes are")
    for prompt, why in zip(prompts[2:], reasons, strict=True):
        assert f"has to be written again: {why}" in prompt or why in prompt
    for some, reason in ((["no"], "no policy is written"), ([replies[0], "?"], "no domain that holds is written")):
        found, _ = made(some, Architect(1), POOL_SEED)
        assert list(found.counts["step"].dropped) == [reason]


def pooled() -> Task:
    meta = {"policy": "1. A lane has so many places.", "domain": plain_domain(read_domain(POOL))}
    return Task("pool", "a swimming pool", kind="none", meta=meta)


def test_starts_have_clients_of_several_kinds() -> None:
    bad = SETTING.replace('"speaks"', '"sings"')
    broken = SETTING.replace('"level": 1', '"level": 7')
    found, asked = made([bad, SETTING, broken, "?"], Designer(2, 2), pooled())
    [task] = found.tasks
    assert task.meta["persona"] == {**PERSONA, "kind": "mismatched"} and task.meta["start"]["slot"] == []
    assert "of kind mismatched" in asked[0][1] and "of kind entangled" in asked[2][1]
    assert "a persona has name, speaks, wants" in asked[1][1] and "CHECK" in asked[3][1]
    assert list(made(["?"] * 2, Designer(1, 2), pooled())[0].counts["step"].dropped) == ["no start is written"]


def settled() -> Task:
    return made([SETTING], Designer(1), pooled())[0].tasks[0]


def test_a_talk_becomes_a_task(tmp_path: Path) -> None:
    found, asked = made([*TALK, SAID], Explorer(), settled())
    [task] = found.tasks
    assert [role for role, _ in asked] == ["writer", "client", "writer"] * 3 + ["writer", "client", "writer"]
    # The client sees his wishes and the menu, and not the tables; the others see what came of it.
    clients = [prompt for role, prompt in asked if role == "client"]
    assert all("L1" not in prompt and PERSONA["wants"] in prompt for prompt in clients)
    assert "the quick lane" in clients[0] and "Staff: refused: POLICY_FULL" in clients[1]
    assert '"taken": 1' in asked[6][1] and "create_slot: Add a row to slot." in asked[2][1]
    assert task.kind == "state" and list(task.meta["refused"]) == ["POLICY_FULL"]
    assert task.question.endswith("\n\nI am Ada. A place in the quick lane, else in the calm one; and a towel.")
    write_tasks(tmp_path / "made.jsonl", found.tasks)
    again = build("tasks", {"name": "made", "path": str(tmp_path / "made.jsonl")})[0]
    world = Shop(turn_rewards=True)
    world.reset(again, 0)
    rewards = [world.step(action).reward for action in world.gold()]
    assert world.verdict().passed and sum(x or 0 for x in rewards) == pytest.approx(1)
    world.reset(again, 0)
    step = world.step(call("create_slot", swimmer="S1", lane="L1"))
    assert not step.valid and "POLICY_FULL" in step.error
    world.step(call("create_slot", swimmer="S1", lane="L2"))
    world.step(say("It is done."))
    # Five facts are others at the goal than at the start, and now two: there is no towel.
    assert world.verdict().score == pytest.approx(1 - 2 / 5) and not world.verdict().passed


def test_what_is_no_task() -> None:
    def reason(*replies: str, turns: int = 8) -> list[str]:
        found, _ = made(list(replies), Explorer(turns), settled())
        return list(found.counts["step"].dropped)

    few = "fewer than two changes, no refusal by a rule, or no replay to the goal"
    assert reason(*TALK[3:], SAID) == [few]  # nothing was refused
    assert reason(*TALK[:6], turns=2) == [few]  # one change
    assert reason("<menu>x</menu>", "done?", "<call>nonsense</call>", "<menu></menu>", "DONE") == [few]
    assert reason(*TALK, "?") == ["nothing is said at the beginning"]
    assert reason(*TALK, "<said>Put S1 into the calm lane.</said>") == ["what is said tells what only the tables know"]
    domain, start = read_domain(POOL), settled().meta["start"]
    goal = {**start, "lane": [*start["lane"], {"id": "L3", "name": "new", "level": 0, "places": 1, "taken": 0}]}
    assert spoilers("L2 and the new one, quick, yes", domain, start, goal) == ["L2", "new"]
    assert spoilers("L22 anew", domain, start, goal) == []


def test_options_and_the_recipe() -> None:
    for step, options in (
        (Architect, {"tries": 0}),
        (Designer, {"n": 0}),
        (Designer, {"tries": 0}),
        (Explorer, {"turns": 1}),
    ):
        with pytest.raises(UsageError, match="step"):
            step(**options)
    recipe = read_pipeline("S004", {"n": 1})
    assert recipe.steps == (("architect", Architect(5)), ("designer", Designer(1, 5)), ("explorer", Explorer(8)))
    replies = ["<policy>1. A lane has so many places.</policy>", domain_said(), SETTING, *TALK, SAID]
    found, _ = made(replies, list(recipe.steps), POOL_SEED)
    assert [task.id for task in found.tasks] == ["pool/designer-0/explorer-0"]


@pytest.mark.slow
def test_its_audit_passes_on_what_is_written() -> None:
    found, _ = made([*TALK, SAID], Explorer(), settled())
    worlds = Worlds("shop", 2)
    try:
        findings = list(audit_environment(worlds, found.tasks))
    finally:
        worlds.close()
    assert [(f.name, f.first) for f in findings if not f.passed] == []
