"""How events show a column, beyond the type that its target holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What an event's schema says of a column's type.

    Attributes:
        type: Kafka Connect's, of an array with its element's: `array<int64>`.
        name: the semantic name, such as `io.debezium.time.Timestamp`; of an array, its element's.
        parameters: those of the connector's that say something of the type, as `(name, value)`, in order of names.
        source: the source's own type, such as `VARCHAR(10)`, where the connector propagates it; else empty.
    """

    type: str
    name: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    source: str = ""

    def parameter(self, name: str) -> str | None:
        """Return a parameter's value, None if it is not there."""
        return next((value for found, value in self.parameters if found == name), None)

    def __str__(self) -> str:
        return self.name.rpartition(".")[2] or self.type
