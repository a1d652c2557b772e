"""Prove that a process that lost its parent descends from a launch: by what only descent can have given it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hangdoc.ending.descriptors import OpenFiles, read_open
from hangdoc.launch.age import by_age, is_older, may_be_older
from hangdoc.launch.commands import is_resource_tracker
from hangdoc.launch.forest import Forest
from hangdoc.launch.image import Image, read_image
from hangdoc.launch.marker import read_marker
from hangdoc.launch.table import Entry, Table
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.status import parse_status

DOUBT = "shares a pipe or socket with member {pid}, but may have it from elsewhere"
CONNECTED = "an engine's process, connected to member {pid} by a unix socket, but may be of another launch"
SAME_LOG = "writes to the same file or pipe as member {pid}, but nothing else ties it to the launch"
READS = "reads what member {pid} writes, but nothing else ties it to the launch"
LEFT_ABOVE = "carries the marker of this launch, but is a child of {pid}, which stands above the launch"
FORKED = "a fork of the same program as member {pid}, but that may have begun outside the launch"
ALONE_AND = "in the launch's control group, in which there is nobody else, and {tie}"
RUN_BY = "an engine's process of {pid}, but whether of this launch or of another that it runs cannot be told"
LEFT_BESIDE = "lost its launcher beside member {pid}, but whether they had the same one cannot be told"
MARKED = "carries the marker of this launch"
NOT_YOUNGER = "{because}, but nothing says that it is younger than the launch"
SAME_MOMENT = "in the process group or session of {pid}, but which of them is the older one cannot be told"


@dataclass(frozen=True)
class Traits:
    """What marks a launch. Each maps to the member that has it; users: who its members run as.

    images: of execs that happened inside the launch; private: pipes and sockets that no outsider holds, made inside
    the launch; shared: those that may have been inherited from outside; outputs: where standard output and error go,
    terminals left out; cgroups: the root's control group, when its parent is in another one; marker_doubt,
    cgroup_doubt: why these prove nothing, "" when they do (exclusive.py); is_alone: in doubt as it is, the control
    group holds nobody else, so that it proves descent together with a second tie; image: the root's own; above: the
    images of the root's ancestors by pid, who may be subreapers: what lost its parent is theirs then, not pid 1's.
    has_launcher: False when the root is only the oldest that is left, so that others of the launch may be older.
    """

    root: ProcessKey
    users: frozenset[int]
    outputs: Mapping[str, int] = field(default_factory=dict)
    images: Mapping[Image, int] = field(default_factory=dict)
    private: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    marker: str = ""
    cgroups: Mapping[str, int] = field(default_factory=dict)
    marker_doubt: str = ""
    cgroup_doubt: str = ""
    is_alone: bool = False
    image: Image | None = None
    above: Mapping[int, Image | None] = field(default_factory=dict)
    has_launcher: bool = True


@dataclass(frozen=True)
class Kin:
    """A process that belongs (because), or of which it is not certain (doubt).

    is_tied: something of this very launch is in its hands; otherwise it only shares what others share, too.
    """

    because: str = ""
    doubt: str = ""
    is_tied: bool = False


def user_of(proc: Path, pid: int) -> int | None:
    """Return the effective user of a process; None when it is gone."""
    try:
        return parse_status((proc / str(pid) / "status").read_bytes()).user_id
    except (OSError, ProcParseError):
        return None


def control_group(proc: Path, pid: int) -> str:
    """Return the path of a process's control group, version 2, or systemd's own hierarchy; "" for none or the root."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return ""
    groups = {name: path for _, name, path in (line.split(":", 2) for line in lines if line.count(":") >= 2)}
    return next((groups[name] for name in ("", "name=systemd") if groups.get(name, "/") != "/"), "")


def read_traits(forest: Forest, root: Entry, members: Iterable[Entry], outsiders: Iterable[Entry]) -> Traits:
    """Read what marks a launch, before anything of it ends."""
    proc, inside = forest.proc, sorted(members, key=lambda one: by_age(one.key))
    parent = forest.parent(root)
    shared = _held_by(proc, inside)
    foreign = {t for one in outsiders if one.kind != "kernel" for t in _private(read_open(proc, one.key))} & set(shared)
    # What the root holds may come from whoever started it, who may have passed it on to others and closed it since;
    # when that cannot be read, nothing can be called made inside.
    opened = read_open(proc, root.key)
    is_told = opened is not None and root.state not in "ZX"
    inherited = _private(opened) if is_told else set(shared)
    own = {target: pid for target, pid in shared.items() if target not in foreign | inherited}
    users = frozenset(user for one in inside if (user := user_of(proc, one.pid)) is not None)
    return Traits(
        root=root.key,
        users=users,
        outputs=_outputs(proc, inside),
        images=_images(forest, root, inside),
        private=own,
        shared=shared,
        marker=read_marker(proc, root.key),
        cgroups=_cgroups(forest, root, parent),
        image=read_image(proc, root.key),
        above={one.pid: read_image(proc, one.key) for one in _ancestors(forest, root)},
        has_launcher=forest.has_launcher(root.pid),
    )


def kin(entry: Entry, traits: Traits, forest: Forest, peers: Mapping[int, int], owned: Mapping[int, int]) -> Kin:
    """Weigh a process that is no member so far.

    Rule: only a program of the launch's user, younger than its launcher, without a parent of its own (it was adopted),
    can be kin. It is when it has the launch's marker, when it is a fork of a member (image.py), when it is in a control
    group that was made for the launch, or when it holds a pipe or socket that was made inside the launch. It works
    because none of these can be had without descent, provided that nobody else has the marker or is in the group
    (exclusive.py). An engine's process that is connected to a member's socket is in doubt: it may be of another launch
    whose launcher is dead, as where one prefills and the other decodes. A child of one of the launch's ancestors may
    have been adopted by it or started by it: only a fork tells. It fails for a program that was executed by a double
    fork into a session of its own with nothing inherited: nothing visible ties it to the launch, so it is left.

    When the launcher is gone nobody knows when it started: who is older than all that is left can be of the launch,
    too. The marker proves that; everything else may have come to both from outside, and is a doubt.

    peers: connected unix sockets; owned: the members' sockets, each with its owner.
    """
    if not _may_be(entry, traits, forest):
        return Kin()
    told = _weighed(entry, traits, forest, peers, owned)
    if told.because == MARKED or not may_be_older(entry.key, traits.root):
        return told
    if told.because:
        return Kin(doubt=NOT_YOUNGER.format(because=told.because), is_tied=True)
    return told if told.doubt else _of_the_same_moment(entry, traits, forest)


def kin_or_sibling(
    entry: Entry, traits: Traits, forest: Forest, peers: Mapping[int, int], owned: Mapping[int, int]
) -> Kin:
    """Weigh a process as `kin` does, and look besides for whom the launch cannot be told from; it takes long."""
    told = kin(entry, traits, forest, peers, owned)
    if told.because or told.is_tied or not _may_be(entry, traits, forest):
        return told
    doubt = _sibling(entry, traits, forest)
    return Kin(doubt=doubt, is_tied=True) if doubt else told


def _sibling(entry: Entry, traits: Traits, forest: Forest) -> str:
    """Say of which launch without a launcher an engine's process may be, too; "" for none.

    Rule: two that one notebook runs, or that stand in one process group or session without a parent, are of one launch
    or of two. Only where each has others of its own that a pipe joins (orphans.py) are they told apart.
    """
    root = forest.table.get(traits.root.pid)
    if root is None or root.key != traits.root or traits.has_launcher:
        return ""
    if not entry.sighting.is_kin or is_resource_tracker(entry.argv):
        return ""
    host, own = forest.host(entry), forest.host(root)
    is_alike = entry.sighting.engine == root.sighting.engine or (host is not None and not entry.sighting.is_titled)
    is_near = bool({entry.group, entry.session} & {root.group, root.session}) if host is None else True
    if not is_alike or not is_near or (host and host.key) != (own and own.key):
        return ""
    home = forest.home(entry)
    is_led = home is None or (forest.has_launcher(home.root) and entry.sighting.is_titled)
    if home is None or is_led or forest.parent(entry) is not host:
        return ""
    if len(forest.members(home.root)) > 1 and len(forest.members(root.pid)) > 1:
        return ""
    return RUN_BY.format(pid=host.pid) if host is not None else LEFT_BESIDE.format(pid=root.pid)


def _weighed(entry: Entry, traits: Traits, forest: Forest, peers: Mapping[int, int], owned: Mapping[int, int]) -> Kin:
    forked = _forked(entry, traits, forest)
    if forked.because:
        return forked
    if forest.parent(entry) is not None:
        return forked if forked.doubt else _left_above(entry, traits, forest)
    opened = read_open(forest.proc, entry.key)
    because = next(_proofs(entry, traits, forest, opened), "")
    if forked.doubt and not traits.has_launcher and not because:
        return forked  # it has the command line of the launcher that is gone, of which it may be a fork
    if because or entry.sighting.is_launcher:
        return Kin(because)  # a launcher is the root of a launch of its own, whatever else it shares with this one
    in_group = traits.is_alone and control_group(forest.proc, entry.pid) in traits.cgroups
    if doubt := forked.doubt or _tie(entry, traits, opened, peers, owned):
        tie = doubt.partition(", but")[0]
        return Kin(ALONE_AND.format(tie=tie)) if in_group else Kin(doubt=doubt, is_tied=True)
    return Kin(doubt=_shares(entry, traits, forest), is_tied=in_group)


def _of_the_same_moment(entry: Entry, traits: Traits, forest: Forest) -> Kin:
    """Weigh who would be of the launch if he were younger than its root, where that cannot be decided (age.py)."""
    root = forest.table.get(traits.root.pid)
    if root is None or is_older(entry.key, traits.root):
        return Kin()
    if not {entry.group, entry.session} & {root.group, root.session}:
        return Kin()
    return Kin(doubt=SAME_MOMENT.format(pid=traits.root.pid), is_tied=True)


def _tie(
    entry: Entry, traits: Traits, opened: OpenFiles | None, peers: Mapping[int, int], owned: Mapping[int, int]
) -> str:
    """Say what it has in its hands that a member has, too, which may come from elsewhere; "" for nothing."""
    sockets = opened.sockets() if opened is not None and entry.sighting.is_kin else set()
    ends = sorted(owned[peer] for one in sockets if (peer := peers.get(one, 0)) in owned)
    if ends:
        return CONNECTED.format(pid=ends[0])
    doubts = sorted(_private(opened) & set(traits.shared))
    if doubts:
        return DOUBT.format(pid=traits.shared[doubts[0]])
    if opened is None:
        return ""
    for targets, says in ((opened.outputs(), SAME_LOG), (opened.piped_in(), READS)):
        for one in sorted(targets & set(traits.outputs)):
            return says.format(pid=traits.outputs[one])
    return ""


def _shares(entry: Entry, traits: Traits, forest: Forest) -> str:
    """Say that it has the marker or the control group, where these prove nothing; "" when it has neither."""
    if traits.marker_doubt and read_marker(forest.proc, entry.key) == traits.marker:
        return traits.marker_doubt
    return traits.cgroup_doubt if control_group(forest.proc, entry.pid) in traits.cgroups else ""


def _left_above(entry: Entry, traits: Traits, forest: Forest) -> Kin:
    """Weigh a child of one of the launch's ancestors: a marker that the ancestor has not cannot come from there."""
    above = forest.table[entry.ppid]
    if not traits.marker or read_marker(forest.proc, entry.key) != traits.marker:
        return Kin()
    if entry.sighting.is_launcher or read_marker(forest.proc, above.key) == traits.marker:
        return Kin()
    if traits.marker_doubt:
        return Kin(doubt=traits.marker_doubt)
    return Kin(doubt=LEFT_ABOVE.format(pid=above.pid), is_tied=True)


def _forked(entry: Entry, traits: Traits, forest: Forest) -> Kin:
    """Weigh the image: one whose exec was inside the launch proves descent, whoever adopted the process."""
    image = read_image(forest.proc, entry.key)
    if image is None:
        return Kin()
    if image in traits.images:
        return Kin(f"a fork of {traits.images[image]}, its parent gone")
    if image == traits.image and traits.above.get(entry.ppid) != image:
        return Kin(doubt=FORKED.format(pid=traits.root.pid), is_tied=True)
    return Kin()


def _proofs(entry: Entry, traits: Traits, forest: Forest, opened: OpenFiles | None) -> Iterator[str]:
    """Yield what proves descent: the marker, the control group, what was made inside the launch."""
    if traits.marker and not traits.marker_doubt and read_marker(forest.proc, entry.key) == traits.marker:
        yield MARKED
    group = "" if traits.cgroup_doubt else control_group(forest.proc, entry.pid)
    if group in traits.cgroups and not entry.sighting.is_launcher:
        yield f"in the control group that was made for this launch ({group})"
    ours = sorted(_private(opened) & set(traits.private))
    if ours and not entry.sighting.is_launcher:
        yield f"holds an end of {ours[0]}, made inside the launch (member {traits.private[ours[0]]})"


def _may_be(entry: Entry, traits: Traits, forest: Forest) -> bool:
    kinds = {"program", "companion", "wrapper"} if traits.has_launcher else {"program", "companion", "wrapper", "host"}
    is_program = entry.kind in kinds and entry.pid not in forest.never and entry.pid != 1
    is_possible = not traits.has_launcher or not is_older(entry.key, traits.root)
    if not is_program or not is_possible or entry.state in "ZX" or entry.pid in traits.above:
        return False
    is_lost = forest.parent(entry) is None or entry.ppid in traits.above
    return is_lost and user_of(forest.proc, entry.pid) in traits.users


def _ancestors(forest: Forest, root: Entry) -> Iterator[Entry]:
    """Yield who stands above the root, pid 1 left out: whoever it adopts has no parent anyway."""
    seen = {root.pid}
    above = forest.table.get(root.ppid)
    while above is not None and above.pid not in {1, *seen} and above.kind != "kernel":
        seen.add(above.pid)
        yield above
        above = forest.table.get(above.ppid)


def _images(forest: Forest, root: Entry, inside: list[Entry]) -> dict[Image, int]:
    """Return the images whose exec happened inside: the root's own only when no outsider can have forked from it."""
    own = read_image(forest.proc, root.key)
    if own is None:
        return {}  # nobody can say any more which of the others it inherited
    images: dict[Image, int] = {own: root.pid}
    for one in inside:
        image = read_image(forest.proc, one.key)
        if image is not None:
            images.setdefault(image, one.pid)
    parent = forest.parent(root)
    above = read_image(forest.proc, parent.key) if parent is not None else None
    if not (root.sighting.is_launcher or above is not None) or own == above:
        # By image, not by who was listed first: within one clock tick a child's pid may come before its parent's.
        del images[own]
    return images


def _cgroups(forest: Forest, root: Entry, parent: Entry | None) -> dict[str, int]:
    """Return the root's control group if its parent is in another one: then it may have been made for the launch."""
    above = parent or forest.table.get(root.ppid)
    group = control_group(forest.proc, root.pid)
    if not group or above is None:
        return {}
    return {} if control_group(forest.proc, above.pid) == group else {group: root.pid}


def _held_by(proc: Path, entries: list[Entry]) -> dict[str, int]:
    held: dict[str, int] = {}
    for one in entries:
        for target in _private(read_open(proc, one.key)):
            held.setdefault(target, one.pid)
    return held


def _outputs(proc: Path, entries: list[Entry]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in entries:
        opened = read_open(proc, one.key)
        for target in opened.outputs() if opened is not None else ():
            found.setdefault(target, one.pid)
    return found


def _private(opened: OpenFiles | None) -> set[str]:
    return opened.private() if opened is not None else set()


def close_over(
    strangers: list[Entry],
    table: Table,
    parents: Mapping[int, ProcessKey],
    weigh: Callable[[Entry], str],
    vouches: Callable[[Entry], bool] = lambda _: True,
) -> dict[int, str]:
    """Admit strangers until nobody is left who belongs: by their own traits, or as the child of who belongs already.

    parents: whose children belong without further reason; vouches: says whether this holds for somebody admitted, too.
    Returns the reasons by pid, the oldest process first.
    """
    known = dict(parents)
    admitted: dict[int, str] = {}
    waiting = sorted(strangers, key=lambda one: by_age(one.key))
    while True:
        fresh: dict[int, str] = {}
        for one in waiting:
            parent = table.get(one.ppid)
            if parent is not None and known.get(parent.pid) == parent.key and is_older(parent.key, one.key):
                fresh[one.pid] = f"child of {parent.pid}"
            elif because := weigh(one):
                fresh[one.pid] = because
            if one.pid in fresh and vouches(one):
                known[one.pid] = one.key
        if not fresh:
            return admitted
        admitted.update(fresh)
        waiting = [one for one in waiting if one.pid not in fresh]
