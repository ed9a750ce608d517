"""
The manual: built whole, complete, loading nothing from elsewhere, with commands that exist.

What Sphinx refuses by itself (a dead reference, a page in no table of contents) fails the build
here; the rest is asked of the pages that it made.
"""

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from agents.credentials import FORMS
from agents.tool_schemas import TOOLS
from benchmarks.measures import MEASURES
from tenants.exceptions import all_errors

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SOURCES = [file for file in sorted(DOCS.rglob("*.md")) if "_build" not in file.parts]
#: Pages that are read in the repository itself.
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]

#: Elements that make a browser fetch something, and the attribute that says what.
LOADING = {
    "script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src",
    "video": "src", "audio": "src", "object": "data", "embed": "src", "use": "href",
}  # fmt: skip
IN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])([^"')\s]+)""")


@dataclass
class Page(HTMLParser):
    """What one page loads, where it leads, and what can be led to in it."""

    file: Path
    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        self.text = self.file.read_text("utf-8")
        self.feed(self.text)
        self.loads += IN_STYLE.findall(" ".join(re.findall(r"<style.*?</style>", self.text, re.S)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if LOADING.get(tag) in given:
            self.loads.append(given[LOADING[tag]])
        self.loads += IN_STYLE.findall(given.get("style", ""))

    def target_of(self, link: str) -> Path:
        """Return the file that a link without a host leads to."""
        path = unquote(urlsplit(link).path)
        return (self.file.parent / path).resolve() if path else self.file


class Manual:
    """The built pages, by file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> dict[Path, Page]:
        return {file: Page(file) for file in sorted(self.folder.rglob("*.html"))}

    def page(self, name: str) -> Page:
        return self.pages[self.folder / f"{name}.html"]


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Manual:
    """The manual as `make docs` builds it: a warning is an error."""
    folder = tmp_path_factory.mktemp("manual").resolve()
    options = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "doctrees")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (built.returncode, built.stderr) == (0, "")
    return Manual(folder / "html")


# The pages -----------------------------------------------------------------------------------


def test_nothing_is_loaded_from_a_foreign_host(manual: Manual) -> None:
    loads = [(page.file.name, load) for page in manual.pages.values() for load in page.loads]
    for sheet in manual.folder.rglob("*.css"):
        loads += [(sheet.name, load) for load in IN_STYLE.findall(sheet.read_text("utf-8"))]
    assert len(loads) > len(manual.pages)
    assert [one for one in loads if urlsplit(one[1]).netloc] == []


def test_every_page_is_reached_from_the_index(manual: Manual) -> None:
    start = manual.folder / "index.html"
    reached, todo = {start}, [start]
    while todo:
        page = manual.pages[todo.pop()]
        for link in page.links:
            target = page.target_of(link)
            if not urlsplit(link).netloc and target in manual.pages and target not in reached:
                reached.add(target)
                todo.append(target)
    expected = {manual.folder / f.relative_to(DOCS).with_suffix(".html") for f in SOURCES}
    assert expected - reached == set()


def test_every_link_inside_leads_somewhere(manual: Manual) -> None:
    dead = []
    for page in manual.pages.values():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = page.target_of(link)
            ids = manual.pages[target].ids if target in manual.pages else set()
            if not target.is_file() or (ids and unquote(parts.fragment) not in {"", *ids}):
                dead.append((page.file.name, link))
    assert dead == []


def test_links_of_the_repositorys_own_pages_lead_somewhere() -> None:
    dead = []
    for file in FRONT:
        for link in re.findall(r"\]\(([^)\s]+)\)", file.read_text("utf-8")):
            parts = urlsplit(link)
            target = (file.parent / parts.path) if parts.path else file
            if not parts.scheme and not (target.exists() and _has_heading(target, parts.fragment)):
                dead.append((file.name, link))
    assert dead == []


def _has_heading(file: Path, fragment: str) -> bool:
    if not fragment:
        return True
    headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), re.M)
    return fragment in [re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings]


# What must be in them ------------------------------------------------------------------------


def test_every_command_has_its_section(manual: Manual) -> None:
    ours = {name for name, app in get_commands().items() if (ROOT / str(app)).is_dir()}
    assert len(ours) > 10
    assert ours - manual.page("reference/commands").ids == set()


def test_every_error_has_its_entry_with_its_status(manual: Manual) -> None:
    page = manual.page("reference/errors")
    source = (DOCS / "reference/errors.md").read_text("utf-8")
    for error in all_errors():
        assert error.code in page.ids, error
        said = re.search(rf"^## {error.code}\n\n\*\*([\d, ]+)\.\*\*", source, re.M)
        assert said, error
        assert str(error.status) in said[1].split(", "), error
    told = set(re.findall(r"^## (\w+)$", source, re.M))
    assert told == {error.code for error in all_errors()}


def test_every_setting_is_explained(manual: Manual) -> None:
    page = manual.page("reference/settings")
    for conf in ROOT.glob("*/conf.py"):
        for name in re.findall(r"CONSENTFUL_\w+", conf.read_text("utf-8")):
            assert name in page.text, name


def test_every_variable_of_the_environment_is_explained() -> None:
    told = (DOCS / "reference/settings.md").read_text("utf-8")
    read = set()
    for file in (ROOT / "config").rglob("*.py"):
        read |= set(re.findall(r'_?read_\w+\(\s*"([A-Z_]+)"', file.read_text("utf-8")))
    assert len(read) > 5
    assert {name for name in read if f"`{name}`" not in told} == set()


def test_every_system_check_is_explained() -> None:
    told = (DOCS / "reference/settings.md").read_text("utf-8")
    for file in ROOT.glob("*/checks.py"):
        for name in re.findall(r'id="(consentful\.\w+)"', file.read_text("utf-8")):
            assert f"`{name}`" in told, name


def test_every_action_is_explained(manual: Manual, generate: Any) -> None:
    page = manual.page("reference/events")
    captured = [name for _, names in generate.find_captured_actions() for name in names]
    told = generate.find_told_actions()
    assert {"preference.replaced", "consent.withdrawn", "notice.created"} <= set(captured)
    assert {"notice.changed", "consent.deleted", "preference.changed"}.isdisjoint(captured)
    assert "access.denied" in told
    for action in [*captured, *told]:
        assert f">{action}<" in page.text, action


def test_the_python_interface_is_listed(manual: Manual) -> None:
    ids = manual.page("reference/python").ids
    assert {"consent.services.decide", "preferences.selectors.get_preference"} <= ids
    assert "agents.context.build_context" in ids


def test_every_tool_has_its_section_and_every_credential_its_name(manual: Manual) -> None:
    page = manual.page("reference/tools")
    for name, tool in TOOLS.items():
        assert name.replace("_", "-") in page.ids or name in page.ids
        for argument in tool.properties:
            assert argument in page.text
    assert [name for name in FORMS if name not in page.text] == []


def test_every_measure_of_speed_is_listed_with_its_goal(manual: Manual) -> None:
    page = manual.page("reference/benchmarks").text
    assert len(MEASURES) > 10
    for measure in MEASURES:
        row = re.search(rf"<tr[^>]*>(?:(?!</tr>).)*>{measure.name}<.*?</tr>", page, re.S)
        assert row, measure.name
        assert measure.scale.describe_bound(measure.goal) in row[0], measure.name


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that takes the reference from the code."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("generate")


# What it tells people to type ----------------------------------------------------------------

FENCE = re.compile(r"^[ ]*(?:```|:::)\{?console\}?\n(.*?)^[ ]*(?:```|:::)", re.M | re.S)
#: What ends one simple command of a shell's line.
ENDS = {"|", "||", "&&", ";", "&", "(", ")"}


def shell_lines(text: str) -> Iterator[str]:
    """Yield what stands after each prompt of a page's `console` blocks, joined as a shell does."""
    for block in FENCE.findall(text):
        lines = iter(re.sub(r"\\\n\s*", " ", block).splitlines())
        for line in lines:
            if line.strip().startswith("$ "):
                line = line.strip()[2:]
                while is_quote_open(line):
                    line += f" {next(lines)}"
                yield line


def is_quote_open(line: str) -> bool:
    """Whether the shell would ask for more before it runs this."""
    try:
        shlex.split(line, comments=True)
    except ValueError:
        return True
    return False


def simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line, those inside quotes and `$(…)` included."""
    for inner in re.findall(r'"[^"]*\$\(([^()"]*)\)[^"]*"', line):
        yield from simple_commands(inner)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    is_redirection = False
    for word in [*lexer, ";"]:
        if word in ENDS:
            if words:
                yield words
            words = []
        elif set(word) <= set("<>&"):
            is_redirection = True
            continue
        elif not is_redirection:
            words.append(word)
        is_redirection = False


def fault_of(words: list[str], targets: set[str]) -> str | None:
    """Return what is wrong with a command of ours, or None."""
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    if words and words[0] == "make":
        wanted = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
        unknown = [word for word in wanted if word not in targets]
        return f"make knows no {unknown[0]}" if unknown else None
    at = next((place for place, word in enumerate(words) if word.endswith("manage.py")), None)
    if at is None or len(words) < at + 2:
        return None
    name, arguments = words[at + 1], [re.sub(r"\$\w+", "1", word) for word in words[at + 2 :]]
    found = get_commands().get(name)
    if found is None:
        return f"there is no command {name}"
    command = found if isinstance(found, BaseCommand) else load_command_class(found, name)
    try:
        command.create_parser("manage.py", name).parse_args(arguments)
    except CommandError as refusal:
        return f"{name}: {refusal}"
    return None


@pytest.mark.parametrize("file", [*FRONT, *SOURCES], ids=lambda f: str(f.relative_to(ROOT)))
def test_commands_can_be_typed_as_they_stand(file: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    faults = [
        (line, fault)
        for line in shell_lines(file.read_text("utf-8"))
        for words in simple_commands(line)
        if (fault := fault_of(words, targets))
    ]
    assert faults == []


def test_a_command_that_cannot_be_typed_is_noticed() -> None:
    page = """
```console
$ .venv/bin/python manage.py create_tenant acme --name 'Acme Ltd' > slug.txt
$ TOKEN=$(.venv/bin/python manage.py issue_token alice --dayz 3)
$ curl -H "X: $(.venv/bin/python manage.py tokn)" http://127.0.0.1/ && make srve
$ .venv/bin/python manage.py grant_role acme \\
      alice king
created
```
"""
    found = [
        fault
        for line in shell_lines(page)
        for words in simple_commands(line)
        if (fault := fault_of(words, {"serve"}))
    ]
    assert [fault.split(":")[0] for fault in found] == [
        "issue_token",
        "there is no command tokn",
        "make knows no srve",
        "grant_role",
    ]
