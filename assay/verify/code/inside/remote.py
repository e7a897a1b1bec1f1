"""What tests hold in place of a program's objects: stand-ins that forward calls and never lend their own judgement.

A program that returns an object whose ``__eq__`` or ``__sub__`` says what the test hopes for must not pass. So

- what comes back from a function is plain data, a function (to be called) or an iterator (to be iterated);
- where the tests are about classes, objects cross too. An operator between an object and the tests' own data would
  show the program what is expected, so it is forwarded only for objects the tests *constructed*, whose operators are
  what is tested; for others it is not, and equality is identity.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterator
from typing import Any

_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
BINARY = ("lt", "le", "gt", "ge", "contains", *_OPERATORS, *(f"r{name}" for name in _OPERATORS))
ARITHMETIC = frozenset(BINARY) - {"lt", "le", "gt", "ge", "contains"}
INPLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ior", "iand", "ixor")
UNARY = (
    *("len", "bool", "str", "repr", "int", "float", "index", "complex", "abs", "neg", "pos", "invert"),
    *("round", "trunc", "floor", "ceil", "enter", "reversed", "bytes"),
)
WITH_ARGUMENTS = ("getitem", "setitem", "delitem", "format")
REVEALING = frozenset(["startswith", "endswith", "issubset", "issuperset", "isdisjoint", "count", "index"])
"""Methods of plain types that compare with their argument: refused on objects that may stand in for plain data."""


class Unsupported(BaseException):
    """The tests do to the program's objects what stand-ins cannot: nothing is known of the program."""


class Remote:
    """A stand-in. ``_link`` is the conversation, ``_number`` the object's there, ``_name`` for messages."""

    __slots__ = ("__weakref__", "_base", "_constructed", "_link", "_name", "_number")

    _base: Any
    _constructed: bool
    _link: Any
    _name: str
    _number: int

    def __init__(self, link: Any, number: int, name: str, constructed: bool = False, base: Any = None):
        for key, value in zip(
            ("_link", "_number", "_name", "_constructed", "_base"), (link, number, name, constructed, base), strict=True
        ):
            object.__setattr__(self, key, value)

    def __reduce__(self) -> Any:
        raise Unsupported(f"the tests copy or pickle {self._name}")


class RemoteFunction(Remote):
    """Can be called, and asked for its attributes if it is one of the names the tests use."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._link.call(self, "", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self._name
        # What a function returned has none: "x".startswith would otherwise be the program's to answer.
        if not self._constructed or (name.startswith("__") and name != "__doc__"):
            raise AttributeError(f"function {self._name!r} has no attribute {name!r}")
        return self._link.get(self, name)


class RemoteIterator(Remote):
    """Can be iterated."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._link.next(self)


class RemoteObject(Remote):
    """An instance of one of the program's classes, for tests that are about classes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in ("__dict__", "__doc__"):
            raise AttributeError(f"{self._name!r} object has no attribute {name!r}")
        found = self._link.get(self, name)
        if not self._constructed and name in REVEALING and callable(found):
            raise TypeError(f"{name} of {self._name}, which the program returned in place of plain data")
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._link.set(self, name, value)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._link.class_of(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._link.call(self, "", args, kwargs)

    def __iter__(self) -> Any:
        return self._link.special(self, "__iter__", ())

    def __next__(self) -> Any:
        return self._link.next(self)

    def __await__(self) -> Any:
        return iter_await(self)

    def __exit__(self, kind: Any, error: Any, _: Any) -> Any:
        return self._link.special(
            self,
            "__exit__",
            (
                None if kind is None else getattr(builtins, kind.__name__, Exception),
                None if error is None else str(error),
                None,
            ),
        )

    def __eq__(self, other: Any) -> Any:
        if self is other or (isinstance_remote(other) and other._number == self._number):
            return True
        if isinstance_remote(other) or self._constructed:
            return self._link.special(self, "__eq__", (other,))
        return NotImplemented if self._base is None else self._base == other

    def __ne__(self, other: Any) -> Any:
        if isinstance_remote(other) or self._constructed:
            return self._link.special(self, "__ne__", (other,))
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __hash__(self) -> int:
        return hash(self._link.special(self, "__hash__", ()))


def iter_await(target: Any) -> Any:
    return target._link.awaited(target)
    yield


def isinstance_remote(value: Any) -> bool:
    return issubclass(type(value), RemoteObject)


def _binary(name: str) -> Any:
    def operator(self: Any, *others: Any) -> Any:
        if not self._constructed and not all(isinstance_remote(other) for other in others):
            if self._base is not None:
                return getattr(self._base, name)(*others)
            if name == "__contains__":
                raise TypeError(f"in {self._name}, which the program returned in place of plain data")
            return NotImplemented
        value = self._link.special(self, name, others)
        if name.strip("_") in ARITHMETIC and isinstance_remote(value):
            object.__setattr__(value, "_constructed", self._constructed)
        return value

    return operator


def _forward(name: str) -> Any:
    def operator(self: Any, *others: Any) -> Any:
        return self._link.special(self, name, others)

    return operator


for _name in (*BINARY, *INPLACE):
    setattr(RemoteObject, f"__{_name}__", _binary(f"__{_name}__"))
for _name in (*UNARY, *WITH_ARGUMENTS):
    setattr(RemoteObject, f"__{_name}__", _forward(f"__{_name}__"))


class RemoteType(type):
    """The type of the stand-ins of classes; they are types themselves, so that ``isinstance`` takes them.

    ``_constructs`` says whether calling it makes an object the tests constructed, ``_open`` whether it has attributes:
    that is so for names the tests use, not for a class that a function returned.
    """

    _constructs = False
    _open = False

    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> RemoteType:
        if any(isinstance(base, RemoteType) for base in bases):
            raise Unsupported(f"the tests derive a class from {bases[0].__name__}")
        return super().__new__(mcs, name, bases, space)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._link.call(cls, "", args, kwargs, new=cls._constructs)

    def __getattr__(cls, name: str) -> Any:
        if not cls._open or (name.startswith("__") and name.endswith("__") and name != "__members__"):
            raise AttributeError(f"class {cls._name!r} has no attribute {name!r}")
        return cls._link.get(cls, name)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._link.set(cls, name, value)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance_remote(value) and bool(cls._link.is_instance(cls, value))

    def __subclasscheck__(cls, other: Any) -> bool:
        return cls is other

    def __iter__(cls) -> Any:
        return iter(cls._link.special(cls, "__iter__", ()))

    def __len__(cls) -> int:
        return int(cls._link.special(cls, "__len__", ()))

    def __bool__(cls) -> bool:
        return True

    def __getitem__(cls, key: Any) -> Any:
        return cls._link.get_item(cls, key)


def remote_type(link: Any, number: int, name: str) -> RemoteType:
    return RemoteType(name, (), {"_link": link, "_number": number, "_name": name, "__slots__": ()})


def coroutine_function(function: RemoteFunction) -> Any:
    """Wrap a function whose calls are awaited."""

    @functools.wraps(function, assigned=())
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function._link.awaited(function._link.call(function, "", args, kwargs, waits=True))

    wrapper.__name__ = function._name
    return wrapper
