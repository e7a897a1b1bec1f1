"""A short run of what ``make fuzz`` does at length, for a release; and that no verifier is left out of it."""

from __future__ import annotations

import math

import pytest

from assay.registry import names
from assay.types import NOTE, Task, Verdict
from fuzz.campaign import Campaign
from fuzz.cases import ENTRIES
from fuzz.contract import WATCH, Fault, call, faults
from fuzz.entry import Missing

EXAMPLES = 15


def test_every_verifier_is_fuzzed() -> None:
    missing = set(names("verify")) - {entry.kind for entry in ENTRIES.values()}
    assert not missing, f"add valid tasks and right answers to tests/fuzz/cases for {sorted(missing)}"


@pytest.mark.slow
@pytest.mark.parametrize("name", {entry.kind: name for name, entry in reversed(ENTRIES.items())}.values())
def test_verdicts_keep_their_contract(name: str) -> None:
    try:
        campaign = Campaign(name)
    except Missing as error:
        pytest.skip(str(error))
    report = campaign.run(EXAMPLES)
    assert not report.findings, "\n".join(f"{f['sort']}: {f['detail']} for {f['response']}" for f in report.findings)


@pytest.mark.parametrize(
    ("verdict", "sort"),
    [
        (Verdict(1.5, True), "score"),
        (Verdict(float("nan"), True), "score"),
        (Verdict(1, True), "score"),
        (Verdict(0.0, 0), "passed"),  # type: ignore[arg-type]
        (Verdict.abstain("no idea"), "abstains"),
        (Verdict.wrong("a\nb"), "feedback not printable"),
        (Verdict.wrong("\ud800"), "feedback not printable"),
        (Verdict.wrong("x" * 1501), "feedback too long"),
        (Verdict(0.0, False, {"a": 2.0}), "value of a part"),
        (Verdict(0.0, False, {f"a{NOTE}b": math.inf}), "value of a part"),
        (Verdict(0.0, False, {"\x00": 1.0}), "name of a part"),
        (Verdict(0.0, False, {str(i): 1.0 for i in range(1001)}), "too many parts"),
        ((0.0, False), "type"),
    ],
)
def test_a_verdict_that_breaks_the_contract_is_found(verdict: object, sort: str) -> None:
    assert [fault.sort for fault in faults(verdict, None)] == [sort]


def test_a_good_verdict_and_an_allowed_abstention_are_not() -> None:
    assert not list(faults(Verdict(0.5, False, {"a": None, "b": 1.0, f"b{NOTE}metres": 5.0}, "half of it"), None))
    assert not list(faults(Verdict.abstain("no verifier: x"), "no verifier"))


def test_a_verifier_that_raises_or_does_not_end_is_found() -> None:
    def raises(task: Task, response: str) -> Verdict:
        raise RecursionError("deep")

    def endless(task: Task, response: str) -> Verdict:
        while True:
            pass

    with WATCH.running():
        for verifier, sort in ((raises, "raises"), (endless, "slow")):
            found = call(verifier, Task("t", "?"), "x", 0.05)
            assert isinstance(found, Fault) and found.sort == sort


@pytest.mark.slow
def test_the_same_seed_gives_the_same_examples_and_faults_are_shrunk() -> None:
    def touchy(task: Task, response: str) -> Verdict:
        return Verdict(2.0 if "<" in response else 0.0, False)

    reports = []
    for _ in range(2):
        campaign = Campaign("exact", first=7)
        campaign.verifier = touchy
        campaign.static = False
        reports.append(campaign.run(80))
    assert [f["response"] for f in reports[0].findings] == [f["response"] for f in reports[1].findings]
    [finding] = reports[0].findings
    assert finding["sort"] == "score" and len(finding["response"]) < 20
