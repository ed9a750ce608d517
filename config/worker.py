"""
The process beside a service that works off its job queue: ``python -m config.worker``.

Here belongs the process alone. What was left by one that was killed is taken up again at its start.
"""

import asyncio
import os

import django
from procrastinate import App
from procrastinate.connector import BaseAsyncConnector

from config.lifeline import end_with_parent

#: Seconds that a job in hand has for its end.
PATIENCE = 8.0


async def work(app: App, *, queue: str, wait: bool = True) -> None:
    """
    Run the jobs of one queue until a signal comes, or until none is due.

    Without LISTEN, which does not work behind a pooler: a look every few seconds will do.
    """
    async with app.open_async():
        for job in await app.job_manager.get_stalled_jobs(queue=queue):
            await app.job_manager.retry_job(job)
        await app.run_worker_async(
            queues=[queue],
            wait=wait,
            listen_notify=False,
            delete_jobs="successful",
            install_signal_handlers=wait,
            shutdown_graceful_timeout=PATIENCE,
        )


def for_workers(app: App) -> App:
    """Return the app with connections of its own, since Django's belong to one thread each."""
    connector: BaseAsyncConnector = app.connector.get_worker_connector()  # type: ignore[attr-defined]  # Django's has it
    return app.with_connector(connector)


def main() -> None:
    end_with_parent()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from config.jobs import QUEUE, app  # noqa: PLC0415  tasks need apps that are ready

    asyncio.run(work(for_workers(app), queue=QUEUE))


if __name__ == "__main__":
    main()
