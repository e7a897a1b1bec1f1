"""Checks that may hang or crash on a response, loaded in worker processes by the verifiers of structured output.

Regular expressions may backtrack without end, schemas may refer to themselves, YAML aliases may expand to more than
memory holds. Functions return what JSON holds: ``{"wrong": why}`` is the response's fault, ``{"fault": why}`` the
task's, or the response's with ``"own": true`` if another value would do better.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import math
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from assay.verify.structured.find import MAX_DEPTH

MAX_NODES = 200_000
"""Nodes of a document after aliases are expanded."""


def prepare() -> None:
    """Allow for the frames that a validator needs on each level of a value of the greatest depth."""
    sys.setrecursionlimit(6000)
    csv.field_size_limit(1 << 24)


@functools.lru_cache(maxsize=256)
def _validator(schema: str, formats: bool) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY

    loaded = json.loads(schema)
    kind = jsonschema.validators.validator_for(loaded, default=jsonschema.Draft202012Validator)
    kind.check_schema(loaded)
    multiple_of = functools.partial(_multiple_of, kind.VALIDATORS["multipleOf"])
    kind = jsonschema.validators.extend(kind, {"uniqueItems": _unique_items, "multipleOf": multiple_of})
    # This registry holds the standard's own schemas and fetches nothing.
    return kind(loaded, registry=REGISTRY, format_checker=kind.FORMAT_CHECKER if formats else None)


def _unique_items(validator: Any, wanted: Any, items: Any, schema: Any) -> Iterator[Any]:
    """Yield an error where two items of an array are equal; jsonschema's own check is quadratic in their number."""
    from jsonschema.exceptions import ValidationError

    if not wanted or not isinstance(items, list):
        return
    seen: set[str] = set()
    for item in items:
        text = json.dumps(_whole_numbers(item), sort_keys=True)
        if text in seen:
            yield ValidationError("has non-unique elements")
            return
        seen.add(text)


def _multiple_of(check: Any, validator: Any, divisor: Any, number: Any, schema: Any) -> Iterator[Any]:
    """Yield an error where a number is no multiple; jsonschema's ``check`` raises for integers beyond floats."""
    from jsonschema.exceptions import ValidationError

    if isinstance(divisor, float) and isinstance(number, int) and abs(number) > sys.float_info.max:
        if Fraction(number) % Fraction(str(divisor)):
            yield ValidationError(f"not a multiple of {divisor}")
        return
    yield from check(validator, divisor, number, schema) or ()


def _whole_numbers(value: Any) -> Any:
    """Return JSON data with ``1.0`` as ``1``, which are the same number."""
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def violations(schema: str, value: str, formats: bool) -> dict[str, Any]:
    """Return ``{"violations": [[path, message], ...]}``, the first few, of JSON ``value`` against JSON ``schema``."""
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        errors = itertools.islice(_validator(schema, formats).iter_errors(json.loads(value)), 3)
        return {"violations": [[e.json_path, e.message[:200]] for e in errors]}
    except SchemaError as error:
        return {"fault": f"the schema is not valid: {error.message[:150]}"}
    except Unresolvable as error:
        return {"fault": f"the schema refers to what it does not hold: {error}"[:150]}
    except RecursionError:
        return {"fault": "the schema refers to itself without end", "own": True}
    except re.error as error:
        return {"fault": f"a pattern of the schema is not valid: {error}"}


def match(pattern: str, flags: int, mode: str, text: str) -> dict[str, Any]:
    """Return ``{"found": bool, "groups": {...}}`` of Python's ``re`` in ``mode`` search, match or fullmatch."""
    try:
        compiled = re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        return {"fault": f"the pattern is not valid: {error}"[:150]}
    found = getattr(compiled, mode)(text)
    return {"found": found is not None, "groups": {} if found is None else found.groupdict()}


def read_yaml(text: str) -> dict[str, Any]:
    """Return ``{"value": x}`` of a YAML document, as JSON has it: dates as text, keys as text."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Events first: building the nodes recurses in C, where too deep a document would crash.
        if (complaint := _too_much(yaml, yaml.parse(text, Loader=loader))) is not None:
            return {"wrong": complaint}
        return {"value": _plain(yaml.load(text, Loader=loader))}
    except yaml.YAMLError as error:
        return {"wrong": f"not YAML: {' '.join(str(error).split())}"[:150]}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        # Constructors raise these for !!int "x", a date of month 13, an unhashable key, a structure inside itself.
        return {"wrong": f"not plain data: {error}"[:150]}


def _too_much(yaml: Any, events: Any) -> str | None:
    """Say what is too large in a stream of YAML events, counting each alias as all that it stands for."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 0))
            if len(open_nodes) > MAX_DEPTH:
                return f"nested deeper than {MAX_DEPTH}"
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, 0
        elif isinstance(event, yaml.AliasEvent):
            # An alias of what is still open would be inside itself.
            anchor, size = None, sizes.get(event.anchor, MAX_NODES)
        else:
            continue
        size += 1
        if anchor is not None:
            sizes[anchor] = size
        outer, total = open_nodes.pop()
        if total + size > MAX_NODES:
            return f"more than {MAX_NODES} nodes, aliases counted as what they stand for"
        open_nodes.append((outer, total + size))
    return None


def read_toml(text: str) -> dict[str, Any]:
    """Return ``{"value": x}`` of a TOML document."""
    import tomllib

    try:
        return {"value": _plain(tomllib.loads(text))}
    except (ValueError, RecursionError, OverflowError) as error:
        return {"wrong": f"not TOML: {error}"[:150]}


def read_csv(text: str, delimiter: str) -> dict[str, Any]:
    """Return ``{"value": rows}``, each row an object by the names in the first line; empty lines do not count."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text.strip()), delimiter=delimiter, strict=True) if row]
    except csv.Error as error:
        return {"wrong": f"not CSV: {error}"}
    if not rows:
        return {"wrong": "an empty table"}
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header):
        return {"wrong": "a column name is repeated"}
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            return {"wrong": f"row {number} has {len(row)} cells, the header {len(header)}"}
    return {"value": [dict(zip(header, (cell.strip() for cell in row), strict=True)) for row in rows[1:]]}


def _plain(value: Any) -> Any:
    """Return ``value`` with every alias expanded, as a tree that JSON holds; ValueError where it has no such form."""
    count = 0

    def copy(node: Any, depth: int) -> Any:
        nonlocal count
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            raise ValueError(f"deeper than {MAX_DEPTH} or more than {MAX_NODES} nodes")
        if isinstance(node, dict):
            named = {_key(key): copy(item, depth + 1) for key, item in node.items()}
            if len(named) < len(node):
                raise ValueError("two keys have the same text")
            return named
        if isinstance(node, list | tuple):
            return [copy(item, depth + 1) for item in node]
        if isinstance(node, set):
            return sorted((copy(item, depth + 1) for item in node), key=str)
        if isinstance(node, float) and not math.isfinite(node):
            raise ValueError(f"{node} is no JSON number")
        if isinstance(node, int) and node.bit_length() > 13_000:
            raise ValueError("an integer of thousands of digits")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if hasattr(node, "isoformat"):
            return node.isoformat()
        raise ValueError(f"{type(node).__name__} is no plain data")

    return copy(value, 0)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return json.dumps(key)
    if isinstance(key, int | float) and (isinstance(key, int) and key.bit_length() > 13_000):
        raise ValueError("an integer of thousands of digits as a key")
    return str(key.isoformat() if hasattr(key, "isoformat") else key)


def check_xml(text: str, required: dict[str, str | None], root: str | None) -> dict[str, Any]:
    """Return ``{"root": right, "paths": {path: right}}`` of a document without DTD, entities or outside references."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        # As bytes, so that a declaration of another encoding cannot make it other text.
        tree = fromstring(text.encode(), forbid_dtd=True)
    except DefusedXmlException as error:
        return {"wrong": f"refused: {type(error).__name__}"}
    except (SyntaxError, ValueError, LookupError) as error:
        return {"wrong": f"not well-formed: {error}"[:150]}
    if _deeper(tree, MAX_DEPTH):
        # A path such as .//a//a takes time quadratic in the depth, and so does the text of elements inside each other.
        return {"wrong": f"nested deeper than {MAX_DEPTH}"}
    paths = {}
    for path, wanted in required.items():
        try:
            found = tree.iterfind(path)
            words = None if wanted is None else wanted.split()
            paths[path] = any(words is None or "".join(e.itertext()).split() == words for e in found)
        # What ElementTree raises for a path it cannot read depends on where it stumbles.
        except (SyntaxError, LookupError, ValueError, TypeError, StopIteration) as error:
            return {"fault": f"path {path!r}: {error}"[:150]}
    return {"root": root is None or tree.tag == root, "paths": paths}


def _deeper(tree: Any, most: int) -> bool:
    """Say whether elements of ``tree`` are nested deeper than ``most``."""
    level = [tree]
    for _ in range(most):
        level = [child for element in level for child in element]
        if not level:
            return False
    return True
