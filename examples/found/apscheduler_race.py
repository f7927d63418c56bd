"""A scheduler that is shut down waits for a job, and the job waits for the scheduler."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from examples.found import Find


class ShutDown:
    """A job asks its scheduler which jobs there are, and a thread shuts the scheduler down."""

    def __init__(self) -> None:
        background: Any = import_module("apscheduler.schedulers.background")
        self.scheduler: Any = background.BackgroundScheduler(timezone=UTC)
        self.scheduler.add_job(self.job, "interval", hours=1, next_run_time=datetime.now(UTC))
        self.scheduler.start()

    def job(self) -> None:
        self.scheduler.get_jobs()

    def actor_shuts_down(self) -> None:
        self.scheduler.shutdown()


FIND = Find(
    package="APScheduler==3.11.3",
    promise="`shutdown` waits until all jobs that run have ended (its docstring).",
    what=(
        "`shutdown` waits for the job while it holds the lock of the job stores, and the job needs that lock to"
        " ask for its own: both wait for ever."
    ),
    mended="release the lock of the job stores while the executors are shut down.",
    program=ShutDown,
    message="no thread can go on: shuts_down (shutdown), pool-0 (acquire)",
    counted=True,
    gil=True,
)
