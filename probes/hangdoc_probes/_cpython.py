"""Objects of a CPython in another process's memory: where its sys module is, and what strings and types say.

For builds with a global interpreter lock, 64 bit, 3.9 to 3.14. What an object is, is asked of its type; where a field
lies, of the type's own table of members. What is left and has no such table is the head of four public structures,
named below with their header; whatever does not look as they say is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hangdoc_probes._image import Image, UnreadError
from hangdoc_probes._symbols import Exports

OLDEST, NEWEST = (3, 9), (3, 14)

MOST_KEYS = 4096
"""Names in a module; arbitrary."""
MOST_MEMBERS = 64
"""Members of a type, and types it derives from; arbitrary."""
MOST_PENDING_BYTES = 1 << 20
"""Of one string or list. Arbitrary: a stream keeps 8,192 bytes (chunk_size in Modules/_io/textio.c)."""


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


def cpython(image: Image, table: Exports) -> Cpython | None:
    """Find the interpreter that a program or library exports; None where it exports none."""
    runtime = table.find(image, b"_PyRuntime")
    if runtime is None:
        return None
    names = (b"PyType_Type", b"PyDict_Type", b"PyUnicode_Type", b"PyBytes_Type", b"PyList_Type")
    symbols = [table.find(image, name) for name in names]
    addresses = [symbol.address for symbol in symbols if symbol is not None]
    if len(addresses) < len(names):
        raise image.refused("unsupported", "this python does not export its types")
    # struct _object, Include/object.h: ob_refcnt 0, ob_type 8. Free-threaded and tracing builds have more before it.
    if any(image.number(address + 8) != addresses[0] for address in addresses):
        raise image.refused("unsupported", "this python has another object header (free-threaded or a debug build)")
    return Cpython(_version(image, table), runtime.address, runtime.size_bytes, *addresses[1:])


def _version(image: Image, table: Exports) -> tuple[int, int]:
    """Py_Version (Include/cpython/pylifecycle.h) since 3.11; PyFrame_GetCode came in 3.9."""
    number = table.find(image, b"Py_Version")
    if number is None:
        found = OLDEST if table.find(image, b"PyFrame_GetCode") else (3, 8)
    else:
        packed = image.number(number.address)
        found = (packed >> 24 & 0xFF, packed >> 16 & 0xFF)
    if not OLDEST <= found <= NEWEST:
        raise image.refused("unsupported", f"python {found[0]}.{found[1]} is not one whose objects are known here")
    return found


def type_of(image: Image, item: int) -> int:
    """Return the address of an object's type."""
    return image.number(item + 8)


def type_name(image: Image, item: int) -> str:
    """Return the name of an object's type: PyTypeObject.tp_name 24, Include/cpython/object.h."""
    return image.name(image.number(type_of(image, item) + 24)).decode("utf-8", "replace")


def members(image: Image, item: int) -> dict[bytes, int]:
    """Return where the members of an object lie, as its type and the types under it say.

    PyTypeObject (Include/cpython/object.h, 3.9 to 3.14): tp_members 240, tp_base 256. PyMemberDef
    (Include/structmember.h, since 3.12 Include/descrobject.h): name 0, offset 16, size 40.
    """
    found: dict[bytes, int] = {}
    kind = type_of(image, item)
    for _ in range(MOST_MEMBERS):
        if not kind:
            return found
        table, _, base = image.numbers(kind + 240, 3)
        for number in range(MOST_MEMBERS if table else 0):
            name, _, offset = image.numbers(table + 40 * number, 3)
            if not name:
                break
            found.setdefault(image.name(name), offset)
        kind = base
    raise image.refused("failed", "a type has no end of bases")


def items(image: Image, python: Cpython, mapping: int) -> Iterator[tuple[int, int]]:
    """Yield the keys and values of a dictionary.

    PyDictObject (Include/cpython/dictobject.h): ma_keys 32, ma_values 40 (none: not an instance's). PyDictKeysObject
    until 3.10 (Objects/dict-common.h): dk_size 8, dk_nentries 32, indices 40. Since 3.11
    (Include/internal/pycore_dict.h): dk_log2_index_bytes 9, dk_kind 10 (1: entries of key and value only),
    dk_nentries 24, indices 32.
    """
    keys, values = image.numbers(mapping + 32, 2)
    if values:
        raise image.refused("failed", "a dictionary without entries of its own")
    head = image.piece(keys, 40)
    if python.version >= (3, 11):
        log2_bytes, kind = head[9], head[10]
        (count,) = struct.unpack_from("<Q", head, 24)
        width, start = (16 if kind == 1 else 24), keys + 32 + (1 << min(log2_bytes, 32))
    else:
        size, _, _, count = struct.unpack_from("<4Q", head, 8)
        index_bytes = 1 if size <= 0xFF else 2 if size <= 0xFFFF else 4
        width, start = 24, keys + 40 + size * index_bytes
    if count > MOST_KEYS:
        raise image.refused("failed", "a dictionary of more names than a module has")
    table = image.piece(start, width * count)
    for number in range(count):
        key, value = struct.unpack_from("<2Q", table, width * number + width - 16)
        if key and value:
            yield key, value


def key_of(image: Image, python: Cpython, item: int) -> bytes | None:
    """Return a short ASCII key; None for any other one."""
    head = image.piece(item, python.text_offset + 24)
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
    count, table = image.numbers(item + 16, 2)
    if count > MOST_PENDING_BYTES // 8:
        raise image.refused("failed", "more text than a stream keeps")
    # A line feed is one and the same object a thousand times.
    addresses = image.numbers(table, count) if count else ()
    texts = {address: _piece(image, python, address) for address in set(addresses)}
    return b"".join(texts[address] for address in addresses)


def _piece(image: Image, python: Cpython, item: int) -> bytes:
    head = _head(image, item, python.text_offset + SHORT_BYTES)
    kind, length = struct.unpack_from("<2Q", head, 8)
    if kind not in {python.bytes_type, python.str_type} or length > MOST_PENDING_BYTES:
        raise image.refused("failed", "what a stream keeps is neither text nor bytes")
    start, size = (32, length) if kind == python.bytes_type else (python.text_offset, length + 1)
    data = head[start : start + size] if start + size <= len(head) else image.piece(item + start, size)
    if kind == python.bytes_type:
        return data
    if not data.isascii() or data[-1]:
        raise image.refused("failed", "what a stream keeps is not the plain text it should be")
    return data[:-1]


def _head(image: Image, item: int, length: int) -> bytes:
    """Read an object and what follows, so that a short text takes one read; less where the memory ends."""
    try:
        return image.piece(item, length)
    except UnreadError:
        return image.piece(item, 24)
