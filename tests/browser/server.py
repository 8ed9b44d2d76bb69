"""A server for the browser tests that lets a test answer in its place."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.site import QuietHandler, address_of, serving


@dataclass
class Answer:
    """What is said to a request: the connection ends after `body`, of whatever length was announced.

    `then` follows when the test has set `gate`, so that a page can be looked at while it waits.
    """

    body: bytes
    then: bytes = b""
    status: int = 200
    length: int | None = None
    gate: threading.Event | None = None


class Host:
    """A server of a folder, with answers of a test's own at some paths; `asked` has all paths it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.answers, self.asked = folder, {}, []
        self.server: http.server.ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        return address_of(self.server)

    def stop(self) -> None:
        """Go away: whoever asks is refused."""
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def hosting(folder: Path) -> Iterator[Host]:
    """Run a host until the block ends."""
    host = Host(folder)

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802  http.server calls it so
            path = urlsplit(self.path).path
            host.asked.append(path)
            if path in host.answers:
                self.answer(path, host.answers[path])
            else:
                super().do_GET()

        def answer(self, path: str, answer: Answer) -> None:
            length = len(answer.body + answer.then) if answer.length is None else answer.length
            self.send_response(answer.status)
            self.send_header("Content-Type", self.guess_type(path))
            self.send_header("Content-Length", str(length))
            self.end_headers()
            with suppress(ConnectionError):  # a reader may press Stop
                self.wfile.write(answer.body)
                if answer.gate:
                    self.wfile.flush()
                    answer.gate.wait(20)
                    self.wfile.write(answer.then)

    with serving(functools.partial(Handler, directory=folder)) as host.server:
        yield host
