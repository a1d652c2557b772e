"""Where the fields of CPython's structures lie, by version.

Offsets are those of the headers of 3.9.18, 3.10.13, 3.11.7, 3.12.1 and 3.13.0 on 64-bit machines with the GIL
(offsetof over Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/pystate.h, cpython/code.h,
cpython/frameobject.h); within a minor version they do not change. Each object is also checked by the name of its type.
"""

from __future__ import annotations

from dataclasses import dataclass

THREAD_NEXT = 8
"""PyThreadState.next, in all versions."""
OBJECT_TYPE, TYPE_NAME, TYPE_DICTIONARY = 8, 24, 288
"""PyObject.ob_type; PyTypeObject.tp_name and tp_dictoffset (0: no attributes; negative: where AttributeLayout says)."""
TUPLE_SIZE, TUPLE_ITEMS = 16, 24
"""PyVarObject.ob_size; PyTupleObject.ob_item."""
BYTES_SIZE, BYTES_DATA = 16, 32
"""PyVarObject.ob_size; PyBytesObject.ob_sval."""
METHOD_DEFINITION, METHOD_SELF = 16, 24
"""PyCFunctionObject.m_ml (whose first field is ml_name) and m_self; PyMethodObject.im_self."""
LOCK_SEMAPHORE = 16
"""lockobject.lock_lock and rlockobject.rlock_lock (Modules/_threadmodule.c, up to 3.13.0): a sem_t on the heap."""
RLOCK_OWNER, RLOCK_COUNT = 24, 32
"""rlockobject.rlock_owner (pthread_self of the holder) and rlock_count."""

DICT_KEYS, DICT_VALUES = 32, 40
"""PyDictObject.ma_keys, ma_values."""
BLOCK_BYTES, BLOCK_LEVEL, MOST_BLOCKS = 12, 8, 20
"""PyTryBlock, its b_level; CO_MAXBLOCKS (up to 3.10)."""


@dataclass(frozen=True)
class FrameLayout:
    """PyFrameObject up to 3.10, _PyInterpreterFrame since. header_bytes: what is read of a frame.

    globals: of the pointer to the dictionary of the module's names (f_globals).
    stack: of the pointer to the value stack up to 3.10; since then it follows the local variables.
    blocks: f_iblock and f_blockstack up to 3.10. instruction, owner: since 3.11.
    """

    code: int
    previous: int
    header_bytes: int
    locals: int
    globals: int
    stack: int = 0
    blocks: tuple[int, int] = (0, 0)
    instruction: int = 0
    owner: int = 0


@dataclass(frozen=True)
class CodeLayout:
    """PyCodeObject. locals: co_nlocalsplus, exceptions: co_exceptiontable, start: co_code_adaptive, all since 3.11."""

    names: int
    filename: int
    name: int
    stack_size: int
    locals: int = 0
    exceptions: int = 0
    start: int = 0


@dataclass(frozen=True)
class AttributeLayout:
    """Where an object without __slots__ keeps its attributes.

    dictionary: of the pointer to its dict, marked by the lowest bit when it leads to an array instead (3.12);
    array: of the pointer to an array (3.11); inline: where the array is in the object itself (3.13); 0: there is none.
    """

    dictionary: int
    array: int = 0
    inline: int = 0


@dataclass(frozen=True)
class Layout:
    """One minor version. to_frame: the pointers to follow from a PyThreadState to its innermost frame.

    interpreters: _PyRuntime.interpreters.head; next_interpreter, threads: of PyInterpreterState.
    thread, native: PyThreadState.thread_id and native_thread_id (0: it has none); text: where the characters of a
    string of ASCII begin (sizeof PyASCIIObject).
    """

    interpreters: int
    next_interpreter: int
    threads: int
    thread: int
    native: int
    to_frame: tuple[int, ...]
    frame: FrameLayout
    code: CodeLayout
    text: int
    attributes: AttributeLayout


def _up_to_3_10(blocks: int) -> Layout:
    """Only f_iblock moved between 3.9 and 3.10; behind it are 20 blocks of 12 bytes, then the local variables."""
    behind = blocks + 8 + 20 * BLOCK_BYTES
    frame = FrameLayout(32, 24, header_bytes=behind, locals=behind, globals=48, stack=64, blocks=(blocks, blocks + 8))
    code = CodeLayout(names=64, filename=104, name=112, stack_size=32)
    return Layout(32, 0, 8, 176, 0, (24,), frame, code, 48, AttributeLayout(16))


@dataclass(frozen=True)
class JumpBack:
    """The jump back of a loop in bytecode, and the instruction that does nothing.

    jumps: its plain opcode and the specialised one; no_operation: its opcode; caches: code units behind a jump.
    """

    jumps: frozenset[int]
    no_operation: int
    caches: int


JUMPS_BACK: dict[int, JumpBack] = {
    11: JumpBack(frozenset({140, 38}), 9, 0),
    12: JumpBack(frozenset({140}), 9, 0),
    13: JumpBack(frozenset({77}), 30, 1),
}
"""By minor version: JUMP_BACKWARD, JUMP_BACKWARD_QUICK and NOP of Include/opcode.h (3.13: opcode_ids.h)."""


LAYOUTS: dict[int, Layout] = {
    9: _up_to_3_10(112),
    10: _up_to_3_10(104),
    11: Layout(
        *(40, 0, 16, 152, 160, (56, 8)),
        FrameLayout(code=32, previous=48, header_bytes=72, locals=72, globals=8, instruction=56, owner=69),
        CodeLayout(names=32, filename=112, name=120, stack_size=68, locals=76, exceptions=40, start=184),
        48,
        AttributeLayout(dictionary=-24, array=-32),
    ),
    12: Layout(
        *(40, 0, 72, 136, 144, (56, 0)),
        FrameLayout(code=0, previous=8, header_bytes=72, locals=72, globals=24, instruction=56, owner=70),
        CodeLayout(names=32, filename=112, name=120, stack_size=64, locals=72, exceptions=40, start=192),
        40,
        AttributeLayout(dictionary=-24),
    ),
    13: Layout(
        *(632, 7264, 7344, 152, 160, (72,)),
        FrameLayout(code=0, previous=8, header_bytes=72, locals=72, globals=24, instruction=56, owner=70),
        CodeLayout(names=32, filename=112, name=120, stack_size=64, locals=72, exceptions=40, start=200),
        40,
        AttributeLayout(dictionary=-24, inline=24),
    ),
}
"""By minor version of Python 3."""
