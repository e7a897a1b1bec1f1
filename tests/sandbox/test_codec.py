"""Plain values come back as they were; texts that nobody encoded are refused, whatever they are."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.inside import codec

keys = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
leaves = keys | st.complex_numbers(allow_nan=False) | st.frozensets(keys) | st.sets(keys)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys | st.tuples(keys, keys), inner),
)


def same(a: object, b: object) -> bool:
    """Equal in value, type and order, all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return same(list(a.items()), list(b.items()))
    # repr tells -0.0 from 0.0.
    return a == b and (not isinstance(a, (float, complex)) or repr(a) == repr(b))


@given(values)
def test_round_trip(value: object) -> None:
    assert same(codec.loads(codec.dumps(value)), value)


def test_values_json_does_not_have() -> None:
    for value in (math.inf, -math.inf, -0.0, 10**5000, -(2**63), 1e308, 5e-324, "\ud800", b"\0\xff", 1j):
        assert same(codec.loads(codec.dumps(value)), value)
    assert math.isnan(codec.loads(codec.dumps(math.nan)))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.sampled_from("tsdzbcifaxo") | st.text(), x, max_size=2)))  # fmt: skip # noqa: E501
def test_any_json_is_a_value_or_an_error(made: object) -> None:
    text = json.dumps(made)
    try:
        value = codec.loads(text)
    except codec.CodecError:
        return
    codec.dumps(value)


@given(st.binary() | st.text())
def test_any_text_is_a_value_or_an_error(text: bytes | str) -> None:
    try:
        codec.loads(text)
    except codec.CodecError:
        return


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100000,
        "[" * 101 + "]" * 101,
        "1" * 5000,
        '{"i":"0x"}',
        '{"i":"1_0"}',
        '{"i":"0x1_0"}',
        '{"i":" 0x1"}',
        '{"i":5}',
        '{"f":"nan1"}',
        '{"f":"1e5"}',
        "NaN",
        "Infinity",
        '{"s":[[1]]}',
        '{"d":[[[1],2]]}',
        '{"d":[[1,2,3]]}',
        '{"d":{"a":1}}',
        '{"t":[1],"s":[1]}',
        "{}",
        '{"o":"os.system"}',
        '{"b":"%%%"}',
        '{"c":["0x1p0"]}',
        '{"c":["x","y"]}',
        '{"c":["0x1p99999","0x0p0"]}',
        '{"a":["|O8",[1],"AAAAAAAAAAA="]}',
        '{"a":["<f8",[1],""]}',
        '{"a":["<f8",[-1],""]}',
        '{"a":["<f8",[true],"AAAAAAAAAAA="]}',
        '{"a":["<f8",[1000000000000],"AAAAAAAAAAA="]}',
        '{"a":["S8",[1],"AAAAAAAAAAA="]}',
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(codec.CodecError):
        codec.loads(text)


def test_what_cannot_be_sent() -> None:
    loop: list[object] = []
    loop.append(loop)
    for value in (object(), print, int, loop, Exception(), iter([]), codec):
        with pytest.raises(codec.CodecError):
            codec.dumps(value)


def test_arrays() -> None:
    np = pytest.importorskip("numpy")
    for dtype in ("?", "i1", "<u2", ">i4", "<f4", "f8", "c16", "f2"):
        for shape in ((), (0,), (3,), (2, 3), (2, 0, 4)):
            array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
            back = codec.loads(codec.dumps(array))
            np.testing.assert_array_equal(back, array)
            assert back.dtype == array.dtype.newbyteorder("<") and back.shape == array.shape
    assert codec.loads(codec.dumps([np.float64(1.5), np.int8(3), np.True_])) == [1.5, 3, True]
    for odd in (np.array([object()]), np.array(["a"]), np.array([(1, 2.0)], "i4,f4")):
        with pytest.raises(codec.CodecError):
            codec.dumps(odd)


@pytest.mark.parametrize("tag", ["s", "z", "d"])
def test_keys_chosen_to_have_one_hash_are_refused(tag: str) -> None:
    # Each would be compared with all before it: these would take minutes.
    keys = [number * ((1 << 61) - 1) for number in range(100_000)]
    assert len(set(map(hash, keys[:50]))) == 1
    body = [[key, 0] for key in keys] if tag == "d" else keys
    with pytest.raises(codec.CodecError, match="one hash"):
        codec.decode({tag: body})
    # As many as a value may have by chance, and many that differ.
    assert len(codec.decode({"s": [*keys[:100], *range(100_000)]})) == 100_099


def test_truth_values_of_arrays_are_0_or_1() -> None:
    pytest.importorskip("numpy")
    assert codec.decode({"a": ["|b1", [2], "AAE="]}).tolist() == [False, True]
    with pytest.raises(codec.CodecError, match="truth values"):
        codec.decode({"a": ["|b1", [1], "Ag=="]})
