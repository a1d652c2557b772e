"""Python locks and the interpreter lock on every CPython found: who holds them, and what is never claimed."""

from __future__ import annotations

import pytest

from hangdoc.features.locks import gil_starvation, lock_edges
from hangdoc.features.waits import WaitGraph, circle_edges, circles
from hangdoc.model.locks import Gil, Locks
from hangdoc.model.reading import Known
from tests.unit.locks.targets import Target, interpreters, look, python, until, value


@pytest.fixture(params=[path for _, path in interpreters()], ids=[name for name, _ in interpreters()])
def interpreter(request: pytest.FixtureRequest) -> str:
    path = str(request.param)
    if not path:
        pytest.skip(f"cannot be had here: {request.node.name} needs a CPython that is not installed")
    return path


CROSSWISE = """
def take(name, held, wanted, met):
    with held:
        met.wait(); say(name)
        try:
            with wanted: pass
        finally: pass
def crosswise(one, other, *names):
    met = threading.Barrier(2)
    start(take, names[0], one, other, met); start(take, names[1], other, one, met)
"""


def holders(seen: Locks) -> dict[int, tuple[int | None, str]]:
    return {lock.waiting_tid: (lock.holder_tid, lock.through) for lock in value(seen.python)}


def settled(target: Target, *names: str) -> Locks:
    """Look until all these threads wait for a semaphore, which they do for nothing but a lock."""
    target.hear(*names)
    tids = {target.tids[name] for name in names}
    return until(target.pid, lambda seen: tids <= {one.tid for one in seen.futexes if one.kind == "semaphore"})


def test_two_threads_crosswise(interpreter: str) -> None:
    """With Locks in with blocks and with RLocks: the holders are each other, and each pair is a deadlock."""
    code = CROSSWISE + (
        'crosswise(threading.Lock(), threading.Lock(), "a", "b"); '
        'crosswise(threading.RLock(), threading.RLock(), "c", "d")\nstay()'
    )
    with python(interpreter, code) as target:
        seen = settled(target, "a", "b", "c", "d")
        a, b, c, d = (target.tids[name] for name in "abcd")
        assert holders(seen) == {a: (b, "with"), b: (a, "with"), c: (d, "rlock"), d: (c, "rlock")}
        found = circles(WaitGraph(lock_edges({target.pid: (seen, look(target.pid))})))
        assert {frozenset(tid for _, tid in one) for one in found} == {frozenset({a, b}), frozenset({c, d})}


HELD = """
lock, taken = threading.Lock(), threading.Event()
def hold():
    with lock:
        say("holder"); taken.set(); inside()
def inside(): threading.Event().wait()
def want(name): taken.wait(); say(name); lock.acquire()
start(hold); start(want, "one"); start(want, "two"); stay()
"""


def test_a_holder_that_waits_for_something_else(interpreter: str) -> None:
    """A thread inside a with block holds its lock however deep it waits; every waiter is told."""
    with python(interpreter, HELD) as target:
        seen = settled(target, "holder", "one", "two")
        holder = (target.tids["holder"], "with")
        assert holders(seen) == {target.tids["one"]: holder, target.tids["two"]: holder}


TWICE = """
lock = threading.Lock()
def twice():
    with lock:
        say("twice"); lock.acquire()
start(twice); stay()
"""


def test_a_lock_taken_twice(interpreter: str) -> None:
    """A thread that waits for the lock of its own with block waits for itself."""
    with python(interpreter, TWICE) as target:
        seen = settled(target, "twice")
        assert holders(seen) == {target.tids["twice"]: (target.tids["twice"], "with")}
        graph = WaitGraph(lock_edges({target.pid: (seen, seen)}))
        (circle,) = circles(graph)
        assert "which it most likely holds itself" in circle_edges(graph, circle)[0].detail


OWNERLESS = """
lock = threading.Lock(); lock.acquire()
def want(): say("acquired"); lock.acquire()
def idle(): say("idle"); queue.Queue().get()
def event(): say("event"); threading.Event().wait()
other = threading.Lock(); its = threading.Condition(other); waits, gone = threading.Event(), threading.Event()
def of_condition():
    with other:
        say("of-condition"); waits.set(); its.wait()
def took():
    waits.wait(); other.acquire(); gone.set(); threading.Event().wait()
def next_one(): gone.wait(); say("next"); other.acquire()
released = threading.Lock(); free = threading.Event()
def gives_back():
    with released:
        released.release(); say("gives-back"); free.set(); threading.Event().wait()
def after(): free.wait(); released.acquire(); say("after"); released.acquire()
def left():
    with third: pass
    say("left"); third.acquire(); threading.Event().wait()
third = threading.Lock()
def behind():
    while not third.locked(): pass
    say("behind"); third.acquire()
for act in (want, idle, event, of_condition, took, next_one, gives_back, after, left, behind): start(act)
stay()
"""


def test_what_has_no_holder_that_could_be_told(interpreter: str) -> None:
    """No holder is claimed of a lock taken with acquire(), of idle threads, of a condition's lock during its wait(), of
    a lock that its with block gave back, and of one whose with block has been left.
    """
    names = ("acquired", "idle", "event", "of-condition", "next", "gives-back", "after", "left", "behind")
    with python(interpreter, OWNERLESS) as target:
        seen = settled(target, *names)
        assert holders(seen) == {}
        assert lock_edges({target.pid: (seen, seen)}) == ()


RELEASED = """
import contextlib
gate, holds = threading.Event(), threading.Event()
def park(): say("inside"); gate.set(); queue.Queue().get()
class unlocked:
    def __init__(self, lock): self.lock = lock
    def __enter__(self): self.lock.release()
    def __exit__(self, *error): self.lock.acquire()
@contextlib.contextmanager
def unlocking(lock):
    lock.release()
    try: yield
    finally: lock.acquire()
def alias(lock, give_back):
    with lock:
        give_back(); park()
def in_unlocked(lock):
    with lock:
        with unlocked(lock): park()
def in_unlocking(lock):
    with lock:
        with unlocking(lock): park()
def plain(lock):
    with lock: park()
def releases(lock): gate.wait(); lock.release(); take(lock)
def take(lock): gate.wait(); lock.acquire(); say("took"); holds.set(); queue.Queue().get()
def want(lock): holds.wait(); say("wants"); lock.acquire()
def play(act, *more):
    lock = threading.Lock()
    start(act, lock, *(getattr(lock, name) for name in more))
    start(releases if act is plain else take, lock); start(want, lock); stay()
"""


@pytest.mark.parametrize("act", ["alias, 'release'", "in_unlocked", "in_unlocking", "plain"])
def test_a_with_block_whose_lock_was_released_by_other_means(interpreter: str, act: str) -> None:
    """By another name, by a context manager inside it, by another thread that still has the lock: no holder is told."""
    with python(interpreter, f"{RELEASED}play({act})") as target:
        seen = settled(target, "inside", "took", "wants")
        assert holders(seen) == {}


AGAIN = """
lock, other, idents, gate = threading.RLock(), threading.RLock(), set(), threading.Event()
other.acquire()
def die(): idents.add(threading.get_ident()); lock.acquire()
def follow():
    found = threading.get_ident() in idents
    answer.put(found)
    if found: say("follower"); other.acquire()
thread = threading.Thread(target=die); thread.start(); thread.join()
answer = queue.Queue()
start(follow)
while not answer.get(): start(follow)
say("wants"); say("ready"); lock.acquire()
"""


def test_a_thread_that_has_the_number_of_an_owner_that_ended(interpreter: str) -> None:
    """A new thread may get the ident of one that ended inside an RLock: it is not called the lock's holder."""
    with python(interpreter, AGAIN) as target:
        seen = settled(target, "follower", "wants")
        follower, wants = target.tids["follower"], target.tids["wants"]
        assert holders(seen) == {follower: (wants, "rlock")}


TAKEN = """
lock, plain, second = threading.RLock(), threading.RLock(), threading.Condition()
first, taken = threading.Lock(), threading.Semaphore(0)
def by_name(lock): lock.acquire(); say("by-name"); taken.release(); queue.Queue().get()
def in_block():
    with plain: say("in-block"); taken.release(); queue.Queue().get()
def in_condition():
    with second: say("in-condition"); taken.release(); queue.Queue().get()
for act, arguments in ((by_name, (lock,)), (in_block, ()), (in_condition, ())):
    start(act, *arguments); taken.acquire()
def want(name, lock): say(name); lock.acquire()
for one in (("a", lock), ("b", plain), ("c", second)): start(want, *one)
stay()
"""


def test_what_proves_the_owner_of_an_rlock(interpreter: str) -> None:
    """A with block of it, or of its condition, proves that the thread took it; a thread that only has it may have."""
    with python(interpreter, TAKEN) as target:
        seen = settled(target, "a", "b", "c")
        tids = target.tids
        assert {(one.waiting_tid, one.holder_tid, one.sure) for one in value(seen.python)} == {
            (tids["a"], tids["by-name"], False),
            (tids["b"], tids["in-block"], True),
            (tids["c"], tids["in-condition"], True),
        }
        edges = lock_edges({target.pid: (seen, seen)})
        assert {edge.from_tid for edge in edges if edge.inferred} == {tids["a"]}


DEAD = """
lock, condition = threading.RLock(), threading.Condition()
def die(one): one.acquire()
threads = [threading.Thread(target=die, args=(one,)) for one in (lock, condition)]
# The waiters are there first: a thread that begins later might get the number of one that ended.
gate = threading.Event()
def want_later(one, name): gate.wait(); say(name); one.acquire()
start(want_later, lock, "lock"); start(want_later, condition, "condition")
for thread in threads: thread.start()
for thread in threads: thread.join()
gate.set(); stay()
"""


def test_a_holder_that_is_gone(interpreter: str) -> None:
    """A thread that ended inside an RLock or a Condition is known to be no more."""
    with python(interpreter, DEAD) as target:
        target.hear("lock", "condition")
        gone = {target.tids[name]: (None, "rlock") for name in ("lock", "condition")}
        # A thread that Python has done with takes a moment more to end.
        seen = until(target.pid, lambda one: holders(one) == gone)
        edges = lock_edges({target.pid: (seen, seen)})
        assert all(edge.to_tid is None and "it ended without releasing it" in edge.detail for edge in edges)


HOG = """
def work(name):
    say(name)
    while True: threading.Event().wait(0.001)
for name in ("one", "two", "three"): start(work, name)
def hog(): say("hog"); ctypes.PyDLL(None).sleep(10000)
say("ready"); hog()
"""


def gil_of(seen: Locks) -> Gil | None:
    assert isinstance(seen.gil, Known)
    return seen.gil.value


def test_a_hog_of_the_interpreter_lock(interpreter: str) -> None:
    """C code that never lets go: the holder is named, the count of switches stands, the others wait for it."""
    with python(interpreter, HOG) as target:
        target.hear("one", "two", "three", "hog")
        workers = {target.tids[name] for name in ("one", "two", "three")}
        hog = target.tids["hog"]

        def starved(seen: Locks) -> bool:
            gil = gil_of(seen)
            return gil is not None and gil.holder_tid == hog and workers <= set(gil.waiting_tids)

        first, second = until(target.pid, starved), until(target.pid, starved)
        assert gil_of(first) is not None
        starvation = gil_starvation(target.pid, [(0, first), (2_000_000_000, second)])
        assert starvation is not None
        assert (starvation.holder_tid, starvation.waiting, starvation.held_s) == (hog, 3, 2.0)
        edges = lock_edges({target.pid: (first, second)})
        assert {(edge.from_tid, edge.to_tid, edge.through, edge.weak) for edge in edges} == {
            (tid, hog, "gil", False) for tid in workers
        }


BUSY = """
def spin(name):
    say(name)
    while True: pass
start(spin, "one"); start(spin, "two"); stay()
"""


def test_an_interpreter_lock_that_is_passed_on_starves_nobody(interpreter: str) -> None:
    """Two threads that compute share the lock: it moves, so there is neither starvation nor a strong edge."""
    with python(interpreter, BUSY) as target:
        target.hear("one", "two")
        first = until(target.pid, lambda seen: gil_of(seen) is not None)
        before = gil_of(first)
        assert before is not None
        last = until(target.pid, lambda seen: (now := gil_of(seen)) is not None and now.switches > before.switches)
        assert gil_starvation(target.pid, [(0, first), (10**9, last)]) is None
        assert all(edge.weak for edge in lock_edges({target.pid: (first, last)}))
