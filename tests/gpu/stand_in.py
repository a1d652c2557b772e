"""A stand-in for a server on a machine without GPUs: holds, gets ready, answers and falls ill as the hooks make it.

So that a typing error in the driver costs no minute of a GPU.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DIRECTORY = Path(os.environ["HANG_DIR"])
MODE = os.environ.get("HANG_MODE", "")


class Answering(BaseHTTPRequestHandler):
    """Answers /generate at once."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"meta_info": {"completion_tokens": 8}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


def wait_for(path: str) -> None:
    while path and not Path(path).exists():
        time.sleep(0.02)


def fall_ill() -> None:
    (DIRECTORY / "mark.ill").touch()
    if MODE == "python-loop":
        while True:
            pass
    threading.Event().wait()


def main() -> None:
    port = int(sys.argv[sys.argv.index("--port") + 1])
    (DIRECTORY / "mark.held").touch()
    wait_for(os.environ.get("HANG_HOLD", ""))
    if MODE and not os.environ.get("HANG_WHEN"):
        fall_ill()
    server = ThreadingHTTPServer(("127.0.0.1", port), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("The server is fired up and ready to roll!", flush=True)
    wait_for(os.environ.get("HANG_WHEN", ""))
    if MODE:
        fall_ill()
    threading.Event().wait()


if __name__ == "__main__":
    main()
