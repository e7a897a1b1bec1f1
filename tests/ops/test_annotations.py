"""What the suite's checks of annotations notice: a wrong shape, in closures too, each called with what it holds."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import typechecker
from jaxtyping import Float, TypeCheckError
from torch import Tensor


def added(value: float) -> Callable[[Tensor, Tensor], Tensor]:
    def add(a: Float[Tensor, "B T"], b: Float[Tensor, "B"]) -> Float[Tensor, "B T"]:
        return a + b[:, None] + value

    return typechecker.sparingly(add)


def test_a_wrong_shape_is_refused_in_every_closure() -> None:
    a, wrong = torch.zeros(2, 3), torch.zeros(3)
    for value in (1.0, 2.0):
        with pytest.raises(TypeCheckError):
            added(value)(a, wrong)


def test_later_calls_of_a_test_are_not_checked() -> None:
    for _ in range(typechecker.CALLS):
        added(0.0)(torch.zeros(2, 3), torch.zeros(2))
    assert added(0.0)(torch.zeros(3, 3), torch.zeros(1)).shape == (3, 3)


def test_each_closure_holds_its_own() -> None:
    a, b = torch.zeros(1, 1), torch.zeros(1)
    assert [float(added(v)(a, b)) for v in (1.0, 2.0, 3.0, 4.0)] == [1.0, 2.0, 3.0, 4.0]


def test_closures_call_each_other_and_run_in_threads() -> None:
    def counted(n: int) -> Callable[[], int]:
        def count() -> int:
            return n + (counted(n - 1)() if n else 0)

        return typechecker.sparingly(count)

    assert counted(4)() == 10
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda n: counted(n)(), range(5))) == [0, 1, 3, 6, 10]
