"""Bodies of every kind, sent to the server that serves."""

import http.client
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.config.echo import MOST_BYTES
from tests.config.processes import start, wait_until
from tests.conftest import answers, find_free_port

PIECE = b"x" * 65536


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    port = find_free_port()
    process = start("-m", "tests.config.echo", str(port), is_kept=True)
    wait_until(lambda: answers(f"http://127.0.0.1:{port}/"))
    yield port
    process.terminate()
    process.communicate()


def send(port: int, *lines: bytes, body: bytes) -> bytes:
    """Send one request as it stands, and return the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(
            b"\r\n".join([b"PUT / HTTP/1.1", b"Host: localhost", b"Connection: close", *lines])
            + b"\r\n\r\n"
            + body
        )
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_a_chunked_body_is_read(port: int) -> None:
    answer = httpx.put(f"http://127.0.0.1:{port}/", content=iter([b"ab", b"c" * 70_000]))
    assert answer.json()["read"] == 70_002
    assert answer.json()["sum"] == sum(b"ab" + b"c" * 70_000)


@pytest.mark.parametrize(
    ("length", "status"), [(0, 200), (1, 200), (MOST_BYTES, 200), (MOST_BYTES + 1, 413)]
)
@pytest.mark.parametrize("is_chunked", [True, False])
def test_the_limit_is_exact(port: int, is_chunked: bool, length: int, status: int) -> None:
    body = b"x" * length
    answer = httpx.put(
        f"http://127.0.0.1:{port}/", content=iter([body] if body else []) if is_chunked else body
    )
    assert (answer.status_code, answer.json()["length"]) == (status, length)


def test_a_large_chunked_body_takes_no_memory(port: int) -> None:
    url = f"http://127.0.0.1:{port}/"
    before = httpx.put(url, content=iter([b"x"])).json()["kilobytes"]
    answer = httpx.put(url, content=iter([PIECE] * 800))
    assert (answer.status_code, answer.json()["length"]) == (413, MOST_BYTES + 1)
    assert answer.json()["kilobytes"] - before < 20_000


@pytest.mark.parametrize("length", [300_000, 50_000_000])
def test_a_client_that_sends_everything_first_gets_its_answer(port: int, length: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("PUT", "/", body=b"x" * length)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_client_that_asks_before_sending_gets_its_answer(port: int) -> None:
    answer = send(port, b"Content-Length: 50000000", b"Expect: 100-continue", body=b"")
    assert answer.startswith(b"HTTP/1.1 413")


def test_the_encoding_wins_over_a_length(port: int) -> None:
    answer = send(
        port, b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"
    )
    assert b'"read": 5' in answer


def test_requests_see_no_secrets_of_the_environment(port: int) -> None:
    assert httpx.get(f"http://127.0.0.1:{port}/").json()["secrets"] == []
