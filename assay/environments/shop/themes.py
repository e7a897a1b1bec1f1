"""Domains from policies: who takes what of which there is only so much, and the rules that somebody has made for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.environments.shop.domain import Column, Domain, Rule, Table

Clause = Literal["capacity", "price", "deadline", "tier", "limit", "status"]
CLAUSES: tuple[Clause, ...] = ("capacity", "price", "deadline", "tier", "limit", "status")
LIMIT = 3
"""Claims that one may have under the clause ``limit``."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Words for one pattern: an actor has claims on resources, in a quantity.

    Attributes:
        actor, resource, claim: names of the tables.
        unit: what is counted.
        categories: of resources.
    """

    name: str
    actor: str
    resource: str
    claim: str
    unit: str
    categories: tuple[str, ...]


THEMES = {
    t.name: t
    for t in (
        Theme("shop", "customer", "product", "purchase", "pieces", ("tea", "coffee", "cocoa", "honey")),
        Theme("theatre", "visitor", "show", "booking", "seats", ("opera", "ballet", "comedy", "concert")),
        Theme("library", "reader", "book", "loan", "copies", ("novel", "atlas", "memoir", "manual")),
        Theme("school", "student", "course", "registration", "places", ("drawing", "chemistry", "rowing", "latin")),
        Theme("airline", "passenger", "flight", "reservation", "seats", ("morning", "noon", "evening", "night")),
        Theme("hotel", "guest", "room", "stay", "nights", ("attic", "garden", "corner", "suite")),
        Theme("clinic", "patient", "session", "visit", "hours", ("massage", "speech", "vision", "sleep")),
        Theme("workshop", "member", "machine", "rental", "days", ("lathe", "loom", "press", "kiln")),
    )
}


def make_domain(theme: Theme, clauses: tuple[Clause, ...]) -> Domain:
    """Return the domain of a theme with some clauses of a policy.

    Args:
        clauses: ``capacity``: no more is taken than there is; ``price``: it is paid from a balance, and paid back;
            ``deadline``: nothing changes after a resource's last day; ``tier``: some resources are for actors of a
            tier; ``limit``: so many claims at most; ``status``: a claim is ``asked``, then ``confirmed``, and a
            confirmed one stays.
    """
    a, r, c = theme.actor, theme.resource, theme.claim
    actor = Table(
        a,
        (
            Column("id", "text"),
            Column("name", "text"),
            Column("balance", check="balance >= 0", settable=False),
            Column("tier", check="tier BETWEEN 0 AND 2", settable=False),
        ),
        ("id",),
    )
    resource = Table(
        r,
        (
            Column("id", "text"),
            Column("name", "text"),
            Column("category", "text", choices=theme.categories),
            Column("price", check="price >= 0"),
            Column("capacity", check="capacity >= 0"),
            Column("taken", check="taken >= 0", settable=False),
            Column("tier", check="tier BETWEEN 0 AND 2"),
            Column("last_day"),
        ),
        ("id",),
    )
    claim = Table(
        c,
        (
            Column(a, "text", references=a),
            Column(r, "text", references=r),
            Column("quantity", check="quantity BETWEEN 1 AND 9"),
            Column("status", "text", choices=("asked", "confirmed"), default="asked"),
        ),
        (a, r),
        ("create", "read", "update", "delete"),
        number=True,
    )
    calendar = Table("calendar", (Column("today"),), ("today",))
    made = [rule for clause in CLAUSES if clause in clauses for rule in _rules(clause, theme)]
    return Domain(theme.name, (actor, calendar, resource, claim), tuple(made))


def _rules(clause: Clause, theme: Theme) -> list[Rule]:
    a, r, c = theme.actor, theme.resource, theme.claim

    def of(column: str, row: str = "NEW") -> str:
        table = a if column in ("balance", "rank") else r
        return f"(SELECT {'tier' if column == 'rank' else column} FROM {table} WHERE id = {row}.{table})"

    def taken(amount: str, row: str) -> str:
        return f"UPDATE {r} SET taken = taken {amount} WHERE id = {row}.{r}"

    def paid(amount: str, row: str) -> str:
        return f"UPDATE {a} SET balance = balance {amount} * {of('price', row)} WHERE id = {row}.{a}"

    more = "NEW.quantity - OLD.quantity"
    if clause == "capacity":
        full = f"there are not so many {theme.unit} of the {r} left: capacity less taken"
        return [
            Rule(c, "insert", f"{of('taken')} + NEW.quantity > {of('capacity')}", full, "POLICY_FULL"),
            Rule(c, "update of quantity", f"{of('taken')} + {more} > {of('capacity')}", full, "POLICY_FULL"),
            Rule(c, "insert", taken("+ NEW.quantity", "NEW"), f"taken of the {r} rises by the quantity"),
            Rule(c, "update of quantity", taken(f"+ {more}", "NEW"), f"taken of the {r} changes with the quantity"),
            Rule(c, "delete", taken("- OLD.quantity", "OLD"), f"taken of the {r} falls by the quantity"),
        ]
    if clause == "price":
        poor = f"the {a}'s balance is below price times quantity"
        return [
            Rule(c, "insert", f"{of('balance')} < NEW.quantity * {of('price')}", poor, "POLICY_BALANCE"),
            Rule(
                c,
                "update of quantity",
                f"{of('balance')} < ({more}) * {of('price')}",
                f"the {a}'s balance is below price times what the quantity rises by",
                "POLICY_BALANCE",
            ),
            Rule(c, "insert", paid("- NEW.quantity", "NEW"), f"price times quantity is taken off the {a}'s balance"),
            Rule(c, "update of quantity", paid(f"- ({more})", "NEW"), "the difference is paid, or paid back"),
            Rule(c, "delete", paid("+ OLD.quantity", "OLD"), f"price times quantity is paid back to the {a}"),
        ]
    if clause == "deadline":
        return [
            Rule(
                c,
                event,
                f"{of('last_day', row)} < (SELECT today FROM calendar)",
                f"the last_day of the {r} is before today, which the calendar has",
                "POLICY_LATE",
            )
            for event, row in (("insert", "NEW"), ("update of quantity", "NEW"), ("delete", "OLD"))
        ]
    if clause == "tier":
        low = f"the tier of the {r} is above that of the {a}"
        return [Rule(c, "insert", f"{of('tier')} > {of('rank')}", low, "POLICY_TIER")]
    if clause == "limit":
        many = f"(SELECT COUNT(*) FROM {c} WHERE {a} = NEW.{a}) >= {LIMIT}"
        return [Rule(c, "insert", many, f"the {a} has {LIMIT} rows of {c} already", "POLICY_LIMIT")]
    confirmed = "OLD.status = 'confirmed'"
    stays = f"the {c} is confirmed"
    return [
        Rule(c, "insert", "NEW.status = 'confirmed'", "it is confirmed from the beginning", "POLICY_STATUS"),
        Rule(c, "update of status", confirmed, stays, "POLICY_CONFIRMED"),
        Rule(c, "update of quantity", confirmed, stays, "POLICY_CONFIRMED"),
        Rule(c, "delete", confirmed, stays, "POLICY_CONFIRMED"),
    ]
