"""What a launch stands in: shared memory, its port, proxies, and what earlier launches left behind."""

from __future__ import annotations

from msgspec import Struct

from hangdoc.model.link import LinkEnd
from hangdoc.model.reading import Reading


class Room(Struct, frozen=True, array_like=True):
    """How large a file system is, and how much of it is free."""

    total_bytes: int
    free_bytes: int


class Surroundings(Struct, frozen=True, tag="surroundings", kw_only=True):
    """The surroundings probe's reading, of the launch as a whole.

    shared_memory: /dev/shm as the launcher sees it; listeners: outside the launch, who listens on the launch's port;
    listening: a member listens there; proxied: a request of the launcher to its own address goes to the HTTP proxy that
    its environment names; orphans: engine processes of no launch that lives.
    """

    shared_memory: Reading[Room]
    listeners: Reading[tuple[LinkEnd, ...]]
    listening: Reading[bool]
    proxied: Reading[bool]
    orphans: Reading[tuple[LinkEnd, ...]]
