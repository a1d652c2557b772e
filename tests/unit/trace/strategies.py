"""Random records, made from the records' own types: a new field is covered on the day it is added."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.model.stack import Stack, Stacks
from hangdoc.trace.records import SCHEMA, Header, Trace

Text: TypeAlias = Callable[[type[Struct], str], st.SearchStrategy[str]]
"""The texts to put into a field of a record."""

INTEGERS = st.integers(-(2**63), 2**64 - 1)
"""What msgspec writes; the kernel's own numbers fit."""

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def any_text(record: type[Struct], field: str) -> st.SearchStrategy[str]:
    return st.text(max_size=8)


@cache
def records(record: type[Struct], text: Text = any_text) -> st.SearchStrategy[Any]:
    """Random records of a type."""
    fields = msgspec.structs.fields(record)
    return st.builds(record, **{field.name: _values(field.type, text(record, field.name), text) for field in fields})


@cache
def _values(annotation: Any, text: st.SearchStrategy[str], inner: Text) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - a kind each
    origin, args = get_origin(annotation), get_args(annotation)
    match origin or annotation:
        case found if found in (str, int, float, bool, NoneType):
            return {str: text, int: INTEGERS, float: FLOATS, bool: st.booleans(), NoneType: st.none()}[found]
        case found if found is Literal:
            return st.sampled_from(args)
        case found if found in (Union, UnionType):
            return st.one_of(*(_values(arg, text, inner) for arg in args))
        case found if found is tuple and args[-1] is not Ellipsis:
            return st.tuples(*(_values(arg, text, inner) for arg in args))
        case found if found is tuple:
            return st.lists(_values(args[0], text, inner), max_size=2).map(tuple)
        case found if found is dict:
            return st.dictionaries(_values(args[0], text, inner), _values(args[1], text, inner), max_size=2)
        case found if found is Known:
            return _values(args[0], text, inner).map(Known)
    return records(annotation, inner)


def every_variant(annotation: Any, text: str) -> list[Any]:  # noqa: PLR0911 - a kind each
    """Values of a type that together hold the text in every place where a value of the type can hold one."""
    origin, args = get_origin(annotation), get_args(annotation)
    match origin or annotation:
        case found if found in (str, int, float, bool, NoneType):
            return [{str: text, int: 1, float: 0.5, bool: True, NoneType: None}[found]]
        case found if found is Literal:
            return [args[0]]
        case found if found in (Union, UnionType):
            return [value for arg in args for value in every_variant(arg, text)]
        case found if found is tuple and args[-1] is not Ellipsis:
            return [tuple(every_variant(arg, text)[0] for arg in args)]
        case found if found is tuple:
            return [tuple(every_variant(args[0], text))]
        case found if found is dict:
            return [{key: value} for key in every_variant(args[0], text) for value in every_variant(args[1], text)]
        case found if found is Known:
            return [Known(value) for value in every_variant(args[0], text)]
    fields = {field.name: every_variant(field.type, text) for field in msgspec.structs.fields(annotation)}
    count = max(map(len, fields.values()), default=1)
    return [annotation(**{name: found[i % len(found)] for name, found in fields.items()}) for i in range(count)]


@st.composite
def traces(draw: st.DrawFn, text: Text = any_text) -> Trace:
    """Random whole traces; each thread's stack is in the table."""
    header = msgspec.structs.replace(draw(records(Header, text)), schema=SCHEMA)
    stacks = tuple(draw(st.lists(_values(Stack, st.nothing(), text), min_size=1, max_size=4)))
    snapshots = draw(st.lists(records(Snapshot, text), max_size=3))
    rounds = tuple(_within(snapshot, len(stacks)) for snapshot in snapshots)
    return Trace(header=header, stacks=stacks, snapshots=rounds, complete=draw(st.booleans()))


def _within(snapshot: Snapshot, stacks: int) -> Snapshot:
    return msgspec.structs.replace(
        snapshot, samples=tuple(_sample_within(sample, stacks) for sample in snapshot.samples)
    )


def _sample_within(sample: Sample, stacks: int) -> Sample:
    if not (isinstance(sample.reading, Known) and isinstance(sample.reading.value, Stacks)):
        return sample
    threads = tuple(
        msgspec.structs.replace(thread, stack=thread.stack % stacks) for thread in sample.reading.value.threads
    )
    return msgspec.structs.replace(sample, reading=Known(Stacks(threads)))
