"""Models that write tasks forwards: an architect of a domain, a designer of its start, and explorers who talk."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engines.asking import filled
from assay.engines.writing import lines, pieces
from assay.environments.shop.database import Database
from assay.environments.shop.domain import Domain
from assay.environments.shop.explore import replays
from assay.environments.shop.tasks import HOW
from assay.environments.shop.written import (
    BadDomain,
    Call,
    begun,
    domain_of,
    plain_domain,
    read_call,
    read_domain,
    told_ids,
    unproven,
)
from assay.environments.tools import ToolError
from assay.errors import UsageError
from assay.tasks.making.work import Dropped, Here, Reply, Want, Work, child, noted
from assay.types import Task
from assay.verify.structured.state import Tables

KINDS = ("mismatched", "entangled", "novice", "boundary")
"""Of personas: wants what does not fit together, several things that hang together, does not know the terms, or wants
what is just out of reach."""
Asking = Generator[list[Want], list[list[Reply]], str]

POLICY = """Think of a small service: {seed}. Who uses it, what is there only so much of, what do they ask for? Write
the policy that its staff goes by: numbered rules, each of which refuses something or has a consequence.

Write it between <policy> and </policy>."""
DOMAIN = """Make tables and rules of this policy, in JSON:
{policy}

<domain>{"name": "...", "tables": [{"name": "...", "columns": [{"name": "id", "type": "text"}, {"name": "...",
"type": "integer", "check": "SQL that holds of it", "default": 0, "settable": false}, {"name": "...", "type": "text",
"choices": ["..."], "references": "another table"}], "key": ["id"], "operations": ["create", "read", "update",
"delete"]}], "rules": [{"table": "...", "event": "insert, delete or update of COLUMN", "code": "POLICY_...", "sql":
"SQL over NEW and OLD, true where it is refused", "words": "..."}, {"table": "...", "event": "...", "sql": "a statement
that is run afterwards", "words": "..."}]}</domain>
A rule with a code refuses "if WORDS", one without has the effect that "WORDS". Then rows to begin with, and calls that
show each rule: one that it refuses, one of the same kind that is let through, one that shows each effect.
<start>{"TABLE": [{"COLUMN": "VALUE"}]}</start>
<probes>[[["create", "TABLE", {"COLUMN": "VALUE"}]], [["create", "TABLE", {}], ["delete", "TABLE", {}]]]</probes>
{before}"""
SETTING = """A service goes by this policy:
{policy}
Its tables: {tables}

Write rows for all tables, at the edge of the rules: places of which one is left, a balance that just suffices, a day
that is the last; beside them substitutes, and others who have nothing to do with it. And a client who is one of them,
of kind {kind}: his name, how he speaks, and what he wants, which is two changes at least, and of which his first choice
is refused.
<start>{"TABLE": [{"COLUMN": "VALUE"}]}</start>
<persona>{"name": "...", "speaks": "...", "wants": "..."}</persona>
{before}"""
MENU = """You advise on this service. Its policy:
{policy}
Its tables now: {state}
So far:
{talk}
Tell the client {name} what is possible now, in words, without ids, one option a line, between <menu> and </menu>."""
CHOICE = """You are {name}. You speak like this: {speaks}. You want: {wants}
So far:
{talk}
You are offered:
{menu}
Say in a sentence what you would like to be done next; if you have got all that can be had, say only DONE."""
ACTION = """You work for this service. Its tools: {tools}
Its tables now: {state}
The client {name} says: {said}
Write the call of one tool that does it between <call> and </call>, as ["create", "TABLE", {"COLUMN": "VALUE"}]."""
OPENING = """A client, {name}, who speaks like this: {speaks}, wanted: {wants}
This came of it:
{talk}
Write what he says at the beginning so that somebody who knows the tables and the policy comes to the same: what he
wants, in which order, and what he takes where that is refused; in his own words, without ids, without reasons, and
without naming anything that only the end has. Write it between <said> and </said>."""


def _written(by: str, prompt: str) -> Asking:
    [[reply]] = yield [Want(prompt, 1, by=by)]
    return reply.text


def _json(text: str, tag: str) -> Any:
    found = pieces(text, tag)
    if not found:
        raise BadDomain(f"nothing stands between <{tag}> and </{tag}>")
    try:
        return json.loads(found[-1])
    except ValueError as error:
        raise BadDomain(f"{tag} is no JSON: {error}") from None


def _again(last: str, wrong: str) -> str:
    return f"The last reply was\n{last}\nand has to be written again: {wrong}" if wrong else ""


@dataclass(frozen=True, slots=True)
class Architect:
    """Makes of a task's question, a word for a service, a domain whose rules have been shown to hold.

    A model writes the policy; then tables, rules as triggers, a start and probes. What SQLite does not take, and what
    no probe shows (:func:`~assay.environments.shop.written.unproven`), goes back to it, up to ``tries`` times.
    ``meta`` has ``policy`` and ``domain``.

    Args:
        tries: of the domain, at least 1.
        by: role of who writes.

    Raises:
        UsageError: ``tries`` below 1.
    """

    tries: int = 5
    by: str = "writer"

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise UsageError(f"step architect: tries {self.tries} must be at least 1")

    def __call__(self, task: Task, here: Here) -> Work:
        found = pieces((yield from _written(self.by, filled(POLICY, seed=task.question))), "policy")
        if not found:
            return Dropped("no policy is written")
        policy, last, wrong = found[-1].strip(), "", ""
        for _ in range(self.tries):
            last = yield from _written(self.by, filled(DOMAIN, policy=policy, before=_again(last, wrong)))
            try:
                domain = read_domain(_json(last, "domain"))
                probes = _json(last, "probes")
                if not isinstance(probes, list) or not all(isinstance(probe, list) for probe in probes):
                    raise BadDomain("probes are a list of lists of calls")
                wrong = "; ".join(unproven(domain, _json(last, "start"), probes))
            except BadDomain as error:
                wrong = str(error)
            if not wrong:
                return noted(task, policy=policy, domain=plain_domain(domain))
        return Dropped("no domain that holds is written")


@dataclass(frozen=True, slots=True)
class Designer:
    """Has a model write ``n`` starts at the edge of a domain's rules, each with a client of another kind.

    Args:
        n: of them, of the kinds in :data:`KINDS` in turn.
        tries: of each, at least 1.
        by: role of who writes.

    Raises:
        UsageError: a number below 1.
    """

    n: int = 4
    tries: int = 3
    by: str = "writer"

    def __post_init__(self) -> None:
        if min(self.n, self.tries) < 1:
            raise UsageError(f"step designer: n {self.n} and tries {self.tries} must be at least 1")

    def __call__(self, task: Task, here: Here) -> Work:
        domain = domain_of(task.meta["domain"])
        tables = json.dumps({t.name: [c.name for c in t.columns] for t in domain.tables})
        out = []
        for number in range(self.n):
            kind, last, wrong = KINDS[number % len(KINDS)], "", ""
            for _ in range(self.tries):
                shown = {"policy": task.meta["policy"], "tables": tables, "kind": kind}
                last = yield from _written(self.by, filled(SETTING, **shown, before=_again(last, wrong)))
                try:
                    start, persona = _json(last, "start"), _json(last, "persona")
                    wrong = _persona_wrong(persona)
                    state = Database(domain, begun(domain, start)).tables()
                except BadDomain as error:
                    wrong = str(error)
                if not wrong:
                    meta = {"start": state, "persona": {**persona, "kind": kind}}
                    out.append(child(task, "designer", number, meta=meta))
                    break
        return out or Dropped("no start is written")


def _persona_wrong(persona: Any) -> str:
    needed = ("name", "speaks", "wants")
    whole = isinstance(persona, dict) and all(isinstance(persona.get(key), str) and persona[key] for key in needed)
    return "" if whole else f"a persona has {', '.join(needed)}, each a text"


@dataclass(frozen=True, slots=True)
class Explorer:
    """Has models talk a start to its end, on the real database, and keeps what holds as a task for ``shop``.

    In each turn an adviser, who sees policy and tables, offers what is possible; a client, who sees his wishes alone,
    says what he would like; and the staff makes the call, which the database lets through or refuses. Where the client
    is done, a writer says what he would have said at the beginning. Kept are tasks of two changes or more, in which a
    rule has refused something, whose calls replayed on a fresh database lead to the very goal, and whose text has no id
    and no name that only the goal has (:func:`spoilers`).

    Args:
        turns: of the talk, at most.
        by: roles of adviser, client, staff and writer.

    Raises:
        UsageError: ``turns`` below 2.
    """

    turns: int = 8
    by: tuple[str, str, str, str] = ("writer", "client", "writer", "writer")

    def __post_init__(self) -> None:
        if self.turns < 2:
            raise UsageError(f"step explorer: turns {self.turns} must be at least 2")

    def __call__(self, task: Task, here: Here) -> Work:
        domain, start, persona = domain_of(task.meta["domain"]), task.meta["start"], task.meta["persona"]
        database = Database(domain, begun(domain, start))
        made: list[Call] = []
        refused: list[str] = []
        talk: list[str] = []
        try:
            for _ in range(self.turns):
                say = yield from self._turn(task, domain, database, persona, talk)
                if say is None:
                    break
                try:
                    call = read_call(domain, _json(say, "call"))
                    database.call(*call)
                except (BadDomain, ToolError) as error:
                    refused += [str(error)] if isinstance(error, ToolError) else []
                    talk.append(f"Staff: refused: {error}")
                else:
                    talk.append("Staff: done")
                    made += [call] if call[0] != "read" else []
            goal = database.tables()
        finally:
            database.close()
        if not replays(domain, start, goal, made, refused):
            return Dropped("fewer than two changes, no refusal by a rule, or no replay to the goal")
        shown = {key: persona[key] for key in ("name", "speaks", "wants")}
        text = yield from _written(self.by[3], filled(OPENING, **shown, talk="\n".join(talk)))
        said = " ".join((pieces(text, "said") or [""])[-1].split())
        if not said:
            return Dropped("nothing is said at the beginning")
        if spoilers(said, domain, start, goal):
            return Dropped("what is said tells what only the tables know")
        facts = {"start": start, "goal": goal, "keys": domain.keys, "volatile": domain.volatile}
        meta = {"calls": made, "refused": refused, "wishes": said, "details": ()}
        return child(task, "explorer", 0, prompt=f"{HOW}\n\n{said}", reference=facts, kind="state", meta=meta)

    def _turn(
        self, task: Task, domain: Domain, database: Database, persona: Mapping[str, str], talk: list[str]
    ) -> Generator[list[Want], list[list[Reply]], str | None]:
        """Add a turn to the talk; return what the staff writes, or nothing where the client is done."""
        state, name = json.dumps(database.tables(), ensure_ascii=False), persona["name"]
        so_far = "\n".join(talk) or "(nothing)"
        asked = filled(MENU, policy=task.meta["policy"], state=state, talk=so_far, name=name)
        menu = "\n".join(lines((yield from _written(self.by[0], asked)), "menu"))
        shown = {key: persona[key] for key in ("name", "speaks", "wants")}
        said = (yield from _written(self.by[1], filled(CHOICE, **shown, talk=so_far, menu=menu))).strip()
        if not said or re.fullmatch(r"\W*DONE\W*", said):
            return None
        talk += [f"Adviser: {menu}", f"{name}: {said}"]
        tools = "\n".join(f"{tool.name}: {tool.description}" for tool in domain.tools())
        return (yield from _written(self.by[2], filled(ACTION, tools=tools, state=state, name=name, said=said)))


def spoilers(text: str, domain: Domain, start: Tables, goal: Tables) -> list[str]:
    """Return what a text tells that a client does not know: ids, and texts of the tables that only the goal has."""
    ids = told_ids(domain, start, goal)
    choices = {one for table in domain.tables for column in table.columns for one in column.choices}
    before, after = (
        {v for rows in state.values() for row in rows for v in row.values() if isinstance(v, str)}
        for state in (start, goal)
    )
    hidden = ids | (after - before - choices)
    return sorted(one for one in hidden if one and re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text))


def is_written(task: Task) -> bool:
    """Whether a task is one of these."""
    return "domain" in task.meta and "calls" in task.meta


def calls_of(task: Task) -> Sequence[Call]:
    """Return the calls that led to the goal."""
    return [(operation, table, dict(arguments)) for operation, table, arguments in task.meta["calls"]]
