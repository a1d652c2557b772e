"""A driver that starts two servers by multiprocessing, which start their ranks the same way: one tracker for all."""

import multiprocessing
import signal
import socket

import acts


def rank(name, title):
    acts.title(title)
    acts.tell(name)
    acts.stay()


def server(name, port):
    kept = socket.create_server(("127.0.0.1", port))
    context = multiprocessing.get_context("spawn")
    titles = {f"{name}{number}": f"sglang::scheduler_TP{number}" for number in (0, 1)}
    ranks = [context.Process(target=rank, args=item) for item in titles.items()]
    for one in ranks:
        one.start()
    acts.tell(name)
    acts.stay()
    kept.close()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    servers = [context.Process(target=server, args=("a", 0)), context.Process(target=server, args=("b", acts.PORT))]
    for one in servers:
        one.start()
    acts.tell("driver")
    while True:
        signal.pause()
