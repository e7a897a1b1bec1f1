"""Places and times: boxes, points, intervals."""

from __future__ import annotations

from fuzz.entry import Case, entry

BOXES = ['{"bbox_2d": [10, 20, 110, 220]}', "[10, 20, 110, 220]", "<box>(10,20),(110,220)</box>"]
for variant, options in (("", {}), ("/giou", {"score": "giou", "form": "xywh", "reference_form": "xyxy"})):
    answers = BOXES if not variant else ["[10, 20, 100, 200]"]
    entry(
        f"box{variant}",
        soup="coordinates",
        options=options,
        cases=[Case([10, 20, 110, 220], answers), Case({"box": [-5, -5, -1, -1]}, [] if variant else ["-5 -5 -1 -1"])],
    )
entry(
    "box/relative",
    soup="coordinates",
    options={"score": "ramp", "units": "per_mille"},
    cases=[Case({"box": [10, 20, 110, 220], "size": [1000, 1000]}, BOXES)],
)
for score in ("f1", "iou"):
    entry(
        f"boxes/{score}",
        soup="coordinates",
        options={"score": score},
        cases=[
            Case(
                [[0, 0, 10, 10], [20, 20, 40, 40]],
                ["[[0,0,10,10],[20,20,40,40]]", "0,0,10,10 and [20, 20, 40, 40]"][:1],
            ),
            Case({"boxes": []}, ["There are none."]),
        ],
    )
entry(
    "point",
    soup="coordinates",
    cases=[
        Case({"box": [0, 0, 100, 50]}, ["(50, 25)", '{"point_2d": [1, 2]}', "<point>3 4</point>"]),
        Case({"point": [700, 800], "box": [690, 790, 710, 810]}, ["[700, 800]"]),
    ],
)
entry(
    "point/gaussian",
    soup="coordinates",
    options={"proximity": "gaussian", "tolerance": 5.0},
    cases=[Case([30, 40], ["(33, 41)"])],
)
entry(
    "point/tiers",
    soup="coordinates",
    options={"proximity": "tiers", "tiers": ((1.0, 1.0), (10.0, 0.5))},
    cases=[Case({"point": [30, 40]}, ["(30, 40)"])],
)
for variant, options in (("", {}), ("/first", {"first": True, "threshold": 0.9})):
    entry(
        f"interval{variant}",
        soup="times",
        options=options,
        cases=[
            Case([65, 80], ["1:05 - 1:20", "from 65 s to 80 s", "[65, 80]"]),
            Case("0:00:10 to 0:00:20", ["10 - 20"]),
            *([] if variant else [Case([[1, 2], [3, 4]], ["1-2, 3-4"])]),
        ],
    )
entry(
    "gesture",
    soup="coordinates",
    marked=False,
    cases=[
        Case(
            {"gesture": "click save", "box": [100, 200, 300, 400]}, ["click save", "So: <action>click 0.2 0.3</action>"]
        ),
        Case({"gesture": 'type "a word"', "focus": "name"}, ['type "a word"', '<action>type name "a word"</action>']),
        Case({"gesture": "swipe up"}, ["I look further down.\nswipe up"]),
    ],
)
RING = {"path": "RD", "cells": [["RD", "LD"], ["RU", "LU"]], "start": [0, 0], "goal": [1, 1]}
for variant, options in (("", {}), ("/simulate", {"mode": "simulate"})):
    entry(
        f"path_prefix{variant}",
        options=options,
        marked=False,
        cases=[Case(RING, ["<think>1 right, 1 down</think><|right|><|down|>", "</think> <|right|> <|down|>"])],
    )
STEPS = {
    "skills": ["Open the [object].", "Put the [object] into the [location]."],
    "plan": ["Open the box.", "Put the x into the box."],
}
for variant, options in (("", {}), ("/max", {"measure": "max", "partial": (0.4, 0.4, 0.2)})):
    entry(
        f"plan_match{variant}",
        options=options,
        marked=False,
        cases=[Case(STEPS, ["<answer>1. open the box\n2. put the x into the box.</answer>"])],
    )
