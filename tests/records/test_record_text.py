"""Records of the lab as text: nothing is lost, and each run has a line of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.records.record_text import record_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON))
def test_any_record_is_read_back_in_its_order(record: dict[str, object]) -> None:
    found = json.loads(record_text(record))
    assert found == record and list(found) == list(record)


def test_each_run_has_a_line() -> None:
    text = record_text({"paper": "S001", "runs": [{"seed": 0, "after": [1, 2]}, {"seed": 1, "after": [3, 4]}]})
    assert text.splitlines()[3:5] == ['  {"seed": 0, "after": [1, 2]},', '  {"seed": 1, "after": [3, 4]}']


def test_a_tuple_is_laid_out_as_the_list_that_it_is_read_as() -> None:
    record = {"setting": {"words": (("well", "hm"), ("left", "right")), "name": "n" * 200}}
    assert record_text(record) == record_text(json.loads(record_text(record)))
    assert len(record_text(record).splitlines()) == 6


RECORDS = sorted((Path(__file__).parents[2] / "lab").glob("*.json"))


@pytest.mark.skipif(not RECORDS, reason="no records of the lab beside the tests")
def test_the_records_here_are_written_so() -> None:
    others = [path.name for path in RECORDS if record_text(json.loads(path.read_text())) != path.read_text()]
    assert not others
