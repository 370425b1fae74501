"""Which changes of its own transaction a row was certainly written behind.

Postgres numbers the commands of a transaction that write anything, upwards from 0, and each row of its catalogue tells
the command that wrote it (`cmin`). An event does not tell its row's, but there has to be one for it: where all numbers
from 0 on were taken by changes of the table, none is left for a row before them.

Source: Postgres, `GetCurrentCommandId`, `CommandCounterIncrement`. What one command writes is written at once, and DDL
that a function does inside a statement has higher numbers than that statement's rows.
"""

from __future__ import annotations

from collections.abc import Collection

NOTHING = -1
"""Behind no command at all."""


def last_before(own: Collection[int], named: int | None) -> int | None:
    """Return the last command that a row of a transaction was certainly written behind.

    Args:
        own: the commands of the transaction that are known to have changed the table.
        named: the one that gave it its name, None if it was another transaction.

    Returns:
        None if the row may be of another table, which had the name before: a command wrote it then, and one more took
        that table's name away.
    """
    taken = {*own} if named is None else {*own, named}
    first = next(number for number in range(len(taken) + 1) if number not in taken) - 1
    if named is None:
        return first
    free = named - sum(number < named for number in taken)
    return None if free >= _TO_PASS_A_NAME_ON else max(first, named)


_TO_PASS_A_NAME_ON = 2
