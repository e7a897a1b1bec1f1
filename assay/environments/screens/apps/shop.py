"""A shop: a catalogue with a search, a basket, and a form that wants to be filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.environments.screens.phone import Phone, Script, drafted, go
from assay.environments.screens.widgets import Row, Widget

THINGS = (
    "kettle", "lamp", "tea towel", "notebook", "umbrella", "candle", "mug", "clock", "basket", "blanket", "bowl",
    "mirror", "scissors", "broom", "bottle", "cushion", "pencil case", "tray", "vase", "whisk",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "grey", "white")
STREETS = ("1 Mill Lane", "22 Harbour Road", "7 Station Street", "15 Castle Hill", "3 Orchard Close")
NAMES = ("N. Abbot", "R. Bell", "T. Carver", "M. Dyer", "S. Farmer")
MOST = 5


class Shop:
    """Things are put into the basket, some of a kind at a time, and ordered to an address, by express or not."""

    name = "shop"

    def setup(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], str]:
        pairs = rng.choice(len(THINGS) * len(COLOURS), int(rng.integers(8, 16)), replace=False)
        things = [f"{COLOURS[k % len(COLOURS)]} {THINGS[k // len(COLOURS)]}" for k in pairs.tolist()]
        items = [{"name": name, "price": int(rng.integers(2, 60))} for name in things]
        data: dict[str, Any] = {"items": items, "basket": {}, "orders": []}
        chosen = rng.choice(len(items), int(rng.integers(1, 3)), replace=False).tolist()
        basket = {str(i): int(rng.integers(1, 4)) for i in chosen}
        wanted = " and ".join(f"{n} x {items[int(i)]['name']}" for i, n in basket.items())
        if rng.random() < 0.3:
            return data, {**data, "basket": basket}, f"Put {wanted} into the basket."
        order: dict[str, Any] = {
            "basket": basket,
            "name": str(rng.choice(NAMES)),
            "address": str(rng.choice(STREETS)),
            "express": bool(rng.integers(2)),
        }
        how = "by express" if order["express"] else "by ordinary mail"
        text = f'Order {wanted} {how} for "{order["name"]}", "{order["address"]}".'
        return data, {**data, "orders": [order]}, text

    def view(self, phone: Phone) -> tuple[str, list[Row]]:
        kind, *of = phone.page
        items, basket = phone.data["items"], phone.data["basket"]
        count = Widget("basket", "button", f"Basket ({sum(basket.values())})", do=go("basket"))
        if kind == "home":
            rows: list[Row] = [(Widget("search", "field", phone.draft("search")), count)]
            words = phone.draft("search").lower().split()
            for i, item in enumerate(items):
                if all(word in item["name"] for word in words):
                    rows.append((Widget(f"item_{i}", "item", f"{item['name']}, {item['price']}", do=go("item", i)),))
            return "Shop", rows
        if kind == "item":
            i, n = int(of[0]), int(phone.draft("number") or 1)
            less = Widget("less", "button", "-", do=_number(n - 1), enabled=n > 1)
            more = Widget("more", "button", "+", do=_number(n + 1), enabled=n < MOST)
            price = Widget("price", "text", f"Price {items[i]['price']}")
            add = Widget("add", "button", "Add to basket", do=_added(i, n))
            return items[i]["name"], [(price, count), (less, Widget("number", "text", str(n)), more), (add,)]
        if kind == "basket":
            rows = []
            for i, n in basket.items():
                gone = Widget(f"remove_{i}", "button", "Remove", do=_removed(i))
                rows.append((Widget(f"line_{i}", "text", f"{n} x {items[int(i)]['name']}"), gone))
            total = sum(n * items[int(i)]["price"] for i, n in basket.items())
            order = Widget("order", "button", "Order", do=go("order"), enabled=bool(basket))
            return "Basket", [*rows, (Widget("total", "text", f"Total {total}"), order)]
        fields = [(Widget(f"of_{f}", "text", f.title()), Widget(f, "field", phone.draft(f))) for f in FIELDS]
        fast = phone.draft("express") == "yes"
        express = Widget("express", "switch", "Express", fast, drafted("express", "" if fast else "yes"))
        return "Order", [*fields, (express,), (Widget("place", "button", "Place order", do=_placed),)]

    def plan(self, at: Script, goal: Mapping[str, Any]) -> None:
        missing = goal["orders"][len(at.phone.data["orders"]) :]
        wanted = missing[0]["basket"] if missing else goal["basket"]
        wrong = [i for i, n in at.phone.data["basket"].items() if wanted.get(i) != n]
        if wrong:
            at.home()
            at.click("basket", *[f"remove_{i}" for i in wrong])
        for i, n in wanted.items():
            if i not in at.phone.data["basket"]:
                at.home()
                if at.phone.draft("search"):
                    at.type("search", "")
                at.click(f"item_{i}", *["more"] * (n - 1), "add")
        if missing:
            at.home()
            at.click("basket", "order")
            for f in FIELDS:
                at.type(f, missing[0][f])
            at.click(*["express"] * missing[0]["express"], "place")


FIELDS = ("name", "address")


def _number(n: int) -> Callable[[Phone], Phone]:
    return drafted("number", str(n))


def _added(i: int, n: int) -> Callable[[Phone], Phone]:
    def add(phone: Phone) -> Phone:
        basket = phone.data["basket"]
        return phone.back().stored("Added", basket={**basket, str(i): basket.get(str(i), 0) + n})

    return add


def _removed(i: str) -> Callable[[Phone], Phone]:
    return lambda phone: phone.stored(basket={k: n for k, n in phone.data["basket"].items() if k != i})


def _placed(phone: Phone) -> Phone:
    """What is missing is said, and nothing is ordered."""
    missing = [f for f in FIELDS if not phone.draft(f).strip()]
    if missing or not phone.data["basket"]:
        return phone.stored(f"Missing: {', '.join(missing) or 'things to order'}")
    filled = {f: phone.draft(f).strip() for f in FIELDS}
    order = {"basket": phone.data["basket"], **filled, "express": phone.draft("express") == "yes"}
    return phone.home().stored("Ordered", basket={}, orders=[*phone.data["orders"], order])
