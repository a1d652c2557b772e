"""What NCCL's RAS service says: how many collectives each rank has launched, and which ranks it cannot reach."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.process import ProcessKey

RasOutcome: TypeAlias = Literal["answered", "off", "refused", "stranger", "silent", "cut", "garbled", "too-long"]
"""answered: by this launch's own NCCL; off: NCCL_RAS_ENABLE=0; refused: nobody listens, as before the first
communicator; stranger: who listens or answers is no member; silent: somebody listens and gives no whole answer before
the deadline; cut: the connection ended before the answer did; garbled: no answer of RAS; too-long: more than hangdoc
reads."""


class RasRank(Struct, frozen=True, array_like=True):
    """One rank of a communicator. operations: collectives it has launched, None for a rank that RAS cannot reach.

    pid: as NCCL knows it, 0 when it does not tell; process: the member that this is, None where that is not known.
    CUDA graphs launch collectives that are not counted: counts that stand are no sign of anything while they replay.
    """

    rank: int
    operations: int | None
    pid: int
    process: ProcessKey | None = None


class Ras(Struct, frozen=True, kw_only=True, tag="ras"):
    """The ras probe's reading of the launch, one question.

    ranks: of the communicator and the operation whose counts differ most, as far as they are told one by one;
    leading: the highest count of any rank there; unreached: ranks of any communicator that RAS calls missing.
    """

    port: int
    outcome: RasOutcome
    took_s: float = 0.0
    ranks: tuple[RasRank, ...] = ()
    leading: int | None = None
    unreached: tuple[RasRank, ...] = ()
