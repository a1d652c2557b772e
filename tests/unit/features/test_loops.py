"""When stacks that were seen one after the other lie in one function that does not return."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hangdoc.features.loops import MOST_CALLEES, loop_of
from tests.unit.features.synthetic import stack

names = st.sampled_from("abcd")
stacks = st.lists(names, min_size=1, max_size=6).map(lambda functions: stack(*functions))


def test_a_loop_that_moves() -> None:
    """Different lines of one function under the same caller are a loop that moves."""
    loop = loop_of([stack("wait:3", "main:9"), stack("check", "wait:4", "main:9"), stack("wait:5", "main:9")])
    assert loop is not None
    assert (loop.frame.function, loop.frame.line, loop.lines, loop.moves) == ("wait", 5, 3, True)


def test_a_stack_that_stands() -> None:
    """Equal stacks lie in their innermost function and do not move: a native call looks the same."""
    loop = loop_of([stack("wait:3", "main:9")] * 3)
    assert loop is not None
    assert (loop.frame.function, loop.moves) == ("wait", False)


def test_a_function_called_again_is_no_loop() -> None:
    """A function that was reached through two lines of its caller has returned: at most the caller loops."""
    loop = loop_of([stack("load:3", "main:9"), stack("load:3", "main:10")])
    assert loop is not None
    assert loop.frame.function == "main"


def test_work_goes_deep() -> None:
    """More than a few frames inside the function are work, not a loop."""
    deep = stack(*"abc"[:MOST_CALLEES], "x", "loop:4", "main:9")
    assert loop_of([stack("loop:3", "main:9"), deep]) is None


def test_recursion_is_a_computation() -> None:
    """A function that calls itself is no loop, however little of its stack changes."""
    assert loop_of([stack("walk:2", "walk:3", "main:9"), stack("walk:3", "walk:3", "main:9")]) is None


@given(stacks, st.integers(1, 5))
def test_equal_stacks_never_move(one: tuple[object, ...], count: int) -> None:
    """Whatever the stack, seen unchanged it does not move."""
    loop = loop_of([one] * count)  # type: ignore[list-item]
    assert loop is None or not loop.moves


@given(st.lists(stacks, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=3))
def test_callers_in_common_change_nothing(seen: list[tuple[object, ...]], callers: list[str]) -> None:
    """A loop stays one, at the same lines, when everything is called from one more place."""
    above = stack(*(f"caller_{name}" for name in callers))
    loop, below = loop_of(seen), loop_of([(*one, *above) for one in seen])  # type: ignore[arg-type, misc]
    assert loop is None or below == loop


@given(st.lists(stacks, min_size=2, max_size=4), st.randoms())
def test_their_order_decides_only_the_line(seen: list[tuple[object, ...]], shuffle: object) -> None:
    """Whether it is a loop, and of which function, does not depend on which stack was seen first."""
    mixed = sorted(seen, key=lambda _: shuffle.random())  # type: ignore[attr-defined]
    one, other = loop_of(seen), loop_of(mixed)  # type: ignore[arg-type]
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert (one.frame.function, one.lines, one.moves) == (other.frame.function, other.lines, other.moves)
