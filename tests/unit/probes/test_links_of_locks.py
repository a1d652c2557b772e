"""Who holds the file lock that a thread waits for, on real processes."""

from __future__ import annotations

from pathlib import Path

from tests.unit.probes.link_patients import ends_of, links_of, own_ends_of, patient


def test_a_lock_whose_taker_has_ended_is_held_by_its_child(tmp_path: Path) -> None:
    """The kernel goes on naming the process that took a flock; the child that has a copy of the descriptor holds it."""
    code = """
heard, word = os.pipe()
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.flock(mine, fcntl.LOCK_EX)
    pid = other(rest); os.write(word, str(pid).encode()); os._exit(0)
taker = other(act); pid = int(os.read(heard, 9)); os.waitpid(taker, 0); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.flock(lock, fcntl.LOCK_EX)"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "file-lock")
        assert ends_of(link) == [other]
        assert "has ended" in link.detail


def test_a_lock_whose_taker_has_closed_it_is_held_by_its_child(tmp_path: Path) -> None:
    """Who took a flock, and closed its descriptor, has nothing to let go of: its child has the only copy."""
    code = """
mine = open(sys.argv[1] + "/lock", "w"); fcntl.flock(mine, fcntl.LOCK_EX)
pid = other(rest); mine.close(); lock = open(sys.argv[1] + "/lock", "w")
if os.fork() == 0:
    rest()
ready(pid); fcntl.flock(lock, fcntl.LOCK_EX)"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "file-lock")
        assert own_ends_of(link) == ends_of(link) == [other]
        assert not link.weak
        assert f"pid {target.pid}, which took it, has closed it" in link.detail


def test_everybody_who_shares_a_lock_has_to_let_go(tmp_path: Path) -> None:
    """Of a lock that readers share each holds its own, and all of them keep a writer waiting, whoever came first."""
    code = """
heard, word = os.pipe()
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.flock(mine, fcntl.LOCK_SH); os.write(word, b"x"); rest()
pid = other(act); os.read(heard, 1); other(act); os.read(heard, 1); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.flock(lock, fcntl.LOCK_EX)"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "file-lock")
        assert other in own_ends_of(link)
        assert len(own_ends_of(link)) == len(ends_of(link)) == 2
        assert not link.weak


def test_only_who_holds_the_wanted_bytes_keeps_a_record_lock(tmp_path: Path) -> None:
    """A record lock of other bytes of the file is in nobody's way."""
    code = """
heard, word = os.pipe()
def act(first):
    mine = open(sys.argv[1] + "/lock", "r+b"); fcntl.lockf(mine, fcntl.LOCK_EX, 10, first); os.write(word, b"x"); rest()
open(sys.argv[1] + "/lock", "w").close()
other(lambda: act(0)); os.read(heard, 1); pid = other(lambda: act(10)); os.read(heard, 1)
lock = open(sys.argv[1] + "/lock", "r+b")
ready(pid); fcntl.lockf(lock, fcntl.LOCK_EX, 5, 15)"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "file-lock")
        assert own_ends_of(link) == [other]


def test_a_lease_that_is_being_broken_hides_no_lock(tmp_path: Path) -> None:
    """Whoever waits for a lease stands in the table without a file: the locks beside it are told all the same."""
    code = """
leased = open(sys.argv[1] + "/leased", "w").name
heard, word = os.pipe()
def hold():
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    mine = open(leased); fcntl.fcntl(mine, fcntl.F_SETLEASE, fcntl.F_RDLCK); os.write(word, b"x"); rest()
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.flock(mine, fcntl.LOCK_EX); os.write(word, b"x"); rest()
other(hold); os.read(heard, 1); other(lambda: open(leased, "w"))
while "BREAKER" not in open("/proc/locks").read(): pass
pid = other(act); os.read(heard, 1); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.flock(lock, fcntl.LOCK_EX)"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "file-lock")
        assert own_ends_of(link) == [other]


def test_who_has_the_lease_that_an_open_waits_for(tmp_path: Path) -> None:
    """An open(2) that waits until a lease is given back names who has it; weak, since the kernel takes it away."""
    code = """
leased = open(sys.argv[1] + "/leased", "w").name
heard, word = os.pipe()
def hold():
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    mine = open(leased); fcntl.fcntl(mine, fcntl.F_SETLEASE, fcntl.F_RDLCK); os.write(word, b"x"); rest()
pid = other(hold); os.read(heard, 1)
ready(pid); open(leased, "w")"""
    with patient(code, str(tmp_path)) as (target, other):
        (link,) = links_of(target.process, "lease")
        assert ends_of(link) == [other]
        assert link.weak
