"""Settings: switches on pages of their own, levels, a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from assay.environments.screens.phone import Phone, Script, go
from assay.environments.screens.widgets import Row, Widget

PAGES: dict[str, tuple[str, ...]] = {
    "Network": ("Wi-Fi", "Bluetooth", "Mobile data", "Hotspot", "Airplane mode", "VPN"),
    "Display": ("Dark theme", "Auto-rotate", "Night light", "Adaptive brightness", "Always-on clock"),
    "Sound": ("Silent mode", "Vibrate on touch", "Charging sounds", "Dial tones"),
    "Privacy": ("Location", "Camera access", "Microphone access", "Usage statistics", "Lock screen"),
    "Apps": ("Automatic updates", "Unknown sources", "Notification dots"),
    "Battery": ("Battery saver", "Adaptive battery", "Battery percentage"),
    "Accessibility": ("Large text", "High contrast", "Captions", "Magnifier"),
}
LEVELS = {"Display": "Brightness", "Sound": "Volume"}
MOST = 9
NAMES = ("Heron", "Wren", "Kestrel", "Swift", "Plover", "Dunlin")


def key(label: str) -> str:
    """Return the id of what has a label."""
    return label.lower().replace(" ", "_").replace("-", "_")


class Settings:
    """Pages of switches; two have a level from 0 to 9; the device has a name."""

    name = "settings"

    def setup(self, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any], str]:
        labels = [label for page in PAGES.values() for label in page]
        switches = {key(label): bool(rng.integers(2)) for label in labels}
        levels = {key(label): int(rng.integers(MOST + 1)) for label in LEVELS.values()}
        data = {"switches": switches, "levels": levels, "device": str(rng.choice(NAMES))}
        goal, wants = data, []
        for kind in rng.choice(["switch", "level", "device"], int(rng.integers(1, 3)), False, [0.6, 0.2, 0.2]):
            if kind == "switch":
                label = str(rng.choice(labels))
                now = not switches[key(label)]
                goal = {**goal, "switches": {**switches, key(label): now}}
                wants.append(f"turn {'on' if now else 'off'} {label}")
            elif kind == "level":
                label = str(rng.choice(list(LEVELS.values())))
                level = int(rng.choice([n for n in range(MOST + 1) if n != levels[key(label)]]))
                goal = {**goal, "levels": {**levels, key(label): level}}
                wants.append(f"set {label} to {level}")
            else:
                device = str(rng.choice([n for n in NAMES if n != data["device"]]))
                goal = {**goal, "device": device}
                wants.append(f'name the device "{device}"')
        text = " and ".join(wants)
        return data, goal, f"{text[0].upper()}{text[1:]}."

    def view(self, phone: Phone) -> tuple[str, list[Row]]:
        kind, *of = phone.page
        if kind == "home":
            rows: list[Row] = [(Widget(key(page), "item", page, do=go("page", page)),) for page in PAGES]
            return "Settings", [*rows, (Widget("about", "item", "About", do=go("about")),)]
        if kind == "about":
            save = Widget("save", "button", "Save", do=_named, enabled=bool(phone.draft("device").strip()))
            device = Widget("device", "field", phone.draft("device"))
            return "About", [(Widget("now", "text", f"Device name: {phone.data['device']}"),), (device, save)]
        page = str(of[0])
        switches = phone.data["switches"]
        rows = [(Widget(key(x), "switch", x, switches[key(x)], _flipped(key(x))),) for x in PAGES[page]]
        if page in LEVELS:
            id = key(LEVELS[page])
            level = phone.data["levels"][id]
            less = Widget(f"less_{id}", "button", "-", do=_levelled(id, level - 1), enabled=level > 0)
            more = Widget(f"more_{id}", "button", "+", do=_levelled(id, level + 1), enabled=level < MOST)
            rows.append((less, Widget(id, "text", f"{LEVELS[page]}: {level}"), more))
        return page, rows

    def plan(self, at: Script, goal: Mapping[str, Any]) -> None:
        for page, labels in PAGES.items():
            data = at.phone.data
            wrong = [key(x) for x in labels if data["switches"][key(x)] != goal["switches"][key(x)]]
            level = key(LEVELS.get(page, ""))
            steps = goal["levels"][level] - data["levels"][level] if level else 0
            if wrong or steps:
                at.home()
                at.click(key(page), *wrong, *[f"{'more' if steps > 0 else 'less'}_{level}"] * abs(steps))
        if at.phone.data["device"] != goal["device"]:
            at.home()
            at.click("about")
            at.type("device", goal["device"])
            at.click("save")


def _flipped(id: str) -> Callable[[Phone], Phone]:
    return lambda phone: phone.stored(switches={**phone.data["switches"], id: not phone.data["switches"][id]})


def _levelled(id: str, level: int) -> Callable[[Phone], Phone]:
    return lambda phone: phone.stored(levels={**phone.data["levels"], id: level})


def _named(phone: Phone) -> Phone:
    return phone.stored("Saved", device=phone.draft("device").strip())
