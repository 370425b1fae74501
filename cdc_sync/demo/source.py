"""What the demo needs of a database, whichever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from typing_extensions import Self

from cdc_sync.demo.compare import TableImage
from cdc_sync.demo.scenario import Scenario
from cdc_sync.local import stack as stack_
from cdc_sync.local.stack import LocalStack


class Source(Protocol):
    """One connection to a database."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def execute(self, statements: Sequence[str]) -> None:
        """Run statements in one transaction, as far as the database can."""
        ...

    def tables(self, schema: str) -> tuple[str, ...]:
        """Return the tables of a schema as `schema.table`."""
        ...

    def key(self, table: str) -> tuple[str, ...]:
        """Return the names of the primary key's columns in key order."""
        ...

    def image(self, table: str) -> TableImage:
        """Read a whole table, rows in the order of its key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A kind of database that the demo can be played with.

    Attributes:
        name: what the command line and the stack call it.
        title: what people call it.
        config: the file in `conf` that describes its pipeline.
        scenario: what happens at it.
        open: makes what the demo needs on the running server, given the demo's name, and connects.
        capture: registers the connector, whose topics begin with the demo's name.
        client: the command that gives people a prompt.
    """

    name: stack_.Database
    title: str
    config: str
    scenario: Scenario
    open: Callable[[LocalStack, str], Source]
    capture: Callable[[LocalStack, str], None]
    client: Callable[[LocalStack, str], str]
