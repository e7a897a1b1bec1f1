"""A database with rules: what they refuse and entail, tasks that hold, users who answer, states that count."""

from __future__ import annotations

import itertools
import json
import re
import sqlite3
from collections import Counter
from typing import Any

import numpy as np
import pytest
from acted import comes_back, ends, gold_passes, idle_fails, played, repeats, share
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Scripted as Voices

from assay.audit.environment import audit_environment
from assay.environments.base import Action, EnvironmentFailure
from assay.environments.hosted.worlds import Worlds
from assay.environments.played import Played
from assay.environments.shop.database import Database, image
from assay.environments.shop.domain import Column, Domain, Rule, Table
from assay.environments.shop.environment import Shop
from assay.environments.shop.explore import holds, proven, speech
from assay.environments.shop.themes import CLAUSES, THEMES, make_domain
from assay.environments.shop.user import STOP, Scripted
from assay.environments.tools import ToolError, call, say
from assay.errors import UsageError
from assay.verify.make import make_verifier
from assay.verify.structured.state import distance, facts

KINDS: list[dict[str, Any]] = [
    {},
    {"themes": ("hotel", "library"), "rules": 6, "turn_rewards": True},
    {"user": "scripted", "seed": 4},
    {"wishes": 2, "granularity": "row"},
]


@pytest.mark.parametrize("options", KINDS)
def test_the_plan_passes_and_repeats(options: dict[str, Any]) -> None:
    def make() -> Shop:
        return Shop(**options)

    tasks = make().tasks()
    plans = gold_passes(make, tasks, 8)
    repeats(make, tasks, plans[:3])
    comes_back(make, tasks, plans[:2])
    ends(make, tasks[0], plans[0])
    idle_fails(make, tasks, n=5)
    assert not played(make(), tasks[0], [say("Is it done?")] * 200)[-1].passed


def groping(world: Shop, shown: Any, rng: np.random.Generator) -> Action:
    """Takes or removes something at random, with ids that stand in the tables."""
    t = THEMES[world.task.meta["theme"]]
    state = world.state_json()
    row = {
        t.actor: str(rng.choice([r["id"] for r in state[t.actor]])),
        t.resource: str(rng.choice([r["id"] for r in state[t.resource]])),
    }
    if rng.random() < 0.2:
        return say("It is done.")
    operation = ("create", "update", "delete")[int(rng.integers(3))]
    more = {} if operation == "delete" else {"quantity": int(rng.integers(1, 4))}
    return call(f"{operation}_{t.claim}", **row, **more)


def test_at_random_nothing_passes() -> None:
    assert share(Shop, Shop().tasks(), groping, 30) == 0


def event() -> Domain:
    """Events of a capacity, and bookings that count."""
    return Domain(
        "events",
        (
            Table("event", (Column("id"), Column("cap"), Column("booked")), ("id",), ("read", "update")),
            Table(
                "booking",
                (Column("usr", "text"), Column("ev", references="event"), Column("status", "text", default="ok")),
                ("usr", "ev"),
                ("create", "read", "update", "delete"),
                number=True,
            ),
        ),
        (
            Rule(
                "booking",
                "insert",
                "(SELECT booked >= cap FROM event WHERE id = NEW.ev)",
                "the event is full",
                "POLICY_EVENT_FULL",
            ),
            Rule("booking", "insert", "UPDATE event SET booked = booked + 1 WHERE id = NEW.ev", "booked rises by one"),
        ),
    )


EVENTS = {"event": [{"id": 1, "cap": 2, "booked": 1}, {"id": 2, "cap": 5, "booked": 0}], "booking": []}


def opened() -> Database:
    return Database(event(), image(event(), EVENTS))


def test_rules_refuse_and_have_effects() -> None:
    database = opened()
    database.call("create", "booking", {"usr": "bob", "ev": 1})
    assert database.tables()["event"][0] == {"id": 1, "cap": 2, "booked": 2}
    assert database.tables()["booking"] == [{"number": 1, "usr": "bob", "ev": 1, "status": "ok"}]
    before = database.tables()
    for arguments, said in (
        ({"usr": "eve", "ev": 1}, "POLICY_EVENT_FULL"),
        ({"usr": "eve", "ev": 9}, "CONSTRAINT_REFERENCE"),
        ({"usr": "eve", "ev": 2**80}, "no value"),
        ({"usr": "\ud800", "ev": 2}, "no value"),
    ):
        with pytest.raises(ToolError, match=said):
            database.call("create", "booking", arguments)
    assert database.tables() == before
    database.call("create", "booking", {"usr": "eve", "ev": 2})
    with pytest.raises(ToolError, match="CONSTRAINT_UNIQUE"):
        database.call("create", "booking", {"usr": "eve", "ev": 2})
    assert database.tables()["event"][1]["booked"] == 1  # the effect of a refused call is undone with it
    with pytest.raises(ToolError, match="no such row of booking"):
        database.call("delete", "booking", {"usr": "eve", "ev": 1})
    with pytest.raises(ToolError, match="nothing to change"):
        database.call("update", "booking", {"usr": "eve", "ev": 2})
    assert database.call("read", "booking", {"usr": "zed"}) == "no rows"
    assert json.loads(database.call("read", "event", {"id": 2})) == {"id": 2, "cap": 5, "booked": 1}


def test_tools_say_the_rules() -> None:
    tools = {t.name: t for t in event().tools()}
    assert set(tools) == {f"{o}_booking" for o in ("create", "read", "update", "delete")} | {
        "read_event",
        "update_event",
    }
    told = tools["create_booking"].description
    assert "Refused with POLICY_EVENT_FULL if the event is full." in told and "Afterwards booked rises by one." in told
    assert tools["create_booking"].parameters["required"] == ["usr", "ev"]
    assert "POLICY" not in tools["delete_booking"].description
    assert tools["delete_booking"].parameters["required"] == ["usr", "ev"]


calls_of_events = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from("abc"), st.integers(1, 2), st.just("ok")),
        st.tuples(st.just("update"), st.sampled_from("abc"), st.integers(1, 2), st.sampled_from(["ok", "hold"])),
        st.tuples(st.just("delete"), st.sampled_from("abc"), st.integers(1, 2), st.just("")),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(calls_of_events)
def test_the_database_is_the_one_that_plain_python_has(calls: Any) -> None:
    database, booked, rows = opened(), {1: 1, 2: 0}, dict[tuple[str, int], str]()
    for operation, usr, ev, status in calls:
        full = booked[ev] >= {1: 2, 2: 5}[ev]
        allowed = (usr, ev) in rows if operation != "create" else (usr, ev) not in rows and not full
        arguments = {"usr": usr, "ev": ev} | ({"status": status} if operation == "update" else {})
        try:
            database.call(operation, "booking", arguments)
            assert allowed
        except ToolError:
            assert not allowed
            continue
        if operation == "delete":
            del rows[usr, ev]
        else:
            rows[usr, ev] = status
            booked[ev] += operation == "create"
    found = database.tables()
    assert {(r["usr"], r["ev"]): r["status"] for r in found["booking"]} == rows
    assert {r["id"]: r["booked"] for r in found["event"]} == booked
    database.close()


def test_the_order_of_actions_does_not_matter_to_the_key() -> None:
    """Two bookings in either order: another running number, the same facts and digest; a third state has another."""
    digests = []
    for order in (("a", "b"), ("b", "a"), ("a", "c")):
        database = opened()
        for usr in order:
            database.call("create", "booking", {"usr": usr, "ev": 2})
        digests.append((database.digest(), facts(database.tables(), event().keys, volatile=["number"])))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("theme", THEMES)
def test_every_rule_has_let_a_call_through_and_refused_one(theme: str) -> None:
    """Of the whole policy and of each clause alone; a rule that can never fire is found out."""
    for clauses in (CLAUSES, *((c,) for c in CLAUSES)):
        domain = proven.__wrapped__(theme, clauses)
        assert domain == make_domain(THEMES[theme], clauses)


def test_a_rule_that_never_fires_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Rule("purchase", "insert", "NEW.quantity > 99", "it is too much", "POLICY_DEAD")

    def made(theme: Any, clauses: Any) -> Domain:
        whole = make_domain(theme, clauses)
        return Domain(whole.name, whole.tables, (*whole.rules, dead))

    monkeypatch.setattr("assay.environments.shop.explore.make_domain", made)
    monkeypatch.setattr("assay.environments.shop.explore.PROBES", 3)
    with pytest.raises(ValueError, match="POLICY_DEAD"):
        proven.__wrapped__("shop", ("tier",))


@pytest.mark.slow
def test_money_and_places_are_kept() -> None:
    """Whatever is called, balances plus what claims are worth, and places taken less those claimed, stay the same."""
    rng = np.random.default_rng(0)
    for index in range(4):
        world = Shop(rules=6, themes=("clinic", "airline"))
        task = next(
            t
            for i in itertools.count(10 * index)
            if {"price", "capacity"} <= set((t := world.tasks()[i]).meta["clauses"])
        )
        world.reset(task, 0)
        t = THEMES[task.meta["theme"]]

        def sums(state: Any, t: Any = t) -> tuple[int, list[int]]:
            price = {r["id"]: r["price"] for r in state[t.resource]}
            money = sum(a["balance"] for a in state[t.actor])
            money += sum(price[c[t.resource]] * c["quantity"] for c in state[t.claim])
            claimed = Counter({r["id"]: r["taken"] for r in state[t.resource]})
            for c in state[t.claim]:
                claimed[c[t.resource]] -= c["quantity"]
            return money, sorted(claimed.values())

        before, made = sums(world.state_json()), 0
        for _ in range(60):
            action = groping(world, None, rng)
            if action.calls:
                made += world.step(action).valid
        assert made > 5 and sums(world.state_json()) == before
        assert all(a["balance"] >= 0 for a in world.state_json()[t.actor])


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"themes": ("hotel", "school"), "rules": 6}, {"user": "scripted", "seed": 2}])
def test_tasks_hold(options: dict[str, Any]) -> None:
    """Each replays to its goal, has a neighbour that a rule refuses, and tells nothing that only the goal knows."""
    made = Shop(**options).tasks()
    seen: Counter[str] = Counter()
    for index in range(40):
        found, task = made.found(index), made[index]
        assert holds(found)
        of = [facts(s, found.domain.keys, volatile=["number"]) for s in (found.start, found.goal)]
        assert distance(*of) > 0 and len(found.calls) >= 2
        codes = {said for _, said in found.refused if said.startswith("POLICY")}
        assert codes and codes <= {r.code for r in found.domain.rules}
        seen.update(codes)
        ids = {r["id"] for t in (found.theme.actor, found.theme.resource) for r in found.start[t]}
        names = {r["name"]: r["id"] for r in found.start[found.theme.resource]}
        own = {w.target for w in found.wishes if w.target}
        texts = [task.question, speech(found), *(reply for _, reply in task.meta["details"])]
        for text in texts:
            assert not ids & set(re.findall(r"\w+", text))
            assert set(names) & set(re.findall(r"\w+", text)) <= own
        if options.get("user") == "scripted":
            assert task.meta["details"] and task.question != made.__class__(2, ("shop",), 4, 3, False)[index].question
    assert len(seen) >= 3


def test_a_task_that_does_not_replay_is_dropped() -> None:
    import dataclasses

    found = Shop().tasks().found(0)
    assert holds(found)
    assert not holds(dataclasses.replace(found, goal=found.start))
    assert not holds(dataclasses.replace(found, calls=found.calls[:1]))
    assert not holds(dataclasses.replace(found, refused=()))
    assert not holds(dataclasses.replace(found, calls=found.calls[:1] * 2))
    taken = next(c for (c, _) in found.refused)
    assert not holds(dataclasses.replace(found, calls=(*found.calls, taken)))


def test_the_score_is_the_way_that_was_made() -> None:
    """A turn's rewards are differences of Phi, unclipped, and add up to it; the verifier says the same of the state."""
    world = Shop(turn_rewards=True)
    task = world.tasks()[1]
    world.reset(task, 0)
    plan = [a for a in world.gold() if not a.text.count("read_")]
    t = THEMES["shop"]
    client, others = task.reference["start"][t.actor][0]["id"], task.reference["start"][t.resource]
    wrong = call(f"delete_{t.claim}", **{t.actor: client, t.resource: others[-1]["id"]})
    stray = next(c for c in task.reference["start"][t.claim] if c[t.actor] != client)
    spoilt = call(f"delete_{t.claim}", **{t.actor: stray[t.actor], t.resource: stray[t.resource]})
    rewards = list[Any]()
    for action in (wrong, spoilt, *plan):
        rewards.append(world.step(action).reward)
        verdict = world.verdict()
        assert verdict == make_verifier("state")(task, json.dumps(world.state_json()))
        assert sum(rewards) == pytest.approx(verdict.parts["state | potential"])
        assert verdict.score == pytest.approx(min(1.0, max(0.0, sum(rewards))))
    assert rewards[0] == 0 and rewards[1] < 0 and not verdict.passed and min(verdict.score, sum(rewards)) < 1


def test_a_user_who_keeps_a_detail_back() -> None:
    user = Scripted(((("tea", "many"), "The cheapest, and 2 of it."), (("honey",), "Take 3 of it.")))
    assert user.answer("Which TEA would you like?") == "The cheapest, and 2 of it."
    assert user.answer("How many of the honey?") == "The cheapest, and 2 of it. Take 3 of it."
    assert user.answer("What is your birthday?") == "That is all I can tell you. Please do as you think best."
    assert user.answer("It is done, goodbye.") is None


def spoken_for(*replies: tuple[str, str]) -> tuple[Shop, Voices]:
    world, voices = Shop(), Voices(replies)
    world.engine, world.repeats, world.user_kind = voices, False, {"name": "voices"}
    return world, voices


def test_a_user_that_an_engine_speaks_for() -> None:
    """It is told what it wants and what was said; it ends by its sign."""
    world, voices = spoken_for(("Two, please.\nAssistant: Sure", "eos"), (f"Bye. {STOP}", "eos"))
    task = world.tasks()[0]
    world.reset(task, 0)
    asked = world.step(say("How many?"))
    assert asked.observation.messages[0]["content"] == "Two, please." and not asked.terminated
    assert world.step(say("It is done.")).terminated
    first, second = (str(r.prompt) for r in voices.asked)
    assert task.meta["wishes"] in first and first.endswith("Assistant: How many?\nCustomer:")
    assert "Customer: Two, please.\nAssistant: It is done.\nCustomer:" in second


@pytest.mark.parametrize("reply", [("", "error"), ("  ", "eos")])
def test_when_the_users_engine_fails_nobody_is_to_blame(reply: tuple[str, str]) -> None:
    task = Shop().tasks()[0]
    lost = Played(lambda: spoken_for(reply)[0], task, 0)
    lost.reset()
    with pytest.raises(EnvironmentFailure, match="user's engine failed"):
        lost.step(say("Hello?"))
    assert lost.attempts == 1  # an engine does not say the same again, so that nothing is played again


def test_options_out_of_range() -> None:
    with pytest.raises(UsageError, match="no theme 'shp'; did you mean 'shop'"):
        Shop(themes=("shp",))
    out: list[dict[str, Any]] = [{"rules": 1}, {"rules": 7}, {"wishes": 4}, {"wishes": 1}]
    for options in out:
        with pytest.raises(UsageError, match="environment 'shop': rules"):
            Shop(**options)
    with pytest.raises(UsageError, match="no engine part"):
        Shop(user="scriptd")


def test_rows_that_break_a_constraint_make_no_database() -> None:
    with pytest.raises(sqlite3.IntegrityError):
        image(event(), {"booking": [{"usr": "a", "ev": 3}]})


@pytest.mark.slow
def test_the_audit_passes() -> None:
    worlds = Worlds({"name": "shop", "themes": ["shop", "theatre"], "user": "scripted"}, 1)
    source = worlds.here().tasks()
    try:
        findings = {f.name: f for f in audit_environment(worlds, [source[i] for i in range(2)])}
    finally:
        worlds.close()
    assert all(f.passed and f.of for f in findings.values()) and findings["gold passes"].of == 2
