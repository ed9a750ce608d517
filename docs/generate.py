"""
What the manual takes from the code itself, so that it cannot fall behind.

Here belongs a function for each kind of reference that the code already states: it returns
Markdown, and a page asks for it by name with the directive `generated`. What only a person can
say stands in the page, around it.
"""

import argparse
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.apps import AppConfig, apps
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from docutils import nodes
from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from agents.credentials import FORMS
from agents.tool_schemas import TOOLS, Tool
from audit.verification import captured_models
from benchmarks.measures import MEASURES
from tenants.exceptions import all_errors
from tenants.roles import Role

ROOT = Path(__file__).resolve().parent.parent
#: The file of the OpenAPI document, beside the pages of the reference.
OPENAPI = "reference/openapi.json"
API = "/api/v1/"
#: A sentence of a docstring with its line breaks in it.
BREAKS = re.compile(r"\s+")


def our_apps() -> list[AppConfig]:
    """Return the apps of this project, in their order."""
    return [app for app in apps.get_app_configs() if Path(app.path).parent == ROOT]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(BREAKS.sub(' ', cell).replace('|', chr(92) + '|') for cell in line)} |"
        for line in lines
    )


# Errors --------------------------------------------------------------------------------------


def errors() -> str:
    """Return the table of error codes; each has an entry of its own on the page."""
    rows = [
        [f"[`{error.code}`](#{error.code})", str(error.status), error.title, error().detail]
        for error in sorted(all_errors(), key=lambda error: error.status)
    ]
    return table(["code", "status", "title", "what the answer says, if nothing nearer"], rows)


# Settings ------------------------------------------------------------------------------------


def settings() -> str:
    """Return every setting of the apps with what its function in `conf.py` says."""
    return "\n\n".join(
        f"`{name}`\n: " + text.replace("\n", "\n  ") for name, text in find_settings().items()
    )


def find_settings() -> dict[str, str]:
    """Return the text of each setting by its name: the docstring after the name and a colon."""
    found: dict[str, str] = {}
    for app in our_apps():
        if not (Path(app.path) / "conf.py").exists():
            continue
        conf = importlib.import_module(f"{app.name}.conf")
        for _, function in inspect.getmembers(conf, inspect.isfunction):
            said = re.match(r"`(CONSENTFUL_\w+)`:\s*(.+)", inspect.getdoc(function) or "", re.S)
            if said and function.__module__ == conf.__name__:
                text = said[2].strip()
                found[said[1]] = text[0].upper() + text[1:]
    return dict(sorted(found.items()))


# Commands ------------------------------------------------------------------------------------


def our_commands() -> dict[str, str]:
    """Return the app of each command of this project, by the command's name."""
    names = {app.name for app in our_apps()}
    return {name: app for name, app in sorted(get_commands().items()) if app in names}


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser that `manage.py` uses for a command."""
    found = get_commands()[name]
    command = found if isinstance(found, BaseCommand) else load_command_class(found, name)
    return command.create_parser("manage.py", name)


def command(name: str) -> str:
    """Return what a command does and takes, under a heading of its own."""
    parser = parser_of(name)
    common = {action.dest for action in BaseCommand().create_parser("manage.py", "any")._actions}
    own = [action for action in parser._actions if action.dest not in common]
    usage = " ".join([name, *(_usage(action) for action in sorted(own, key=_is_option))])
    told = [(action, _meaning(action)) for action in own]
    rows = [[f"`{_spelling(action)}`", meaning] for action, meaning in told if meaning]
    takes = table(["argument", "meaning"], rows) if rows else ""
    return "\n\n".join(
        [
            f"### {name}",
            f"```text\nmanage.py {usage}\n```",
            _prose(parser.description or ""),
            takes if own else "It takes no arguments.",
        ]
    )


def further_commands() -> str:
    """Return the commands that the page of commands says nothing more about."""
    page = (ROOT / "docs/reference/commands.md").read_text("utf-8")
    told = set(re.findall(r"\{command\} (\w+)", page))
    return "\n\n".join(command(name) for name in our_commands() if name not in told)


def _prose(text: str) -> str:
    """Return a help text as Markdown: an option is code, or its hyphens would become a dash."""
    return re.sub(r"(?<![\w`-])(--[\w-]+)", r"`\1`", BREAKS.sub(" ", text)).strip()


def _is_option(action: argparse.Action) -> bool:
    return bool(action.option_strings)


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return metavar + ("…" if action.nargs in ("*", "+") else "")


def _spelling(action: argparse.Action) -> str:
    spelt = ", ".join(action.option_strings)
    return f"{spelt} {_value(action)}".strip()


def _usage(action: argparse.Action) -> str:
    spelt = f"{action.option_strings[-1] if action.option_strings else ''} {_value(action)}".strip()
    if not (action.required or (not action.option_strings and action.nargs != "?")):
        spelt = f"[{spelt}]"
    return spelt + ("…" if isinstance(action, argparse._AppendAction) else "")


def _meaning(action: argparse.Action) -> str:
    parts = [_prose(action.help or "").rstrip(".")]
    if action.choices:
        parts.append("one of " + ", ".join(f"`{choice}`" for choice in action.choices))
    if action.default not in (None, False, "", [], argparse.SUPPRESS) and action.nargs != 0:
        parts.append(f"`{action.default}` if left out")
    return "; ".join(part for part in parts if part)


# Routes and roles ----------------------------------------------------------------------------


def routes() -> str:
    """Return which role may use which route at all."""
    summaries = SchemaGenerator().get_schema(public=True)["paths"]
    rows = []
    for path, _, method, callback in EndpointEnumerator().get_api_endpoints():
        roles = getattr(callback.cls, "roles", {}).get(method)
        if roles is None:
            continue
        summary = summaries.get(path, {}).get(method.lower(), {}).get("summary", "")
        marks = ["yes" if role in roles else "" for role in Role]
        shown = path.removeprefix(f"{API}tenants/{{tenant}}/")
        rows.append([f"`{method} …/{shown}`", summary.rstrip("."), *marks])
    return table(["route", "does", *(role.value for role in Role)], rows)


# Events --------------------------------------------------------------------------------------

ATTACHED = re.compile(
    r"consentful_attach\('(?P<table>\w+)', '(?P<noun>\w+)'(?:, '(?P<verb>\w*)')?(?:, '(?P<column>\w*)')?\)"
)
#: By the names of the triggers: others refuse for some rows alone, and leave a table changeable.
LASTING = re.compile(
    r"consentful_(?:insert_only|append_only|immutable) BEFORE UPDATE OR DELETE ON (\w+)"
)
TOLD = re.compile(r"action NOT IN \(([^)]*)\)")


def actions() -> str:
    """Return the actions that capture writes, one row for each captured table."""
    rows = [
        [str(model._meta.verbose_name), f"`{model._meta.db_table}`", ", ".join(map(_code, names))]
        for model, names in find_captured_actions()
    ]
    return table(["a row of", "table", "actions"], rows)


def find_captured_actions() -> Iterator[tuple[Any, list[str]]]:
    """Yield each captured model with its actions, from the SQL that puts its table under capture."""
    attached = {found["table"]: found for found in ATTACHED.finditer(_sql())}
    lasting = set(LASTING.findall(_sql()))
    for model in sorted(captured_models(), key=_place):
        found = attached[model._meta.db_table]
        verbs = ["created"]
        if found["column"]:
            verbs = [value for value, _ in model._meta.get_field(found["column"]).flatchoices]
        if model._meta.db_table not in lasting:
            verbs += [found["verb"] or "changed", "deleted"]
            if any(field.name == "expires_at" for field in model._meta.fields):
                verbs.append("expired")
            if any(field.name == "held_at" for field in model._meta.fields):
                verbs += ["held", "released"]
            if any(field.name == "archived_at" for field in model._meta.fields):
                verbs += ["archived", "restored"]
        yield model, [f"{found['noun']}.{verb}" for verb in verbs]


def find_told_actions() -> list[str]:
    """Return the actions that `consentful_record_event` accepts, of all its definitions."""
    accepted = " ".join(TOLD.findall(_sql()))
    return list(dict.fromkeys(re.findall(r"'([\w.]+)'", accepted)))


def _place(model: Any) -> int:
    """Where a model stands in the code: apps in their order, models in that of their file."""
    return list(apps.get_models()).index(model)


def _sql() -> str:
    return "\n".join(
        file.read_text("utf-8")
        for app in our_apps()
        for file in sorted((Path(app.path) / "sql").glob("*.sql"))
    )


def _code(text: str) -> str:
    return f"`{text}`"


# The Python interface ------------------------------------------------------------------------

#: What the functions of `services` and `selectors` take and give.
TYPES = {
    "audit.actors": ["Actor"],
    "tenants.callers": ["Caller"],
    "tenants.roles": ["Role"],
    "tenants.scopes": ["Scope"],
    "tenants.units": ["unit_of_work"],
}
#: Further public modules, by app.
FURTHER = {"preferences": ("searching", "ranked", "ranking", "resolution")}


def python() -> str:
    """Return the public functions of every app, from their docstrings."""
    parts = []
    for app in our_apps():
        for name in ("services", "selectors", "context", *FURTHER.get(app.name, ())):
            if (Path(app.path) / f"{name}.py").exists():
                module = f"{app.name}.{name}"
                parts += [f"## {module}", _rst(f".. automodule:: {module}\n   :members:")]
    parts.append("## What they take")
    for module, names in TYPES.items():
        members = ", ".join(names)
        parts.append(_rst(f".. automodule:: {module}\n   :members: {members}\n   :noindex:"))
    return "\n\n".join(parts)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}\n```"


# Tools for agents ----------------------------------------------------------------------------


def tools() -> str:
    """Return each tool with what it takes, under a heading of its own."""
    return "\n\n".join(_tool(tool) for tool in TOOLS.values())


def _tool(tool: Tool) -> str:
    rows = [
        [
            f"`{name}`",
            _json_type(schema),
            "yes" if name in tool.required else "",
            str(schema.get("description", "")),
        ]
        for name, schema in tool.properties.items()
    ]
    kind = "Reads only." if tool.only_reads else "May destroy what stood there."
    gives = ", ".join(f"`{name}`" for name in tool.gives["properties"])
    return "\n\n".join(
        [
            f"## {tool.name}",
            tool.description,
            table(["argument", "type", "required", "meaning"], rows),
            f"*Gives* {gives}. *{kind}*",
        ]
    )


def _json_type(schema: Mapping[str, Any]) -> str:
    """Return the types of a schema; null is told once for all of them."""
    types = schema.get("type", "any value")
    return types if isinstance(types, str) else " or ".join(one for one in types if one != "null")


def credentials() -> str:
    """Return the names of the forms of credentials, as a list."""
    return "\n".join(f"- {name}" for name in FORMS)


# Benchmarks ----------------------------------------------------------------------------------


def measures() -> str:
    """Return every measure of the benchmarks with its goals."""
    rows = [
        [
            _code(one.name),
            one.title,
            one.against,
            one.scale.describe_bound(one.goal),
            one.scale.describe_bound(one.stretch),
        ]
        for one in MEASURES
    ]
    return table(["name", "what is timed", "compared with", "goal", "stretch"], rows)


# Sphinx --------------------------------------------------------------------------------------

GENERATORS: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        actions,
        credentials,
        errors,
        further_commands,
        measures,
        python,
        routes,
        settings,
        tools,
    )
}


class Generated(SphinxDirective):
    """`{generated} NAME`: what the function of that name returns."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        # The code may have changed although the page has not.
        self.env.note_reread()
        return self.parse_text_to_nodes(
            GENERATORS[self.arguments[0]](), allow_section_headings=True
        )


class Command(SphinxDirective):
    """`{command} NAME`: what `manage.py` itself says about a command, then the directive's text."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        text = "\n\n".join([command(self.arguments[0]), *("\n".join(self.content),)])
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def write_openapi(app: Sphinx, fault: Exception | None) -> None:
    """Put the OpenAPI document beside the pages, as the service itself gives it."""
    if fault is None and app.builder.format == "html":
        document = SchemaGenerator().get_schema(public=True)
        target = Path(app.outdir) / OPENAPI
        target.write_text(json.dumps(document, indent=2, ensure_ascii=False, default=str), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("generated", Generated)
    app.add_directive("command", Command)
    app.connect("build-finished", write_openapi)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
