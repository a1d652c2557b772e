"""Lock files that a real process polls for: which one, who holds it, and that nobody does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hangdoc.model.lock_file import LockFile, LockFiles
from hangdoc.model.reading import Known
from hangdoc_probes import lock_files
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.probes.targets import Target, known, missing, process_of, running, take

BATON = '''
import os, time

class FileBaton:
    """As torch/utils/file_baton.py has it: the file is the lock, and whoever made it keeps it open."""

    def __init__(self, lock_file_path):
        self.lock_file_path = lock_file_path
        self.fd = None

    def try_acquire(self):
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
            return True
        except FileExistsError:
            return False

    def wait(self, said):
        while os.path.exists(self.lock_file_path):
            said()
            time.sleep(0.01)
'''
FILELOCK = '''
import contextlib, fcntl, os, time

class BaseFileLock:
    """As filelock/_api.py has it: try, sleep, try again."""

    def __init__(self, lock_file):
        self.lock_file = lock_file

    def acquire(self, said):
        lock_filename = self.lock_file
        while not self._acquire():
            said()
            time.sleep(0.01)

class SoftFileLock(BaseFileLock):
    def _acquire(self):
        with contextlib.suppress(FileExistsError):
            self.fd = os.open(self.lock_file, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            return True

class UnixFileLock(BaseFileLock):
    def _acquire(self):
        fd = os.open(self.lock_file, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        return True
'''
LOCKFILE = '''
import fcntl, os, time

class FileLock:
    """As tvm_ffi/utils/lockfile.py has it: no variable but the lock's own attribute has the path."""

    def __init__(self, lock_file_path):
        self.lock_file_path = lock_file_path
        self._file_descriptor = None

    def acquire(self):
        self._file_descriptor = os.open(self.lock_file_path, os.O_WRONLY | os.O_CREAT)
        try:
            fcntl.flock(self._file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            os.close(self._file_descriptor)
            return False

    def blocking_acquire(self, said):
        while not self.acquire():
            said()
            time.sleep(0.01)
'''
FILELOCK_4 = FILELOCK.replace("def acquire(", "def _poll_until_acquired(")
ONCE = """
def once():
    if not once.said: say("ready")
    once.said = True
once.said = False
"""
ACQUIRE_TVM = """
sys.path.insert(0, {library!r})
from pathlib import Path
from tvm_ffi.utils import lockfile
def build(build_dir): lockfile.FileLock(str(build_dir / "lock")).blocking_acquire(once)
build(Path({folder!r}))
"""
BUILD = """
sys.path.insert(0, {library!r})
from torch.utils.file_baton import FileBaton
def _jit_compile(name, build_directory, said):
    baton = FileBaton(os.path.join(build_directory, "lock"))
    if not baton.try_acquire(): baton.wait(said)
_jit_compile("kernel", {folder!r}, once)
"""
ACQUIRE = """
sys.path.insert(0, {library!r})
from filelock._core import _acquire
_acquire.{kind}({path!r})._poll_until_acquired(once)
"""
ACQUIRE_3 = """
sys.path.insert(0, {library!r})
from filelock import _api
_api.{kind}({path!r}).acquire(once)
"""
HOLDER = """
sys.path.insert(0, {library!r})
{take}
say("ready"); sys.stdin.read()
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """Stand-ins of torch's and filelock's modules: only the names of their files and functions matter here."""
    modules = {"torch/utils/file_baton.py": BATON, "filelock/_api.py": FILELOCK}
    modules["filelock/_core/_acquire.py"] = FILELOCK_4
    modules["tvm_ffi/utils/lockfile.py"] = LOCKFILE
    for name, text in modules.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "library"


def look(target: Target) -> LockFiles:
    (sample,) = take(lock_files.PROBE, target.process)
    return known(sample, LockFiles)


def polled(target: Target) -> LockFile:
    """Return the lock file that a process polls for; it may be caught in its try for a moment."""
    while len((seen := look(target)).files) != 1:
        assert target.child.poll() is None
    return seen.files[0]


@contextmanager
def waiting_for_baton(library: Path, folder: Path) -> Iterator[Target]:
    with running(ONCE + BUILD.format(library=str(library), folder=str(folder))) as target:
        yield target


def test_a_baton_that_nobody_holds(library: Path, tmp_path: Path) -> None:
    """A build that was killed leaves its lock file: it is named, and no living process has it open."""
    (tmp_path / "lock").touch()
    with waiting_for_baton(library, tmp_path) as target:
        seen = polled(target)
    assert (seen.kind, seen.path) == ("existence", str(tmp_path / "lock"))
    assert seen.holders == Known(())
    assert isinstance(seen.quiet_s, Known)


def test_the_holder_of_a_baton(library: Path, tmp_path: Path) -> None:
    """Whoever made the lock file and is still there is its holder, with its CPU time so far."""
    baton = f"FileBaton({str(tmp_path / 'lock')!r})"
    take_it = f"from torch.utils.file_baton import FileBaton; held = {baton}; held.try_acquire()"
    with (
        running(HOLDER.format(library=str(library), take=take_it)) as holder,
        waiting_for_baton(library, tmp_path) as target,
    ):
        seen = polled(target)
    assert isinstance(seen.holders, Known)
    assert [(end.process.pid, end.member) for end in seen.holders.value] == [(holder.pid, False)]
    assert all(end.tree_ticks is not None for end in seen.holders.value)


@pytest.mark.parametrize("acquire", [ACQUIRE, ACQUIRE_3], ids=["4.x", "3.x"])
@pytest.mark.parametrize("kind", ["SoftFileLock", "UnixFileLock"])
def test_file_locks(library: Path, tmp_path: Path, kind: str, acquire: str) -> None:
    """A filelock that is polled for is told with its kind and its holder, whichever version of filelock it is."""
    path = str(tmp_path / "model.lock")
    take_it = f"from filelock import _api; held = _api.{kind}({path!r}); held.acquire(None)"
    with (
        running(HOLDER.format(library=str(library), take=take_it)) as holder,
        running(ONCE + acquire.format(library=str(library), kind=kind, path=path)) as target,
    ):
        seen = polled(target)
    assert (seen.kind, seen.path) == ("existence" if kind == "SoftFileLock" else "flock", path)
    assert isinstance(seen.holders, Known)
    assert [end.process.pid for end in seen.holders.value] == [holder.pid]


def test_a_lock_whose_path_is_its_own_attribute(library: Path, tmp_path: Path) -> None:
    """tvm_ffi's lock keeps its path in itself alone; it is found there."""
    path = str(tmp_path / "lock")
    take_it = f"from tvm_ffi.utils import lockfile; held = lockfile.FileLock({path!r}); held.acquire()"
    with (
        running(HOLDER.format(library=str(library), take=take_it)) as holder,
        running(ONCE + ACQUIRE_TVM.format(library=str(library), folder=str(tmp_path))) as target,
    ):
        seen = polled(target)
    assert (seen.kind, seen.path) == ("flock", path)
    assert isinstance(seen.holders, Known)
    assert [end.process.pid for end in seen.holders.value] == [holder.pid]


def test_a_soft_lock_outlives_its_maker(library: Path, tmp_path: Path) -> None:
    """The file of a soft lock whose maker was killed is held by nobody."""
    path = tmp_path / "model.lock"
    path.touch()
    with running(ONCE + ACQUIRE.format(library=str(library), kind="SoftFileLock", path=str(path))) as target:
        assert polled(target).holders == Known(())


@pytest.mark.needs("unshare")
def test_a_holder_that_knows_the_directory_by_another_name(library: Path, tmp_path: Path) -> None:
    """Somebody in a container who has the lock file open under another path holds it all the same."""
    cache, there = tmp_path / "cache", tmp_path / "there"
    cache.mkdir()
    there.mkdir()
    inside = ("unshare", "--mount", "sh", "-c", f'mount --bind {cache} {there} && exec "$@"', "sh")
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip(f"{NOT_TO_BE_HAD}the right to mount")
    baton = f"FileBaton({str(there / 'lock')!r})"
    take_it = f"from torch.utils.file_baton import FileBaton; held = {baton}; held.try_acquire()"
    with (
        running(HOLDER.format(library=str(library), take=take_it), *inside) as holder,
        waiting_for_baton(library, cache) as target,
    ):
        seen = polled(target)
    assert isinstance(seen.holders, Known)
    assert [end.process.pid for end in seen.holders.value] == [holder.pid]


def test_who_asks_for_none() -> None:
    """A process that waits for something else asks for no lock file, and one without Python neither."""
    with running('say("ready"); sys.stdin.read()') as target:
        assert look(target) == LockFiles(files=())
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(b"there?\n")
        child.stdin.flush()
        child.stdout.readline()  # before its exec is over it has no program to look into
        (sample,) = take(lock_files.PROBE, process_of(child.pid))
        assert known(sample, LockFiles) == LockFiles(files=())
    finally:
        child.communicate()


def test_only_in_thorough_rounds() -> None:
    """Memory is not read in the rounds between."""
    with running('say("ready"); sys.stdin.read()') as target:
        assert take(lock_files.PROBE, target.process, thorough=False) == []


def test_a_process_that_ended_is_gone() -> None:
    """What has ended asks for nothing."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = process_of(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.wait()
    (sample,) = take(lock_files.PROBE, process)
    assert missing(sample).reason == "gone"
