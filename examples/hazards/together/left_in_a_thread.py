"""What a task leaves in a thread-local value, the next task of that thread finds."""

from __future__ import annotations

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

from examples.hazards.lesson import AndIf, Lesson, Met


class Requests:
    """A pool of one thread serves two requests; each notes its user, and the second is of a guest."""

    def __init__(self) -> None:
        self.local = threading.local()
        self.served: list[tuple[str, str]] = []

    def actor_main(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.serve, "ann")
            pool.submit(self.serve, None)

    def serve(self, user: str | None) -> None:
        if user is not None:
            self.local.user = user
        self.served.append((user or "guest", getattr(self.local, "user", "guest")))

    def at_end(self) -> None:
        assert all(user == seen for user, seen in self.served), f"a guest was served as {self.served[-1][1]}"


class Cleared(Requests):
    """Takes the value away when the request has ended, however it has."""

    def serve(self, user: str | None) -> None:
        try:
            super().serve(user)
        finally:
            self.local.__dict__.clear()


class OwnContext(Requests):
    """A context variable, and a context of its own for each task."""

    def __init__(self) -> None:
        super().__init__()
        self.user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="guest")

    def actor_main(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, self.serve, "ann")
            pool.submit(contextvars.copy_context().run, self.serve, None)

    def serve(self, user: str | None) -> None:
        if user is not None:
            self.user.set(user)
        self.served.append((user or "guest", self.user.get()))


LESSON = Lesson(
    title="Left in a thread",
    terms=("no race", "thread-local leak", "context propagation"),
    hazard="""A pool uses its threads again. A value that a task leaves in a `threading.local` is there when the next
    task runs on that thread. The second task acts for the user of the first.""",
    broken=Requests,
    question="Thread-local values are shared by no two threads. How does one request see what another one has left?",
    fixed=Cleared,
    fix="take the value away in a `finally`; or hand it over as an argument.",
    and_if=(
        AndIf(
            question="it were a context variable, with a context for each task?",
            answer="What a task sets is gone with its context. asyncio does that for its tasks; a pool does not.",
            program=OwnContext,
            fails=False,
        ),
    ),
    met=(
        Met(
            what="PEP 567, Context Variables, names thread-local values that leak between the tasks of one "
            "thread, as its reason.",
            where="https://peps.python.org/pep-0567/",
        ),
    ),
    gil="one thread",
    gil_note="With a pool of several threads it depends on which of them takes the second request.",
)

if __name__ == "__main__":
    LESSON.teach()
