"""Patients that are well and have nothing to do: the worst mistake would be to call one of them hung."""

from __future__ import annotations

import asyncio
import concurrent.futures
import http.server
import multiprocessing
import os
import queue
import signal
import socket
import socketserver
import threading

from tests.patients.stage import Stage, patient

FORK = multiprocessing.get_context("fork")
ALONE = ("launcher",)
THREADS = 500


@patient("undetermined", "healthy", parts=ALONE)
def thread_pool(stage: Stage) -> None:
    """A pool of threads without work, and a main thread that waits until it is told to end."""
    pool = concurrent.futures.ThreadPoolExecutor(8)
    meet = threading.Barrier(8)
    list(pool.map(lambda _: meet.wait(), range(8)))
    stage.arrive("launcher")
    threading.Event().wait()


@patient("undetermined", "healthy", parts=ALONE)
def asyncio_server(stage: Stage) -> None:
    """An asyncio server without a client."""

    async def serve() -> None:
        server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
        stage.arrive("launcher")
        await server.serve_forever()

    asyncio.run(serve())


@patient("undetermined", "healthy", parts=ALONE)
def process_pool_executor(stage: Stage) -> None:
    """A pool of processes without work: its workers wait for tasks on a pipe and a semaphore they share."""
    pool = concurrent.futures.ProcessPoolExecutor(3, FORK)
    list(pool.map(abs, range(12)))
    stage.arrive("launcher")
    threading.Event().wait()


@patient("undetermined", "healthy", parts=ALONE)
def multiprocessing_pool(stage: Stage) -> None:
    """multiprocessing's own pool without work; its owner waits for a signal."""
    pool = FORK.Pool(3)
    pool.map(abs, range(12))
    stage.arrive("launcher")
    signal.pause()


@patient("undetermined", "healthy", parts=ALONE)
def five_hundred_threads(stage: Stage) -> None:
    """500 threads that wait for work in a queue."""
    work: queue.SimpleQueue[None] = queue.SimpleQueue()
    started = threading.Barrier(THREADS + 1)

    def worker() -> None:
        started.wait()
        work.get()

    for _ in range(THREADS):
        threading.Thread(target=worker, daemon=True).start()
    started.wait()
    stage.arrive("launcher")
    signal.pause()


@patient("undetermined", "healthy", parts=ALONE)
def queue_without_work(stage: Stage) -> None:
    """A worker thread that waits on a queue, and a main thread that waits for the worker's end."""
    work: queue.Queue[None] = queue.Queue()
    thread = threading.Thread(target=work.get)
    thread.start()
    stage.arrive("launcher")
    thread.join()


@patient("undetermined", "healthy", parts=ALONE)
def manager(stage: Stage) -> None:
    """A multiprocessing manager that nobody asks for anything."""
    held = FORK.Manager()
    held.dict()["ready"] = 1
    stage.arrive("launcher")
    threading.Event().wait()


@patient("undetermined", "healthy", parts=ALONE)
def http_server(stage: Stage) -> None:
    """An HTTP server without a client."""
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    stage.arrive("launcher")
    server.serve_forever()


@patient("undetermined", "healthy", parts=ALONE)
def http_server_in_a_thread(stage: Stage) -> None:
    """The same served from threads, while the main thread waits for the serving one."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    stage.arrive("launcher")
    thread.join()


@patient("undetermined", "healthy", parts=ALONE)
def join_of_a_listener(stage: Stage) -> None:
    """The main thread waits for a thread that waits for clients in accept(2)."""
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=listener.accept, daemon=True)
    thread.start()
    stage.arrive("launcher")
    thread.join()


@patient("undetermined", "healthy", parts=("launcher", "rank0", "rank1"))
def semaphore_of_a_master(stage: Stage) -> None:
    """Two workers wait on a semaphore that the master posts when a client comes."""
    semaphore = FORK.Semaphore(0)

    def worker(name: str) -> None:
        stage.arrive(name)
        semaphore.acquire()

    stage.fork(worker, "rank0")
    stage.fork(worker, "rank1")
    listener = socket.create_server(("127.0.0.1", 0))
    stage.arrive("launcher")
    listener.accept()


@patient("undetermined", "healthy", parts=("launcher", "rank0"))
def worker_of_an_idle_parent(stage: Stage) -> None:
    """A worker waits for tasks on a pipe that only its idle parent writes to; the parent waits for a signal."""
    reading, writing = os.pipe()

    def worker() -> None:
        os.close(writing)
        stage.arrive("rank0")
        os.read(reading, 1)

    stage.fork(worker)
    os.close(reading)
    stage.arrive("launcher")
    signal.pause()


@patient("undetermined", "healthy", parts=ALONE)
def waits_for_a_signal(stage: Stage) -> None:
    """A main thread in sigwait(3) beside a worker that waits for an event that the signal's handler will set."""
    event = threading.Event()
    threading.Thread(target=event.wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    stage.arrive("launcher")
    signal.sigwait({signal.SIGTERM})
