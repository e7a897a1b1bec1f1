"""What inputs look like: Python signatures, and a small notation for the text a program reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from assay.errors import UsageError

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_FIELD = re.compile(r"([A-Za-z_]\w*):(ints|int|word|floats|float)\(([^()]*)\)")
_LINE = re.compile(r"(?:\*([A-Za-z_]\w*|[0-9]{1,6})\s+)?(.+)")
_TERM = re.compile(r"(-?[0-9]{1,19}|[A-Za-z_]\w*)(?:([+-])([0-9]{1,19}))?")
_FLOATS = 3
"""Digits after the point of numbers in text."""


def strategy_of(spec: str) -> SearchStrategy[Any]:
    """Return hypothesis's strategy for what ``spec`` describes.

    A spec that begins with ``def`` is a signature; parameters are annotated with int, float, bool, str, None, list,
    tuple, dict, set, Optional, Union or ``|`` of these. ``Annotated[T, low, high]`` bounds a number, or the length of
    what has one.

    Any other spec is a format of text: a line for each line of the input, with fields separated by white space:

    - ``n:int(1, 100)``, a whole number; ``x:float(0, 1)``, with up to 3 digits after the point;
    - ``a:ints(n, 1, 1000)``, n numbers in a row; ``floats`` likewise;
    - ``s:word(1, 10, abc)``, a word of 1 to 10 of these letters (a-z unless given);
    - ``*m u:int(1, n) v:int(1, n)``, a line that comes m times.

    Bounds and counts are numbers, fields of earlier lines or of this one, or those plus or minus a number (``n-1``).

    Raises:
        UsageError: it cannot be read.
    """
    text = spec.strip()
    if text.startswith(("def ", "async def ")):
        return _signature(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise UsageError("the spec of inputs is empty")
    return _text([_read_line(line) for line in lines])


# --- signatures ------------------------------------------------------------------------------------------


def _signature(text: str) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    for source in (text, text.rstrip().rstrip(":") + ":\n    pass"):
        try:
            tree = ast.parse(source)
            break
        except (SyntaxError, ValueError, RecursionError) as error:
            reason = str(error)
    else:
        raise UsageError(f"the signature {text[:60]!r} does not parse: {reason}")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    arguments = [a for a in (*function.args.posonlyargs, *function.args.args) if a.arg != "self"]
    for argument in arguments:
        if argument.annotation is None:
            raise UsageError(f"parameter {argument.arg!r} has no type, so no input can be made for it")
    return st.tuples(*(_type(a.annotation, a.arg) for a in arguments)).map(list)


def _type(node: ast.expr | None, where: str, low: Any = None, high: Any = None) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _type(node.left, where) | _type(node.right, where)
    name, inner = _name(node), []
    if isinstance(node, ast.Subscript):
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "Annotated":
        bounds = [ast.literal_eval(b) for b in inner[1:]]
        if len(bounds) != 2:
            raise UsageError(f"{where}: Annotated takes a type, its lower and its upper bound")
        return _type(inner[0], where, *bounds)
    size: dict[str, Any] = {"min_size": int(low or 0)} | ({} if high is None else {"max_size": int(high)})
    if name == "int":
        return st.integers(low, high)
    if name == "float":
        return st.floats(low, high, allow_nan=False, allow_infinity=False)
    simple = {"bool": st.booleans(), "None": st.none(), "str": st.text(st.characters(codec="utf-8"), **size)}
    if name in simple:
        return simple[name]
    if name in ("list", "List", "Sequence") and len(inner) == 1:
        return st.lists(_type(inner[0], where), **size)
    if name in ("set", "Set") and len(inner) == 1:
        return st.sets(_type(inner[0], where), **size)
    if name in ("dict", "Dict") and len(inner) == 2:
        return st.dictionaries(_type(inner[0], where), _type(inner[1], where), **size)
    if name in ("tuple", "Tuple") and inner:
        if len(inner) == 2 and isinstance(inner[1], ast.Constant) and inner[1].value is ...:
            return st.lists(_type(inner[0], where), **size).map(tuple)
        return st.tuples(*(_type(i, where) for i in inner))
    if name == "Optional" and len(inner) == 1:
        return st.none() | _type(inner[0], where)
    if name == "Union" and inner:
        return st.one_of(*(_type(i, where) for i in inner))
    raise UsageError(f"parameter {where!r}: no inputs can be made for the type {ast.unparse(node) if node else '?'!r}")


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return "None" if isinstance(node, ast.Constant) and node.value is None else ""


# --- text ------------------------------------------------------------------------------------------

Term = Callable[[Mapping[str, Any]], int]
Field = tuple[str, str, list[Term], str]


def _read_line(line: str) -> tuple[Term | None, list[Field]]:
    times, rest = _LINE.fullmatch(line).groups()  # type: ignore[union-attr]
    fields = []
    end = 0
    for match in _FIELD.finditer(rest):
        if rest[end : match.start()].strip():
            break
        end = match.end()
        name, kind, inside = match.groups()
        words = [w.strip() for w in inside.split(",")]
        wanted = {"int": 2, "float": 2, "ints": 3, "floats": 3, "word": 2}[kind]
        letters = words[2] if kind == "word" and len(words) == 3 else "abcdefghijklmnopqrstuvwxyz"
        if len(words) != wanted and not (kind == "word" and len(words) == 3 and letters):
            raise UsageError(f"{match.group()!r} in the spec of inputs: {kind} takes {wanted} arguments")
        fields.append((name, kind, [_term(w, line) for w in words[:wanted]], letters))
    if not fields or rest[end:].strip():
        raise UsageError(f"the line {line!r} of the spec of inputs is not fields like n:int(1, 100)")
    return (None if times is None else _term(times, line)), fields


def _term(word: str, line: str) -> Term:
    match = _TERM.fullmatch(word.replace(" ", "").replace("10^9", str(10**9)))
    if match is None:
        raise UsageError(f"{word!r} in the line {line!r} is no number, no field and no field plus or minus a number")
    first, sign, second = match.groups()
    shift = int(second or 0) * (-1 if sign == "-" else 1)

    def value(known: Mapping[str, Any]) -> int:
        if first.lstrip("-").isdigit():
            return int(first) + shift
        if not isinstance(known.get(first), int):
            raise UsageError(f"{first!r} in the line {line!r} is no whole number of an earlier field")
        return int(known[first]) + shift

    return value


def _text(lines: list[tuple[Term | None, list[Field]]]) -> SearchStrategy[str]:
    from hypothesis import reject
    from hypothesis import strategies as st

    @st.composite
    def text(draw: DrawFn) -> str:
        known: dict[str, Any] = {}
        out = []
        for times, fields in lines:
            for _ in range(1 if times is None else times(known)):
                words = []
                for name, kind, terms, letters in fields:
                    *count, low, high = (term(known) for term in terms)
                    if low > high or (count and count[0] < 0):
                        reject()
                    made = _one(kind, low, high, letters)
                    known[name] = draw(made if not count else st.lists(made, min_size=count[0], max_size=count[0]))
                    words += [_show(v) for v in (known[name] if count else [known[name]])]
                out.append(" ".join(words))
        return "\n".join(out) + "\n"

    return text()


def _one(kind: str, low: int, high: int, letters: str) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if kind == "word":
        return st.text(st.sampled_from(letters), min_size=max(0, low), max_size=high)
    if kind.startswith("float"):
        scale = 10**_FLOATS
        return st.integers(low * scale, high * scale).map(lambda n: n / scale)
    return st.integers(low, high)


def _show(value: Any) -> str:
    return f"{value:.{_FLOATS}f}" if isinstance(value, float) else str(value)
