"""A client over HTTP/1.1 that costs little: raw sockets that are kept open, one request each."""

import selectors
import socket
import time
from array import array
from collections.abc import Sequence

from benchmarks.exchanges import Conversation, Message
from benchmarks.harness import Slice

#: Seconds until an answer must be there.
PATIENCE = 10.0


class Line:
    """One connection, over which one conversation is held."""

    def __init__(self, port: int, conversation: Conversation) -> None:
        self.conversation = conversation
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sent_at = 0.0

    def ask(self) -> None:
        """Send the next request."""
        text = as_text(self.conversation.ask())
        self.received = b""
        self.sent_at = time.perf_counter()
        self.socket.sendall(text)

    def receive(self) -> bool:
        """
        Take what has come, and return whether the answer is there as a whole.

        Raises:
            RuntimeError: it is no 200.
        """
        piece = self.socket.recv(65536)
        if not piece:
            raise RuntimeError("The server hung up.")
        self.received += piece
        head, end, body = self.received.partition(b"\r\n\r\n")
        if not end:
            return False
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        if len(body) < int(headers["content-length"]):
            return False
        if status.split(" ", 2)[1] != "200":
            raise RuntimeError(f"{status}: {body!r}")
        self.conversation.learn(headers)
        return True


def converse(port: int, conversations: Sequence[Conversation], seconds: float) -> Slice:
    """Hold the conversations side by side for so long, and return how long each answer took."""
    latencies = array("d")
    with selectors.DefaultSelector() as selector:
        lines = [Line(port, one) for one in conversations]
        try:
            for line in lines:
                selector.register(line.socket, selectors.EVENT_READ, line)
            began = time.perf_counter()
            until = began + seconds
            for line in lines:
                line.ask()
            waiting = len(lines)
            # What was asked in time is waited for: a client must know what it has written.
            while waiting:
                ready = selector.select(PATIENCE)
                if not ready:
                    raise TimeoutError("The server does not answer.")
                for key, _ in ready:
                    line = key.data
                    if not line.receive():
                        continue
                    now = time.perf_counter()
                    latencies.append(now - line.sent_at)
                    if now < until:
                        line.ask()
                    else:
                        waiting -= 1
            elapsed = time.perf_counter() - began
        finally:
            for line in lines:
                line.socket.close()
    return Slice(latencies=latencies, per_second=len(latencies) / elapsed)


def as_text(message: Message) -> bytes:
    """Return a message as it is sent."""
    lines = [
        f"{message.method} {message.path} HTTP/1.1",
        "Host: localhost",
        "Accept: application/json",
    ]
    if message.authorization:
        lines.append(f"Authorization: {message.authorization}")
    if message.body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(message.body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + message.body
