"""What a run of the verification leaves behind for whoever watches: a line, and a file of metrics."""

import logging
import os
import tempfile
import time
from pathlib import Path

from tenants.conf import metrics_directory
from tenants.observation import JOBS, describe, note

#: In Prometheus' text format, so that a node exporter reads it where the service does not.
VERIFICATION = "verify.prom"

TEMPLATE = """\
# HELP consentful_verify_findings Findings of the last verification of all trails.
# TYPE consentful_verify_findings gauge
consentful_verify_findings {findings}
# HELP consentful_verify_timestamp Unix time at which the last verification of all trails ended.
# TYPE consentful_verify_timestamp gauge
consentful_verify_timestamp {moment:.3f}
"""


def report_verification(
    *, events: int, rows: int, waiting: int, findings: int, is_whole: bool
) -> None:
    """
    Log one verification; keep its result where `CONSENTFUL_METRICS_DIRECTORY` names a place.

    Args:
        is_whole: every trail was verified. A look at one tenant must not end the alarm of another.
    """
    note(
        JOBS,
        logging.ERROR if findings else logging.INFO,
        "verify",
        events=events,
        rows=rows,
        waiting=waiting,
        findings=findings,
    )
    directory = metrics_directory()
    if not is_whole or directory is None:
        return
    try:
        _replace(directory, TEMPLATE.format(findings=findings, moment=time.time()))
    except OSError as fault:
        note(JOBS, logging.WARNING, "job_refused", job="verify_audit", **describe(fault))


def _replace(directory: Path, text: str) -> None:
    """Write the file as a whole: a reader sees the old one or the new one."""
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=directory)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(directory / VERIFICATION)
