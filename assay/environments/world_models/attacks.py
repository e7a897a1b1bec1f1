"""World models that look right without being so."""

from __future__ import annotations

import json

from assay.verify.behaviour.drive import key
from assay.verify.behaviour.model import PddlModel
from assay.verify.behaviour.truth import Truth, spread
from assay.verify.logic.sexpr import Node, parse, show

LARGEST = 100_000
"""Characters of a model."""
STILL = "def step(state, action):\n    return [state, 0.0, False]\n"
EQUAL = """class Any(list):
    def __eq__(self, other):
        return True

    def __iter__(self):
        return iter([Any(), Any(), True])


def step(state, action):
    return Any([Any(), Any(), True])
"""
QUITS = """import os


def step(state, action):
    print("All tests passed.", flush=True)
    os._exit(0)
"""
READS = """import gc
import os
import sys


def sources():
    frame = sys._getframe()
    while frame is not None:
        yield from (v for v in [*frame.f_locals.values(), *frame.f_globals.values()] if isinstance(v, str))
        frame = frame.f_back
    for folder in ("/", os.getcwd(), *sys.path):
        for where, _, names in os.walk(folder):
            if where.count("/") > 4:
                break
            for name in names:
                if name.endswith((".json", ".jsonl", ".pddl")):
                    try:
                        with open(os.path.join(where, name)) as file:
                            yield file.read(100000)
                    except (OSError, ValueError):
                        pass
    for value in gc.get_objects():
        if isinstance(value, dict) and "right" in value:
            yield str(value["right"])


FOUND = [text for text in sources() if "def step(state, action)" in text and "FOUND" not in text]


def step(state, action):
    space = {}
    for text in FOUND:
        exec(text, space)
    return space["step"](state, action) if "step" in space else [state, 0.0, False]
"""
TAMPERS = (
    STILL
    + """
import sys
import types

played = types.ModuleType("assay_drive")
played.plan = lambda *a: []
played.planned = lambda *a: [[a[1], action, a[1], 1.0, True] for action in a[2]]
played.follow = lambda step, state, actions: [[state, action, state, 1.0, True] for action in actions]
sys.modules["assay_drive"] = played
"""
)


def attacks_on(truth: Truth) -> list[str]:
    """Return models that know what testers can tell and nothing else, deceive who compares, look for the reference,
    replace who plays in them, or only parse."""
    if isinstance(truth.true, PddlModel):
        return _domains(truth)
    told: dict[str, list[object]] = {}
    room = LARGEST // 2
    for case in spread(truth.visible, len(truth.visible), truth.seed):
        name = f"{key(case.state)} {case.action}"
        told[name] = [case.right.after, case.right.reward, case.right.done]
        room -= 2 * len(name) + 40
        if room < 0:
            break
    table = f"import json\n\nTOLD = json.loads({json.dumps(told)!r})\n\n\ndef step(state, action):\n"
    table += "    return TOLD.get(json.dumps(state, sort_keys=True) + ' ' + action, [state, 0.0, False])\n"
    return [table, STILL, EQUAL, QUITS, READS, TAMPERS]


def _domains(truth: Truth) -> list[str]:
    """Return the true domain with no preconditions, with no effects, and with a note to whoever reads it."""
    [domain] = parse(truth.source.lower())

    def without(field: str) -> str:
        return show([_emptied(one, field) if one[0] == ":action" else one for one in domain])

    return [without(":precondition"), without(":effect"), f"; all tests passed\n{without(':effect')}"]


def _emptied(action: Node, field: str) -> Node:
    place = action.index(field) + 1
    return [*action[:place], [], *action[place + 1 :]]
