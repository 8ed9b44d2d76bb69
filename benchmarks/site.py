"""The built book from a server of its own: as files, or as a static host such as GitHub Pages sends them."""

from __future__ import annotations

import functools
import gzip
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

# What such hosts pack; fonts, pictures and the weights are packed already.
PACKED = {".html", ".css", ".js", ".json", ".svg", ".md", ".txt", ".xml"}
LEVEL = 6


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serve files without a line a request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class StaticHost:
    """A static host: packs texts, lets browsers keep all of it for ten minutes, and notes what it ``sent``.

    Parameters
    ----------
    folder : Path
        Of the built book.

    Attributes
    ----------
    address : str
        Without a slash at the end, while it is served.
    sent : dict
        Path in the site to bytes of the answer, without its headers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.address, self.sent = folder, "", {}
        self.bodies: dict[Path, bytes] = {}  # a host does not pack a text for every reader

    def body(self, path: Path) -> bytes:
        """Return a file as it is sent."""
        if path not in self.bodies:
            content = path.read_bytes()
            self.bodies[path] = gzip.compress(content, LEVEL, mtime=0) if path.suffix in PACKED else content
        return self.bodies[path]

    @contextmanager
    def serving(self) -> Iterator[StaticHost]:
        """Answer until the block ends."""
        host = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                host.answer(self)

        with serving(functools.partial(Handler, directory=self.folder)) as server:
            self.address = address_of(server)
            yield self

    def answer(self, request: QuietHandler) -> None:
        """Answer one request."""
        name = urlsplit(request.path).path
        path = Path(request.translate_path(name))
        if not path.is_file():
            return request.send_error(404)
        body = self.body(path)
        self.sent[name] = len(body)
        request.send_response(200)
        request.send_header("Content-Type", request.guess_type(str(path)))
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Cache-Control", "max-age=600")
        if path.suffix in PACKED:
            request.send_header("Content-Encoding", "gzip")
        request.end_headers()
        return request.wfile.write(body)


@contextmanager
def serving(handler: Callable[..., QuietHandler]) -> Iterator[http.server.ThreadingHTTPServer]:
    """Serve on a free port until the block ends."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address_of(server: http.server.ThreadingHTTPServer) -> str:
    """Return the address of a server, without a slash at the end."""
    return f"http://127.0.0.1:{server.server_port}"
