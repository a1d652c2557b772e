"""Prompts are read whole before anything is started, and fed one for each missing sample."""

from __future__ import annotations

import errno
import io
import json
import threading
import urllib.error
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hangdoc.capture.layout import exists, sample_path
from hangdoc.errors import HangdocError
from hangdoc.relaunch import feed as feeding
from hangdoc.relaunch.feed import Fed, Place, Server, feed
from hangdoc.relaunch.prompts import Prompt, check_prompts, read_prompts
from tests.unit.relaunch.stage import Stage


class Answering(ThreadingHTTPServer):
    """Stands for a server that captures: it writes the sample of each prompt that it answers."""

    request_queue_size = 128
    directory: Path
    requests: list[tuple[str, str | None, dict[str, Any]]]
    refuses: int = -1
    dies_at: int = -1
    holds: threading.Event


class Handler(BaseHTTPRequestHandler):
    server: Answering

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append((self.path, self.headers["authorization"], body))
        given = body.get("sampling_params", body)["custom_params"]
        index = given["hangdoc_index"]
        self.server.holds.wait()
        if index == self.server.dies_at:
            self.connection.close()
            return
        if index != self.server.refuses:
            path = sample_path(self.server.directory, index, ".ckpt")
            path.parent.mkdir(exist_ok=True)
            path.touch()
        self.send_response(400 if index == self.server.refuses else 200)
        self.end_headers()
        self.wfile.write(b"too long" if index == self.server.refuses else b"{}")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Answering]:
    server = Answering(("127.0.0.1", 0), Handler)
    server.directory, server.requests, server.holds = tmp_path, [], threading.Event()
    server.holds.set()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def at(server: Answering, key: str = "") -> Server:
    return Server(f"http://127.0.0.1:{server.server_address[1]}", key)


def run(server: Answering, prompts: list[Prompt], key: str = "") -> Fed:
    return feed(prompts, at(server, key), Place(server.directory, "specforge"), lambda _: None)


def test_every_prompt_without_a_sample_is_sent_once(answering: Answering) -> None:
    """A second run sends nothing: it goes on where the first one ended."""
    prompts = [Prompt(index, (1, 2, 3)) for index in range(50)]
    first = run(answering, prompts[:30])
    assert (first.is_whole, first.there, first.written) == (True, 0, 30)
    second = run(answering, prompts)
    assert (second.is_whole, second.there, second.written) == (True, 30, 20)
    assert sorted(body["sampling_params"]["custom_params"]["hangdoc_index"] for _, _, body in answering.requests) == [
        *range(50)
    ]
    assert all(exists(answering.directory, index, "specforge") for index in range(50))


def test_token_ids_conversations_masks_and_keys_reach_the_server(answering: Answering) -> None:
    """Each in the words of SGLang's own interface; one token is asked for."""
    talk = ({"role": "user", "content": "hello"}, {"role": "assistant", "content": "ho"})
    run(answering, [Prompt(0, (5, 6), loss_mask="01")], key="open-sesame")
    run(answering, [Prompt(1, messages=talk)])
    (path, key, body), (chat_path, no_key, chat) = answering.requests
    assert (path, key, body["input_ids"]) == ("/generate", "Bearer open-sesame", [5, 6])
    assert body["sampling_params"]["custom_params"] == {"hangdoc_index": 0, "hangdoc_loss_mask": "01"}
    assert body["sampling_params"]["max_new_tokens"] == 1
    assert (chat_path, no_key, chat["messages"]) == ("/v1/chat/completions", None, list(talk))
    assert (chat["continue_final_message"], chat["max_tokens"]) == (True, 1)


def test_a_refused_prompt_is_named_and_the_others_go_on(answering: Answering) -> None:
    """Its number and the server's words."""
    answering.refuses = 1
    fed = run(answering, [Prompt(index, (1,)) for index in range(4)])
    assert fed.refused == [(1, "HTTP 400: too long")]
    assert (fed.written, fed.stopped, fed.is_whole) == (3, "", False)


def test_a_server_that_stops_answering_ends_the_feeding(answering: Answering) -> None:
    """No prompt is sent for ever to a server that is gone."""
    answering.dies_at = 0
    fed = run(answering, [Prompt(index, (1,)) for index in range(200)])
    assert "does not answer" in fed.stopped
    assert not fed.is_whole


def test_a_server_that_is_silent_is_doubted(answering: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer for a while: whoever can look at the launch is asked, and says whether to go on."""
    monkeypatch.setattr(feeding, "SILENT_S", 0.01)
    answering.holds.clear()
    asked: list[None] = []

    def doubt() -> str:
        asked.append(None)
        return "it hangs" if len(asked) == 3 else ""

    fed = feed([Prompt(0, (1,))], at(answering), Place(answering.directory, "specforge"), lambda _: None, doubt)
    answering.holds.set()
    assert (fed.stopped, len(asked)) == ("it hangs", 3)


def test_a_key_that_no_header_can_hold_ends_the_feeding(answering: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be sent with it: said at once, without waiting for answers that nobody gives."""
    monkeypatch.setattr(feeding, "AGAIN_S", 0.0)
    monkeypatch.setattr(feeding, "SILENT_S", 5.0)
    place = Place(answering.directory, "specforge")
    fed = feed([Prompt(0, (1,))], at(answering, "a\nb"), place, lambda _: None, lambda: "nobody answers")
    assert "Invalid header value" in fed.stopped
    assert answering.requests == []


def test_a_refusal_whose_words_are_lost_is_one_all_the_same() -> None:
    """The server went away while it said why: the thread that asked must live to tell."""

    class Lost(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            del size
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    refused = urllib.error.HTTPError("http://localhost", 500, "", Message(), Lost())
    assert feeding.words_of(refused) == "its words were lost ([Errno 104] Connection reset by peer)"


def test_samples_that_never_come_are_given_up(answering: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is no sample: the capture skips what has NaN."""
    monkeypatch.setattr(feeding, "WRITTEN_S", 0.0)
    answering.directory = answering.directory / "elsewhere"
    answering.directory.mkdir()
    fed = feed([Prompt(0, (1,))], at(answering), Place(answering.directory.parent, "specforge"), lambda _: None)
    assert (fed.answered, fed.written, fed.is_whole) == (1, 0, False)


def test_all_forms_of_a_line_are_read(tmp_path: Path) -> None:
    """Blank lines are no prompts, but count: the number of a sample is that of its line."""
    path = tmp_path / "p.jsonl"
    path.write_text(
        '{"input_ids": [1, 2], "loss_mask": [0, 1]}\n\n{"messages": [{"role": "user", "content": "a"}]}\n'
        '{"conversations": [{"from": "human", "value": "b"}, {"from": "gpt", "value": "c"}]}\n'
    )
    first, second, third = read_prompts(path)
    assert first == Prompt(0, (1, 2), loss_mask="01")
    assert second == Prompt(2, messages=({"role": "user", "content": "a"},))
    assert third.messages == ({"role": "user", "content": "b"}, {"role": "assistant", "content": "c"})
    assert check_prompts(path) == 3


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", "no JSON object"),
        ("[1]", "no JSON object"),
        ("{}", "either input_ids or messages"),
        ('{"input_ids": [1], "messages": []}', "either input_ids or messages"),
        ('{"input_ids": []}', "no token ids"),
        ('{"input_ids": [true]}', "no token ids"),
        ('{"input_ids": [1, 2], "loss_mask": [1]}', "loss_mask"),
        ('{"input_ids": [1, 2], "loss_mask": [1, 2]}', "loss_mask"),
        ('{"messages": "hello"}', "no conversation"),
        ('{"messages": [{"role": "user"}]}', "no conversation"),
    ],
)
def test_a_line_that_is_no_prompt_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    """By its number, before anything is started."""
    path = tmp_path / "p.jsonl"
    path.write_text('{"input_ids": [1]}\n' + line + "\n")
    with pytest.raises(HangdocError, match="line 2") as raised:
        check_prompts(path)
    assert complaint in raised.value.message


def test_prompts_are_checked_first(stage: Stage) -> None:
    """A file that is not there, is empty or has a bad line, and prompts without a capture: exit 2."""
    (stage.folder / "bad.jsonl").write_text("x\n")
    (stage.folder / "empty.jsonl").write_text("\n")
    capture = ("--capture-layers", "1", "--capture-dir", "d")
    for options, word in (
        ((*capture, "--prompts", "none.jsonl"), "cannot be read"),
        ((*capture, "--prompts", "bad.jsonl"), "line 1"),
        ((*capture, "--prompts", "empty.jsonl"), "no prompts"),
        (("--prompts", "bad.jsonl"), "--capture-layers"),
        ((*capture, "--until", "exit", "--prompts", "bad.jsonl"), "--until ready"),
    ):
        ended = stage.relaunch(*options, "--", *stage.server())
        assert (ended.code, ended.out) == (2, "")
        assert word in ended.err
        assert len(ended.err.splitlines()) == 1
