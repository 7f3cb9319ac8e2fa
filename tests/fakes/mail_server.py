"""A mail server that takes submissions over SMTP, without encryption, and refuses what it is told to."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class FakeMailServer:
    """``answers`` replaces the answer to a command, or its answers in order; ``mails`` are what was taken, as texts."""

    def __init__(self, port: int, answers: Mapping[str, str | list[str]]) -> None:
        self.port, self.answers = port, answers
        self.mails: list[str] = []
        self.recipients: list[str] = []


@contextmanager
def mail_server(**answers: str | list[str]) -> Iterator[FakeMailServer]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                command = line.split(maxsplit=1)[0].upper()
                if command == "DATA" and command not in answers:
                    self.say("354 go on")
                    lines = []
                    while (part := self.rfile.readline().decode()) not in {".\r\n", ""}:
                        lines.append(part)
                    fake.mails.append("".join(lines))
                if command == "RCPT":
                    fake.recipients.append(line.partition("<")[2].partition(">")[0])
                given = answers.get(command, "221 bye" if command == "QUIT" else "250 fine")
                self.say(given if isinstance(given, str) else given.pop(0) if given else "250 fine")
                if command == "QUIT":
                    return

        def say(self, answer: str) -> None:
            self.wfile.write(answer.encode() + b"\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        fake = FakeMailServer(server.server_address[1], answers)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield fake
        server.shutdown()
