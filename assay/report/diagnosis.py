"""A diagnosis of training in words: sentences, rows of tables, and lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from assay.diagnose.change_spectrum import Spectrum
from assay.diagnose.diagnosis import Diagnosis
from assay.diagnose.readings import Readings
from assay.evaluate.paired import Change
from assay.report import format as show
from assay.statistics.intervals import Interval
from assay.statistics.support import Support

SHARES = ("truncated",)
NAMES = {
    "score": ("score", "mean over samples"),
    "length": ("length", "tokens of a response"),
    "truncated": ("truncated", "share of responses cut off"),
    "answer_entropy": ("answer entropy", "nats, of the final answers to a task"),
    "token_entropy": ("token entropy", "nats, of what each token was drawn from"),
    "answers": ("distinct answers", "to a task"),
    "right_answers": ("distinct right answers", "to a task"),
    "unsure": ("p(1 − p)", "variance of the verdict within a task: what groups of samples can teach"),
}
RATES = {
    "retention": ("retention (SRR)", "of what was within reach before, still is"),
    "discovery": ("discovery (NDR)", "of what is within reach now, is new"),
    "dynamics": ("dynamics (SDS)", "harmonic mean of the two"),
    "change": ("net change (NSCR)", "gained less lost, of all within reach; below zero the support shrank"),
}


def verdict(change: Change) -> str:
    """Say which way a difference goes, if its interval leaves out zero."""
    return "up" if change.difference.low > 0 else "down" if change.difference.high < 0 else ""


def summary(d: Diagnosis) -> list[str]:
    """What can be said in a few sentences, and no more than the intervals allow."""
    c = d.crossing
    told = [f"pass@1 {_went(d.curve[0])}"]
    if c.most > 1:
        told.append(f"pass@{c.most} {_went(d.curve[-1])}")
    ends = f"{' and '.join(told)}."
    said = {
        "crosses": "The trained model is right more often in one try, and finds fewer solutions in many: it is surer "
        f"of a part of what it could do. The curves cross at k = {crossing_words(d)}.",
        "after": "The trained model solves more, in one try and in many.",
        "before": "The trained model solves less, in one try and in many.",
        "rises": "The trained model is right less often in one try, and finds more solutions in many.",
        "undecided": "At least one of these changes may be chance, since its interval holds zero: more tasks or "
        "samples would tell whether the model got better, and whether its curve crosses the old one.",
    }
    s = d.support
    moved = (
        f"Of {show.count(d.tasks)} tasks, {show.count(s.counts.preserved)} were and are solved by one of {d.k} samples,"
        f" {show.count(s.counts.lost)} were lost, {show.count(s.counts.gained)} gained and "
        f"{show.count(s.counts.out_of_reach)} are out of reach of both."
    )
    low, high = s.change.low, s.change.high
    net = "Net, the support shrank." if high < 0 else "Net, the support grew." if low > 0 else ""
    return [f"{ends} {said[c.verdict]}", " ".join(x for x in (moved, net) if x)]


def _went(c: Change) -> str:
    r = row("", "", c, True)
    return f"went from {r['before']} to {r['after']} ({r['difference']} points, 95% {r['range']})"


def crossing_words(d: Diagnosis) -> str:
    """The crossing with its interval: ``16 [9, 32]``, ``beyond 64``."""
    c = d.crossing
    value = f"beyond {c.most}" if c.k is None else str(c.k)
    ends = [f"{x:.0f}" if math.isfinite(x) else f"beyond {c.most}" for x in (c.low, c.high)]
    return value if ends[0] == ends[1] == value else f"{value} [{ends[0]}, {ends[1]}]"


def rows(d: Diagnosis) -> list[dict[str, str]]:
    """Every measure with its values before and after and the difference, in words."""
    out = [row(f"pass@{k}", "", c, True) for k, c in zip(d.ks, d.curve, strict=True)]
    out += [row(*NAMES[name], c, name in SHARES) for name, c in d.measures.items()]
    if d.readings is not None:
        r = d.readings
        named = [
            ("− log p, old responses", "nats per token of what the model before wrote, under each", r.own),
            ("− log p, new responses", "nats per token of what the model after wrote, under each", r.trained),
            ("− log p, solutions", "nats per token of the tasks' worked solutions, under each", r.solutions),
        ]
        out += [row(name, note, c, False) for name, note, c in named if c is not None and c.tasks]
    return out


def row(name: str, note: str, c: Change, share: bool) -> dict[str, str]:
    def value(x: float) -> str:
        return show.percent(x) if share else show.number(x)

    def moved(x: float) -> str:
        return show.points(x) if share else ("+" if x > 0 else "") + show.number(x)

    i = c.difference
    return {
        "name": name,
        "note": note,
        "before": value(c.before.value),
        "before_range": f"{value(c.before.low)} to {value(c.before.high)}",
        "after": value(c.after.value),
        "after_range": f"{value(c.after.low)} to {value(c.after.high)}",
        "difference": moved(i.value),
        "range": f"[{moved(i.low)}, {moved(i.high)}]",
        "verdict": verdict(c),
    }


def rates(d: Diagnosis) -> list[dict[str, str]]:
    return [
        {"name": name, "note": note, **{of: _share(getattr(getattr(d, of), key)) for of in ("support", "answers")}}
        for key, (name, note) in RATES.items()
    ]


def table(d: Diagnosis) -> list[str]:
    """Return the diagnosis as lines of text."""
    lines = [f"before: {d.before}", f"after:  {d.after}", f"{d.tasks} tasks, {d.k} samples of each compared", ""]
    lines += [*summary(d), ""]
    cells: list[tuple[str, ...]] = [("", "before", "after", "difference", "95% interval", "")]
    cells += [tuple(r[k] for k in ("name", "before", "after", "difference", "range", "verdict")) for r in rows(d)]
    lines += [*_aligned(cells), ""]
    s, a = d.support.counts, d.answers.counts
    cells = [("support", "tasks", "right answers")]
    for name, n in counts_of(s).items():
        cells.append((name, show.count(n), "" if name == "out of reach" else show.count(counts_of(a)[name])))
    cells += [(r["name"], r["support"], r["answers"]) for r in rates(d)]
    lines += [*_aligned(cells), ""]
    share = show.percent(d.crossing.share)
    lines += [f"the model before catches up at k = {crossing_words(d)}, within {d.k} in {share} of the resamples", ""]
    if d.readings is not None:
        if said := facts(d.readings):
            lines += [*said, ""]
        if d.readings.aids:
            head = ("aid", "level", "tasks", "before", "with", "after", "with", "gains differ by")
            lines += [*_aligned([head, *(tuple(r.values()) for r in aid_rows(d))]), ""]
    if d.weights is not None:
        lines += [*_aligned(weight_rows(d)), ""]
    if d.spectrum is not None:
        lines += [spectrum_words(d.spectrum), ""]
    return [*lines, *d.notes]


def facts(r: Readings) -> list[str]:
    """What the models say of each other, in sentences."""
    out = []
    if r.familiar is not None:
        out.append(
            "A response of the model after is likelier under the model before than one of that model's own with "
            f"probability {_share(r.familiar)}: at 50% or above, training draws on what was there already; towards 0%, "
            "on what was unlikely."
        )
    if r.divergence is not None:
        words = [f"{show.number(i.value)} [{show.number(i.low)}, {show.number(i.high)}]" for i in r.divergence]
        out.append(
            f"The models diverge by {words[1]} nats per token on responses of the model after, KL(after‖before), and "
            f"by {words[0]} on those of the model before, KL(before‖after)."
        )
    return out


def _share(i: Interval) -> str:
    return f"{show.percent(i.value)} [{show.percent(i.low)}, {show.percent(i.high)}]".replace("-", show.MINUS)


def aid_rows(d: Diagnosis) -> list[dict[str, str]]:
    assert d.readings is not None
    out = []
    for a in d.readings.aids:
        g = a.gain.difference
        out.append(
            {
                "aid": a.aid,
                "level": a.level or "all",
                "tasks": show.count(a.gain.tasks),
                "before": show.percent(a.without.before.value),
                "before_with": f"{show.percent(a.with_.before.value)} ({_points(a.gain.before)})",
                "after": show.percent(a.without.after.value),
                "after_with": f"{show.percent(a.with_.after.value)} ({_points(a.gain.after)})",
                "differ": f"{show.points(g.value)} [{show.points(g.low)}, {show.points(g.high)}]",
            }
        )
    return out


def _points(i: Interval) -> str:
    return f"{show.points(i.value)} [{show.points(i.low)}, {show.points(i.high)}]"


def weight_rows(d: Diagnosis) -> list[tuple[str, ...]]:
    """The table of weights, its head first."""
    assert d.weights is not None
    turns = sorted(
        {k for row in d.weights.values() for k in row if k.startswith("rotation@")}, key=lambda k: int(k[9:])
    )
    head = ("matrices", "relative change", "unchanged", "spectral shift", *(f"turn of {k[9:]}" for k in turns))
    out: list[tuple[str, ...]] = [(*head, "changed: principal", "small", "any")]
    for kind, row in d.weights.items():
        angles = [f"{show.number(row[k])}°" if k in row else show.MISSING for k in turns]
        shares = [show.percent(row[k]) for k in ("principal", "low", "random")]
        numbers = [show.percent(row["relative"]), show.percent(row["sparsity"]), show.percent(row["spectral_shift"])]
        out.append((kind, *numbers, *angles, *shares))
    return out


def spectrum_words(s: Spectrum) -> str:
    at = s.shares.index(0.1) if 0.1 in s.shares else 0
    return (
        f"Of {s.matrices[1]} matrices {s.matrices[0]} changed. {show.percent(s.shares[at])} of the directions hold "
        f"{show.percent(s.change[at])} of the change's squared norm, and {show.percent(s.weights[at])} of the "
        f"weights'; the stable rank of the change is {show.percent(s.stable_rank)} of the full one."
    )


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    return [
        "  ".join(
            c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def counts_of(s: Support) -> dict[str, float]:
    names = ("preserved", "lost", "gained", "out_of_reach")
    return {name.replace("_", " "): getattr(s, name) for name in names}
