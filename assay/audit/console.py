"""An audit as tables on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.audit.outcome import UNDECIDED
from assay.printable import printable
from assay.report.format import MISSING, count, number, percent
from assay.statistics.rate import Rate, rate_data

EXAMPLES = 5
"""Mistakes of each kind that are printed; all of them are in the report."""
ATTACKS = 12
"""Attacks that are printed, the most successful first."""


def print_audit(report: dict[str, Any], console: Console) -> None:
    """Print a report of :meth:`assay.audit.run.Audit.report`."""
    verifier, data, clean = report["verifier"], report["data"], report["clean"]
    _title(console, f"Audit of {verifier_words(verifier)}")
    if report["partial"]:
        console.print(_text(f"PARTIAL: {partial_words(report)}", "bold yellow"))
    console.print(
        _text(
            f"{data['name']}: {count(report['judged'])} of {count(data['rows'])} rows judged"
            f" ({count(clean['right'])} right, {count(clean['wrong'])} wrong)"
        )
    )
    _confusion(console, clean)
    _rates(console, clean)
    _categories(console, report["categories"])
    for name, c in report["aside"].items():
        console.print(_text(aside_words(name, c)))
    console.print(_text(latency_words(report["latency"])))
    for key, words in (("false_positives", "Wrong, but accepted"), ("false_negatives", "Right, but rejected")):
        _examples(console, words, report[key])
    for status in UNDECIDED:
        _examples(console, status.replace("_", " ").capitalize(), report[status], feedback=True)
    if report["against"] is not None:
        _against(console, verifier["name"], report["against"])
    if report["attack"] is not None:
        _attack(console, report["attack"])


def verifier_words(verifier: dict[str, Any]) -> str:
    """Name and options in one line."""
    return " ".join([verifier["name"], *(f"{k}={v!r}" for k, v in verifier["options"].items())])


def partial_words(report: dict[str, Any]) -> str:
    """What an interrupted audit reached."""
    stages = [f"{count(report['judged'])} of {count(report['data']['rows'])} rows"]
    if report["attack"] is not None:
        stages.append(f"{count(report['attack']['attempts'])} attack attempts")
    return f"interrupted after {' and '.join(stages)}; the rates are of what was judged"


def aside_words(name: str, c: dict[str, Any]) -> str:
    """What came of rows that count in no rate, in one line."""
    refused = rate_data(Rate.of(c["tn"], c["tn"] + c["fp"]))
    return f"Robustness to {name} marks (in no rate above): {rate_words(refused)} refused"


def rate_words(rate: dict[str, Any], counts: bool = True) -> str:
    """``3.1% [0.8, 7.7] 4/130``, the numbers aligned."""
    if rate["value"] is None:
        return f"{MISSING} (no rows)" if counts else MISSING
    text = f"{percent(rate['value'])} [{100 * rate['low']:4.1f}, {100 * rate['high']:4.1f}]"
    return f"{text} {count(rate['count'])}/{count(rate['total'])}" if counts else text


def seconds_words(x: float | None) -> str:
    """Seconds in the unit that suits them."""
    if x is None:
        return MISSING
    scale, unit = next((s, u) for s, u in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if x >= s or s == 1e-6)
    return f"{number(x / scale)} {unit}"


def latency_words(latency: dict[str, Any]) -> str:
    """The percentiles and the throughput in one line."""
    parts = [f"{k} {seconds_words(latency[k])}" for k in ("p50", "p95", "p99", "max")]
    return f"Latency: {', '.join(parts)}; {number(latency['per_second'])} responses/s per process"


def spread(examples: Sequence[dict[str, Any]], n: int, key: str = "category") -> list[dict[str, Any]]:
    """The first ``n`` examples, taken in turn from each category, so that no one of them hides the others."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for example in examples:
        groups.setdefault(f"{example[key]}/{example['pattern']}", []).append(example)
    ranked = [(place, i, e) for i, g in enumerate(groups.values()) for place, e in enumerate(g[:n])]
    return [e for _, _, e in sorted(ranked, key=lambda r: r[:2])[:n]]


def test_words(test: dict[str, Any]) -> tuple[str, str, str]:
    return count(test["first"]), count(test["second"]), number(test["p"])


def _title(console: Console, text: str) -> None:
    console.print(_text(f"\n{text}", "bold"))


def _table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < left else "right", no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*map(_text, row))
    console.print(table)


def _confusion(console: Console, clean: dict[str, Any]) -> None:
    undecided = [s for s in UNDECIDED if clean[s]]
    columns = ("label", "accepted", "rejected", *(s.replace("_", " ") for s in undecided))
    rows = []
    for label, accepted, rejected in (("right", "tp", "fn"), ("wrong", "fp", "tn")):
        left = clean[f"undecided_{label}"]
        rows.append(
            (label, *(count(clean[k]) for k in (accepted, rejected)), *(count(left.get(s, 0)) for s in undecided))
        )
    _table(console, columns, rows)


def _rates(console: Console, clean: dict[str, Any]) -> None:
    names = (
        ("false-negative rate", "false_negative_rate", "worst_false_negative_rate"),
        ("false-positive rate", "false_positive_rate", "worst_false_positive_rate"),
    )
    undecided = sum(clean[s] for s in UNDECIDED)
    title = "95% interval, among decided"
    columns = ("rate", title, *(["worst case"] if undecided else []))
    rows = [(n, rate_words(clean[k]), *([rate_words(clean[w])] if undecided else [])) for n, k, w in names]
    blank = [""] if undecided else []
    rows += [(k, rate_words(clean[k]), *blank) for k in ("precision", "recall", "accuracy")]
    _table(console, columns, rows)
    scalars = (("F1", "f1"), ("balanced accuracy", "balanced_accuracy"), ("MCC", "mcc"), ("Cohen's kappa", "kappa"))
    console.print(_text("; ".join(f"{name} {number(clean[key])}" for name, key in scalars)))


def _categories(console: Console, categories: dict[str, Any]) -> None:
    if len(categories) < 2:
        return
    _title(console, "By category")
    rows = [
        (
            name,
            count(c["right"]),
            count(c["wrong"]),
            rate_words(c["false_negative_rate"], counts=False),
            rate_words(c["false_positive_rate"], counts=False),
            count(sum(c[s] for s in UNDECIDED)),
        )
        for name, c in categories.items()
    ]
    _table(console, ("category", "right", "wrong", "false negatives", "false positives", "undecided"), rows)


def _examples(
    console: Console, title: str, examples: Sequence[dict[str, Any]], feedback: bool = False, key: str = "category"
) -> None:
    if not examples:
        return
    chosen = spread(examples, EXAMPLES, key)
    some = "" if len(chosen) == len(examples) else f" ({len(chosen)} of {count(len(examples))})"
    _title(console, f"{title}{some}")
    last = "reason" if feedback else "feedback"
    rows = [
        (e["id" if key == "category" else key], head(e["reference"]), tail(e["response"]), head(e["feedback"], 60))
        for e in chosen
    ]
    _table(console, ("id" if key == "category" else key, "reference", "response", last), rows, left=4)


def head(value: Any, width: int = 24) -> str:
    """The beginning of a value on one line, with what does not print escaped."""
    text = one_line(value[: 2 * width] if isinstance(value, str) else json.dumps(value, default=str))
    return text if len(text) <= width else text[: width - 1] + "…"


def tail(response: str, width: int = 40) -> str:
    """The end of a response on one line: where the answer usually is."""
    text = one_line(response[-2 * width :])
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def one_line(text: str) -> str:
    """``text`` with line breaks and other characters that do not print as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _against(console: Console, name: str, against: dict[str, Any]) -> None:
    other = against["verifier"]["name"]
    _title(console, f"Against {verifier_words(against['verifier'])}")
    agree, kappa = against["agree"], against["kappa"]
    if agree["value"] is None:
        console.print(_text("No row was decided by both."))
        return
    ends = f" [{number(kappa['low'])}, {number(kappa['high'])}]" if kappa["value"] is not None else ""
    console.print(
        _text(
            f"They agree on {percent(agree['value'])} of {count(against['decided'])} rows that both decided;"
            f" Cohen's kappa {number(kappa['value'])}{ends}"
        )
    )
    rows = [(words.replace("_", " "), *test_words(test)) for words, test in against["tests"].items()]
    _table(console, ("only one of them:", f"only {name}", f"only {other}", "McNemar p"), rows)
    chosen = against["disagreements"][:EXAMPLES]
    if chosen:
        _title(console, f"Disagreements ({len(chosen)} of {count(len(against['disagreements']))})")
        columns = ("id", "label", name, other, "reference", "response")
        shown_rows = [
            (
                e["id"],
                "right" if e["label"] else "wrong",
                e["status"],
                e["against"]["status"],
                head(e["reference"]),
                tail(e["response"]),
            )
            for e in chosen
        ]
        _table(console, columns, shown_rows, left=6)


def _attack(console: Console, attack: dict[str, Any]) -> None:
    _title(console, "Attacks: responses without an answer")
    console.print(_text(attack_words(attack), {True: "green", False: "bold red", None: "yellow"}[attack["passes"]]))
    rows = [
        (r["attack"], rate_words(r["rate"]), count(r["abstained"]), count(r["crashed"]), count(r["timed_out"]))
        for r in attack["attacks"][:ATTACKS]
    ]
    _table(console, ("attack", "accepted", "abstained", "crashed", "timed out"), rows)
    if len(attack["attacks"]) > ATTACKS:
        console.print(_text(f"... and {len(attack['attacks']) - ATTACKS} more, none more successful", "dim"))
    if attack["keys"] is not None and attack["keys"]["worst"]["rate"]["count"]:
        console.print(_text(key_words(attack["keys"])))
    _examples(console, "Attacks accepted", attack["accepted"], key="attack")


def key_words(keys: dict[str, Any]) -> str:
    """What master keys open, in one line."""
    worst = keys["worst"]
    where = f"{worst['key']!r} in {worst['category']} {rate_words(worst['rate'])}"
    return f"master keys are accepted in {percent(keys['mean'])} of cases, mean over keys and categories; worst {where}"


def attack_words(attack: dict[str, Any]) -> str:
    """Whether the verifier passes, in one line."""
    word = {True: "passes", False: "FAILS", None: "not known"}[attack["passes"]]
    on = f"{count(attack['tasks'])} of {count(attack['of_tasks'])} tasks"
    if attack["worst"] is None:
        return f"{word}: nothing was attempted"
    worst, survives = attack["worst"], "" if attack["survives"] else "; it does not survive all of them"
    accepted = f"{count(attack['overall']['count'])} of {count(attack['attempts'])} attempts accepted"
    where = f"worst {worst['attack']} {rate_words(worst['rate'])}"
    return f"{word} at {percent(attack['tau'])}: {accepted} on {on}; {where}{survives}"


def _text(words: str, style: str = "") -> Text:
    """Words as rich shows them, as text and not as orders to the terminal."""
    return Text(printable(words), style)
