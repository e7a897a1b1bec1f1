"""What a record says of its claim, and the claims of a paper together of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assay.statistics.sign_flip import sign_flip
from assay.statistics.spread import fallen
from assay.statistics.sweep import open_ends

VERDICTS = ("shown", "mechanism", "by construction", "inconclusive", "not shown", "opposite")
"""What can be said of a paper, see :func:`verdict`."""

ALIKE = 1e-3
"""Runs that differ by this share of the measure's largest value at most are alike."""


def differences(record: Mapping[str, Any]) -> list[float]:
    """Return better minus baseline for each seed."""
    of = {(run["seed"], run["arm"]): run[record["measure"]] for run in record["runs"]}
    return [of[seed, record["better"]] - of[seed, record["baseline"]] for seed in record["seeds"]]


def unsettled(record: Mapping[str, Any]) -> list[str]:
    """Return why nothing follows from a record: no seed tells the arms apart, or they were not both at their best, with
    optima at an end of the sweep that are not flat, or no sweep.

    A claim that has to hold at each of some values asks for nobody's best.
    """
    compared = (record["better"], record["baseline"])
    most = max(abs(run[record["measure"]]) for run in record["runs"] if run["arm"] in compared)
    if max(map(abs, differences(record))) <= ALIKE * most:
        return ["no seed tells the arms apart"]
    if record.get("tried"):
        return [
            f"{arm} did best at the {side} {name} that was tried"
            for arm in compared
            for name, side in open_ends(record["tried"][arm], record["effect"]["value"])
        ]
    return ["its learning rate was not swept"] if record["setting"].get("lr") and not record.get("each") else []


def summary(record: Mapping[str, Any], evidence: str) -> dict[str, Any]:
    """Return what of a record the package ships.

    Args:
        record: of a claim.
        evidence: what the claim is evidence of, see :class:`assay.catalogue.claim.Claim`.
    """
    reasons, arms = unsettled(record), list(record["arms"])
    fell = {arm: fallen([r[record["measure"]] for r in record["runs"] if r["arm"] == arm]) for arm in arms}
    return {
        "name": record.get("name", record["setting"]["name"]),
        "claim": record["claim"],
        "evidence": evidence,
        "setting": record["setting"]["name"],
        "better": record["better"],
        "baseline": record["baseline"],
        "measure": record["measure"],
        "means": record["means"],
        **{key: record["effect"][key] for key in ("value", "low", "high", "seeds")},
        "sign_flip": round(sign_flip(differences(record)), 6),
        "collapsed": {arm: n for arm, n in fell.items() if n},
        "unsettled": reasons,
        "verdict": "inconclusive" if reasons else record["verdict"],
        **({"each": record["each"]} if record.get("each") else {}),
        "runs": len(record.get("earlier", ())) + 1,
    }


def verdict(many: Sequence[Mapping[str, Any]]) -> str:
    """Return the verdict on a paper by the summaries of its claims that were run, its first claim first.

    ``shown``: the first of those that are evidence for what the paper claims is shown, the others, its replications,
    have the same sign, and none is opposite. Otherwise ``opposite`` where that first one is opposite; else
    ``mechanism`` where a claim about the mechanism is shown and none is opposite; ``by construction`` where one is
    shown whose setting was given what decides it; ``inconclusive`` where the first one is; and ``not shown``.
    """
    kinds = {kind: [one for one in many if one["evidence"] == kind] for kind in ("claim", "mechanism", "construction")}
    first = next(iter(kinds["claim"] or many))
    against = [one for one in kinds["claim"] if one["verdict"] == "opposite"]
    replicated = all(one["value"] > 0 for one in kinds["claim"])
    if kinds["claim"] and first["verdict"] == "shown" and replicated and not against:
        return "shown"
    if first["verdict"] == "opposite":
        return "opposite"
    for kind, said in (("mechanism", "mechanism"), ("construction", "by construction")):
        found = {one["verdict"] for one in kinds[kind]}
        if "shown" in found and "opposite" not in found:
            return said
    return "inconclusive" if first["verdict"] == "inconclusive" else "not shown"


def count(verdicts: Sequence[str]) -> str:
    """Return how many verdicts there are of each kind."""
    return ", ".join(f"{verdicts.count(kind)} {kind}" for kind in VERDICTS if kind in verdicts) or "none"
