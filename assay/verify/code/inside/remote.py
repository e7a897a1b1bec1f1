"""What tests hold in place of a program's objects: stand-ins that forward calls and never lend their own judgement.

A program that returns an object whose ``__eq__`` or ``__sub__`` says what the test hopes for must not pass. So what the
program's code may decide is a short list; everything else is decided here, among plain data that came by value.

- Methods, attributes, items, iteration, conversions (``len``, ``str``, ``int``, ``abs`` ...) are forwarded. What they
  give is judged as the data it is: the program has to know the value.
- ``==`` and ``<`` between two of the program's objects are forwarded, as they are part of what it was asked to write,
  and only ``True`` or ``False`` is taken for an answer. A program that makes all its objects equal passes tests that do
  nothing but compare its objects with one another, and would in any other harness.
- An object never equals the tests' own data, nor is more or less than it. One that is of a subclass of a plain type
  (a ``list``, a ``dict``) is compared by its content, which is sent each time and then compared here.
- Methods of plain types that answer about their argument (``startswith``, ``issubset``, ``index``), ``in``, and
  arithmetic with the tests' own data are forwarded for objects alone that the tests *constructed*, of a class that by
  what the tests or the task say is one: see :func:`~assay.verify.code.names.classes`. What such arithmetic gives is not
  of that kind. Where the operation could be a comparison in disguise (``abs(x - 12)``), it may give another object, of
  which no number can be had, and nothing else.
- The truth value of ``__exit__``, which would swallow a failed assertion, counts only where no assertion can be lost.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Iterator
from typing import Any

from assay.verify.code.inside.wire import PLAIN_METHODS

_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
ORDERING = ("lt", "le", "gt", "ge")
ARITHMETIC = (*_OPERATORS, *(f"r{name}" for name in _OPERATORS))
INPLACE = tuple(f"i{name}" for name in _OPERATORS if name != "divmod")
COMPARING = frozenset(
    f"{before}{name}" for name in ("sub", "xor", "mod", "truediv", "floordiv", "divmod") for before in ("", "r", "i")
)
"""Arithmetic that gives nothing, or one, where both sides are the same: a comparison in disguise."""
NUMBERS = ("len", "bool", "int", "float", "index", "complex", "abs", "round", "trunc", "floor", "ceil")
UNARY = (*NUMBERS, "str", "repr", "neg", "pos", "invert", "reversed", "bytes")
WITH_ARGUMENTS = ("getitem", "setitem", "delitem", "format")
_CONTAINERS = (
    *("append", "add", "get", "pop", "insert", "remove", "update", "extend", "clear", "copy", "discard", "items"),
    *("keys", "values", "setdefault", "popitem", "sort", "reverse"),
)
REVEALING = PLAIN_METHODS - set(_CONTAINERS)
"""Methods of plain types that answer about their argument, or about the value as a whole."""


class Unsupported(BaseException):
    """The tests do to the program's objects what stand-ins cannot: nothing is known of the program."""


class Refused(TypeError):
    """Something only plain data can be asked, or what an object that is none answered to it."""


class Remote:
    """A stand-in. ``_link`` is the conversation, ``_number`` the object's there, ``_name`` for messages."""

    __slots__ = ("__weakref__", "_compared", "_constructed", "_link", "_name", "_number", "_plain")

    _compared: bool
    _constructed: bool
    _link: Any
    _name: str
    _number: int
    _plain: bool

    def __init__(self, link: Any, number: int, name: str, plain: bool = False):
        """``plain``: whether it is of a subclass of a plain type; see above for what is done with the other two."""
        for key, value in (
            ("_link", link),
            ("_number", number),
            ("_name", name),
            ("_plain", plain),
            ("_constructed", False),
            ("_compared", False),
        ):
            object.__setattr__(self, key, value)

    def _mark(self, **flags: bool) -> None:
        for name, value in flags.items():
            object.__setattr__(self, f"_{name}", value)

    def __reduce__(self) -> Any:
        if self._constructed and isinstance_remote(self):
            raise Unsupported(f"the tests pickle {self._name}")
        raise Refused(f"{self._name} cannot be pickled")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memory: Any) -> Any:
        return self


class RemoteFunction(Remote):
    """Can be called, and asked for its attributes if it is one of the names the tests use (``_constructed``)."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._link.call(self, "", args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("__name__", "__qualname__"):
            return self._name
        # What a function returned has none: "x".startswith would otherwise be the program's to answer.
        if not self._constructed or (name.startswith("__") and name != "__doc__"):
            raise AttributeError(f"function {self._name!r} has no attribute {name!r}")
        return _attribute(self, name, False)


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
        return _attribute(self, name, self._constructed)

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

    def __enter__(self) -> Any:
        entered = self._link.special(self, "__enter__", ())
        if isinstance_remote(entered) and entered._number == self._number:
            entered._mark(constructed=self._constructed)
        return entered

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        named = None if kind is None else getattr(builtins, kind.__name__, Exception)
        swallows = self._link.special(self, "__exit__", (named, None if error is None else str(error), None))
        if swallows is not True or kind is None:
            return False
        return (
            issubclass(kind, Exception) and not issubclass(kind, AssertionError | Refused) and self._link.quiet(trace)
        )

    def __copy__(self) -> Any:
        return self._link.copy(self, False)

    def __deepcopy__(self, memory: Any) -> Any:
        return self._link.copy(self, True)

    def __eq__(self, other: Any) -> bool:
        if self is other or (isinstance_remote(other) and other._number == self._number):
            return True
        if isinstance_remote(other):
            return _truth(self, self._link.special(self, "__eq__", (other,)))
        return bool(self._plain and not isinstance(other, Remote) and self._link.content(self) == other)

    def __ne__(self, other: Any) -> bool:
        return not self.__eq__(other)

    def __hash__(self) -> int:
        return hash(self._link.special(self, "__hash__", ()))

    def __contains__(self, item: Any) -> bool:
        if self._constructed or isinstance_remote(item):
            return _truth(self, self._link.special(self, "__contains__", (item,)))
        # By its elements, which are data.
        return any(item is one or item == one for one in iter(self))


def iter_await(target: Any) -> Any:
    return target._link.awaited(target)
    yield


def isinstance_remote(value: Any) -> bool:
    return issubclass(type(value), RemoteObject)


def _attribute(target: Any, name: str, trusted: bool) -> Any:
    found = target._link.get(target, name)
    if not trusted and name in REVEALING and (callable(found) or isinstance(found, Remote)):
        raise Refused(f"{name} of {target._name}, which is no plain data")
    if trusted and isinstance(found, RemoteFunction):
        found._mark(constructed=True)
    return found


def _truth(target: Any, answer: Any) -> bool:
    if answer is NotImplemented:
        return False
    if answer is not True and answer is not False:
        raise Refused(f"{target._name} answered a comparison with what is neither True nor False")
    return answer


def _ordering(name: str) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if isinstance_remote(other):
            answer = self._link.special(self, name, (other,))
            return answer if answer is NotImplemented else _truth(self, answer)
        if self._plain and not isinstance(other, Remote):
            return getattr(self._link.content(self), name)(other)
        raise Refused(f"{self._name}, which is no plain data, is compared with it")

    return operator


def _arithmetic(name: str) -> Any:
    compares = name.strip("_") in COMPARING

    def operator(self: Any, *others: Any) -> Any:
        if all(isinstance_remote(other) for other in others):
            return self._link.special(self, name, others)
        if not self._constructed or (self._plain and compares):
            if self._plain:
                return getattr(self._link.content(self), name, lambda *_: NotImplemented)(*others)
            raise Refused(f"arithmetic with {self._name}, which is no plain data")
        value = self._link.special(self, name, others)
        if compares and isinstance_remote(value):
            value._mark(compared=True)
        elif compares and value is not NotImplemented:
            raise Refused(f"{name} of {self._name} gave plain data, which the other side may have told it")
        return value

    return operator


def _forward(name: str) -> Any:
    number = name.strip("_") in NUMBERS

    def operator(self: Any, *others: Any) -> Any:
        if number and self._compared:
            raise Refused(f"{name} of {self._name}, which has seen what it is compared with")
        value = self._link.special(self, name, others)
        if self._compared and isinstance_remote(value):
            value._mark(compared=True)
        return value

    return operator


for _name in ORDERING:
    setattr(RemoteObject, f"__{_name}__", _ordering(f"__{_name}__"))
for _name in (*ARITHMETIC, *INPLACE):
    setattr(RemoteObject, f"__{_name}__", _arithmetic(f"__{_name}__"))
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
        for base in bases:
            if isinstance(base, RemoteType):
                # Only a class that the tests name is one that they ask for.
                kind = Unsupported if base._open else Refused
                raise kind(f"the tests derive a class from {base.__name__}")
        return super().__new__(mcs, name, bases, space)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._link.call(cls, "", args, kwargs, new=cls._constructs)

    def __getattr__(cls, name: str) -> Any:
        if not cls._open or (name.startswith("__") and name.endswith("__") and name != "__members__"):
            raise AttributeError(f"class {cls._name!r} has no attribute {name!r}")
        return _attribute(cls, name, cls._constructs)

    def __setattr__(cls, name: str, value: Any) -> None:
        cls._link.set(cls, name, value)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance_remote(value) and bool(cls._link.is_instance(cls, value))

    def __subclasscheck__(cls, other: Any) -> bool:
        return cls is other or (isinstance(other, RemoteType) and cls._link.is_subclass(cls, other))

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
