"""
The service's job queue: procrastinate, in the same database, so that a job is given with what it follows.

Here belong its tasks. What they do belongs in the apps, which know no queue. No argument of a job
names anybody: the id of an erasure is all.
"""

from procrastinate import RetryStrategy
from procrastinate.contrib.django import app as app

from privacy.jobs import run_erasure

QUEUE = "consentful"

#: Each attempt asks the holders that are due; the pauses grow as theirs do, to an hour at most.
RETRY = RetryStrategy(exponential_wait=5, max_attempts=None)


class Unfinished(Exception):
    """A holder is yet to erase something: the job is tried again."""


@app.task(name="consentful.ask_holders", queue=QUEUE, retry=RETRY)
def ask_holders(reference: str) -> None:
    """Ask the holders of one erasure, until all of them are done."""
    if not run_erasure(reference):
        raise Unfinished


def give_to_queue(reference: str) -> None:
    """Defer the job of one erasure, in the transaction that erased."""
    ask_holders.defer(reference=reference)
