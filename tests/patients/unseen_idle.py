"""Unseen patients that are well and have nothing to do."""

from __future__ import annotations

import ctypes
import os
import select
import selectors
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from tests.patients.stage import Stage, become, patient
from tests.patients.unseen_props import arrive_together, build, fork_together, keep_only

IN_CREATE = 0x100
"""Number of inotify(7)."""

EPOLL_SERVER = r"""
#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
static void watch(int poll, int file) {
    struct epoll_event wanted = {EPOLLIN, {.fd = file}};
    epoll_ctl(poll, EPOLL_CTL_ADD, file, &wanted);
}
int main(int count, char **words) {
    struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}};
    struct epoll_event event;
    begin(words);
    int server = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0);
    bind(server, (struct sockaddr *)&address, sizeof address);
    listen(server, 16);
    watch(poll, server);
    watch(poll, eventfd(0, 0));
    arrive("rank1");
    for (;;)
        if (epoll_wait(poll, &event, 1, -1) == 1 && event.data.fd == server) close(accept(server, 0, 0));
}
"""

THREAD_POOL = r"""
#include <arpa/inet.h>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <sys/socket.h>
#include <thread>
static std::mutex lock;
static std::condition_variable filled;
static std::deque<int> clients;
static void work() {
    for (;;) {
        std::unique_lock<std::mutex> held(lock);
        filled.wait(held, [] { return !clients.empty(); });
        close(clients.front());
        clients.pop_front();
    }
}
int main(int count, char **words) {
    begin(words);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    listen(server, 16);
    for (int i = 0; i < 4; i++) std::thread(work).detach();
    arrive("rank1");
    for (;;) {
        int client = accept(server, 0, 0);
        std::lock_guard<std::mutex> held(lock);
        clients.push_back(client);
        filled.notify_one();
    }
}
"""


@patient("undetermined", "healthy", parts=("launcher", "scheduler", "detokenizer"))
def pipeline_without_a_request(stage: Stage) -> None:
    """Three processes of a server push to one another in a ring; the first waits for clients as well; none comes."""
    links = [socket.socketpair() for _ in range(3)]
    ends = [end for link in links for end in link]

    def relay(before: socket.socket, after: socket.socket) -> Callable[[Callable[[], None]], None]:
        def act(meet: Callable[[], None]) -> None:
            keep_only([end.fileno() for end in ends], before.fileno(), after.fileno())
            meet()
            while word := before.recv(4096):
                after.sendall(word)

        return act

    relays = ("scheduler", relay(links[0][1], links[1][0])), ("detokenizer", relay(links[1][1], links[2][0]))
    parts = fork_together(stage, *relays)
    keep_only([end.fileno() for end in ends], links[0][0].fileno(), links[2][1].fileno())
    server = socket.create_server(("127.0.0.1", 0))
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(links[2][1], selectors.EVENT_READ)
        arrive_together(stage, {os.getpid(): "launcher", **parts})
        selector.select()


@patient("undetermined", "healthy", parts=("launcher", "rank1"), needs="cc")
def native_event_loop(stage: Stage) -> None:
    """A server in C waits in epoll for clients and for a wake-up of its own; its launcher waits for its end."""
    program = build(stage, EPOLL_SERVER)
    stage.fork(become, stage, program)
    stage.wait()


@patient("undetermined", "healthy", parts=("launcher", "rank1"), needs="c++")
def native_thread_pool(stage: Stage) -> None:
    """A server in C++: four threads wait for a condition that the main thread signals whenever a client comes."""
    program = build(stage, THREAD_POOL, "c++")
    stage.fork(become, stage, program)
    stage.wait()


@patient("undetermined", "healthy", parts=("launcher", "rank0", "rank1", "rank2"))
def workers_on_one_listener(stage: Stage) -> None:
    """Three workers accept on the listener they inherited; their master waits for any of them to end."""
    server = socket.create_server(("127.0.0.1", 0))

    def worker(name: str) -> None:
        stage.arrive(name)
        server.accept()

    for number in range(3):
        stage.fork(worker, f"rank{number}")
    server.close()
    stage.arrive("launcher")
    os.waitpid(-1, 0)


@patient("undetermined", "healthy")
def supervisor_that_waits_for_signals(stage: Stage) -> None:
    """The launcher waits for SIGCHLD or SIGTERM; its two ranks are servers without a client."""

    def serve(name: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server, selectors.DefaultSelector() as selector:
            selector.register(server, selectors.EVENT_READ)
            stage.arrive(name)
            selector.select()

    awaited = {signal.SIGCHLD, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    stage.fork(serve, "rank0")
    stage.fork(serve, "rank1")
    stage.arrive("launcher")
    signal.sigwait(awaited)


@patient("undetermined", "healthy", parts=("launcher", "rank1"))
def folder_that_is_watched(stage: Stage) -> None:
    """Rank 1 waits in inotify for files that users drop into a folder, and none does; the launcher waits for it."""

    inbox = f"{stage.folder}/inbox"
    Path(inbox).mkdir()

    def rank() -> None:
        library = ctypes.CDLL(None)
        watch = library.inotify_init()
        library.inotify_add_watch(watch, inbox.encode(), IN_CREATE)
        stage.arrive("rank1")
        os.read(watch, 4096)

    stage.fork(rank)
    stage.wait()


@patient("undetermined", "healthy", "slow-start", parts=("launcher",))
def housekeeping_between_requests(stage: Stage) -> None:
    """A server without a client wakes up every 0.2 s to look after its caches."""
    server = socket.create_server(("127.0.0.1", 0))
    caches: dict[int, bytes] = {}
    stage.arrive("launcher")
    while not select.select([server], [], [], 0.2)[0]:
        caches.clear()


@patient("undetermined", "healthy", "slow-start", parts=("launcher",))
def alarm_ten_times_a_second(stage: Stage) -> None:
    """A timer's signal interrupts an idle server ten times a second, and its handler counts."""
    ticks = [0]

    def tick(_number: int, _frame: object) -> None:
        ticks[0] += 1

    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    server = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    server.accept()


@patient("undetermined", "healthy", parts=("launcher", "helper"))
def suspended_helper_that_nobody_needs(stage: Stage) -> None:
    """A helper of an idle server was stopped by hand; nobody waits for it, and the server answers whoever comes."""
    helper = stage.fork(signal.pause)
    os.kill(helper, signal.SIGSTOP)
    os.waitpid(helper, os.WUNTRACED)
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=server.accept, daemon=True).start()
    arrive_together(stage, {os.getpid(): "launcher", helper: "helper"})
    signal.pause()


@patient("undetermined", "healthy", parts=("launcher", "rank0", "client"))
def connection_that_is_kept_alive(stage: Stage) -> None:
    """A client keeps a connection for its next question; one thread of its server reads there, the other accepts."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve(meet: Callable[[], None]) -> None:
        first, _ = server.accept()
        threading.Thread(target=first.recv, args=(4096,), daemon=True).start()
        meet()
        server.accept()

    def ask(meet: Callable[[], None]) -> None:
        address = server.getsockname()
        server.close()
        with socket.create_connection(address):
            meet()
            signal.pause()

    parts = fork_together(stage, ("rank0", serve), ("client", ask))
    server.close()
    arrive_together(stage, parts)
    stage.wait()
