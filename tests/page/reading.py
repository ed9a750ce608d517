"""What a page of HTML says, without a browser."""

import re
from html import unescape
from typing import Any


def text_of(answer: Any) -> str:
    """Return the words of a page, each run of blanks as one."""
    html = answer.content.decode()
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def links_of(answer: Any) -> list[str]:
    """Return every address that a page names."""
    return [
        unescape(one)
        for one in re.findall(r'(?:href|action|src)="([^"]*)"', answer.content.decode())
    ]


def fields_of(answer: Any) -> dict[str, str]:
    """Return the hidden fields of a page's last form that has them."""
    return {
        name: unescape(value)
        for name, value in re.findall(
            r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.content.decode()
        )
    }
