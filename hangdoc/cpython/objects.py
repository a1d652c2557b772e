"""Objects of a CPython in another process's memory: where its sys module is, and what strings and types say.

For builds with a global interpreter lock, 64 bit, 3.9 to 3.14. What an object is, is asked of its type; where a field
lies, of the type's own table of members. What is left and has no such table is the head of four public structures,
named below with their header; whatever does not look as they say is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc.cpython.layouts import BYTES_DATA, DICT_KEYS, OBJECT_TYPE, TYPE_NAME
from hangdoc.cpython.runtime import Interpreter, exported_version
from hangdoc.memory.elf import Exports, symbol
from hangdoc.memory.image import Image, UnknownLayoutError, UnreadableError, c_string, u64, words

OLDEST, NEWEST = (3, 9), (3, 14)

MOST_KEYS = 4096
"""Names in a module; arbitrary."""
MOST_MEMBERS = 64
"""Members of a type, and types it derives from; arbitrary."""
MOST_PENDING_BYTES = 1 << 20
"""Of one string or list. Arbitrary: a stream keeps 8,192 bytes (chunk_size in Modules/_io/textio.c)."""
LONGEST_NAME_BYTES = 128
"""Names of types and members that are compared; longer ones are cut. Arbitrary."""
SHORT_BYTES = 64
"""Text that is read together with its object. Arbitrary: most of what print() is given is shorter."""


@dataclass(frozen=True)
class Cpython:
    """An interpreter's fixed addresses. version: (3, 12); before 3.11 it does not say, and is 3.9 or 3.10."""

    version: tuple[int, int]
    runtime: int
    runtime_bytes: int
    dict_type: int
    str_type: int
    bytes_type: int
    list_type: int

    @property
    def text_offset(self) -> int:
        """Where the characters of an ASCII string begin: sizeof(PyASCIIObject), Include/cpython/unicodeobject.h.

        The field wstr left in 3.12.
        """
        return 40 if self.version >= (3, 12) else 48


def cpython(image: Image, found: Interpreter) -> Cpython:
    """Return the addresses of an interpreter; UnknownLayoutError when it is no build that is known."""
    table = found.exports
    names = ("PyType_Type", "PyDict_Type", "PyUnicode_Type", "PyBytes_Type", "PyList_Type")
    addresses = [one.address for name in names if (one := symbol(image, table, name)) is not None]
    if len(addresses) < len(names):
        raise UnknownLayoutError("this python does not export its types", "")
    # struct _object, Include/object.h: ob_refcnt 0, ob_type 8. Free-threaded and tracing builds have more before it.
    if any(u64(image, address + OBJECT_TYPE) != addresses[0] for address in addresses):
        raise UnknownLayoutError("this python has another object header (free-threaded or a debug build)", "")
    runtime = found.runtime
    return Cpython(_version(image, table), runtime.address, runtime.size_bytes, *addresses[1:])


def _version(image: Image, table: Exports) -> tuple[int, int]:
    """Before 3.11, which does not say it: PyFrame_GetCode came in 3.9."""
    found = exported_version(image, table)
    if found is None:
        found = OLDEST if symbol(image, table, "PyFrame_GetCode") else (3, 8)
    if not OLDEST <= found <= NEWEST:
        raise UnknownLayoutError(f"python {found[0]}.{found[1]} is not one whose objects are known here", "")
    return found


def numbers(image: Image, address: int, count: int) -> tuple[int, ...]:
    """Return unsigned numbers of 8 bytes that lie side by side."""
    return words(image.read(address, 8 * count))


def type_of(image: Image, item: int) -> int:
    """Return the address of an object's type."""
    return u64(image, item + OBJECT_TYPE)


def type_name(image: Image, item: int) -> str:
    """Return the name of an object's type."""
    return c_string(image, u64(image, type_of(image, item) + TYPE_NAME), LONGEST_NAME_BYTES)


def members(image: Image, item: int) -> dict[str, int]:
    """Return where the members of an object lie, as its type and the types under it say.

    PyTypeObject (Include/cpython/object.h, 3.9 to 3.14): tp_members 240, tp_base 256. PyMemberDef
    (Include/structmember.h, since 3.12 Include/descrobject.h): name 0, offset 16, size 40.
    """
    found: dict[str, int] = {}
    kind = type_of(image, item)
    for _ in range(MOST_MEMBERS):
        if not kind:
            return found
        table, _, base = numbers(image, kind + 240, 3)
        for number in range(MOST_MEMBERS if table else 0):
            name, _, offset = numbers(image, table + 40 * number, 3)
            if not name:
                break
            found.setdefault(c_string(image, name, LONGEST_NAME_BYTES), offset)
        kind = base
    raise UnreadableError("a type has no end of bases", "")


def items(image: Image, version: tuple[int, int], mapping: int) -> Iterator[tuple[int, int]]:
    """Yield the keys and values of a dictionary.

    PyDictObject (Include/cpython/dictobject.h): ma_keys 32, ma_values 40 (none: not an instance's). PyDictKeysObject
    until 3.10 (Objects/dict-common.h): dk_size 8, dk_nentries 32, indices 40. Since 3.11
    (Include/internal/pycore_dict.h): dk_log2_index_bytes 9, dk_kind 10 (1: entries of key and value only),
    dk_nentries 24, indices 32.
    """
    keys, values = numbers(image, mapping + DICT_KEYS, 2)
    if values:
        raise UnreadableError("a dictionary without entries of its own", "")
    head = image.read(keys, 40)
    if version >= (3, 11):
        log2_bytes, kind = head[9], head[10]
        (count,) = struct.unpack_from("<Q", head, 24)
        width, start = (16 if kind == 1 else 24), keys + 32 + (1 << min(log2_bytes, 32))
    else:
        size, _, _, count = struct.unpack_from("<4Q", head, 8)
        index_bytes = 1 if size <= 0xFF else 2 if size <= 0xFFFF else 4
        width, start = 24, keys + 40 + size * index_bytes
    if count > MOST_KEYS:
        raise UnreadableError("a dictionary of more names than a module has", "")
    table = image.read(start, width * count) if count else b""
    for number in range(count):
        key, value = struct.unpack_from("<2Q", table, width * number + width - 16)
        if key and value:
            yield key, value


def key_of(image: Image, python: Cpython, item: int) -> bytes | None:
    """Return a short ASCII key; None for any other one."""
    head = image.read(item, python.text_offset + 24)
    kind, length = struct.unpack_from("<2Q", head, 8)
    text = head[python.text_offset :]
    if kind != python.str_type or not 0 < length < len(text) or text[length]:
        return None
    return text[:length]


def pieces(image: Image, python: Cpython, item: int) -> bytes:
    """Return what a stream keeps until it is enough to be written: ASCII text, bytes, or a list of these.

    PyBytesObject (Include/cpython/bytesobject.h): ob_size 16, ob_sval 32. PyASCIIObject: length 16, then the text.
    PyListObject (Include/cpython/listobject.h): ob_size 16, ob_item 24.
    """
    if type_of(image, item) != python.list_type:
        return _piece(image, python, item)
    count, table = numbers(image, item + 16, 2)
    if count > MOST_PENDING_BYTES // 8:
        raise UnreadableError("more text than a stream keeps", "")
    # A line feed is one and the same object a thousand times.
    addresses = numbers(image, table, count) if count else ()
    texts = {address: _piece(image, python, address) for address in set(addresses)}
    return b"".join(texts[address] for address in addresses)


def _piece(image: Image, python: Cpython, item: int) -> bytes:
    head = _head(image, item, python.text_offset + SHORT_BYTES)
    kind, length = struct.unpack_from("<2Q", head, 8)
    if kind not in {python.bytes_type, python.str_type} or length > MOST_PENDING_BYTES:
        raise UnreadableError("what a stream keeps is neither text nor bytes", "")
    start, size = (BYTES_DATA, length) if kind == python.bytes_type else (python.text_offset, length + 1)
    data = head[start : start + size] if start + size <= len(head) else image.read(item + start, size)
    if kind == python.bytes_type:
        return data
    if not data.isascii() or data[-1]:
        raise UnreadableError("what a stream keeps is not the plain text it should be", "")
    return data[:-1]


def _head(image: Image, item: int, length: int) -> bytes:
    """Read an object and what follows, so that a short text takes one read; less where the memory ends."""
    try:
        return image.read(item, length)
    except UnreadableError:
        return image.read(item, 24)
