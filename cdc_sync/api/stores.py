"""What a job wrote down of a pipeline, and tables found by what people call them."""

from __future__ import annotations

import difflib
import getpass
import os
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cdc_sync.config import Config
from cdc_sync.core.model.positions import KafkaPosition, TableId
from cdc_sync.core.model.times import utc
from cdc_sync.errors import ConfigError, HistoryError, RefusedError
from cdc_sync.storage.state import StateStore

if TYPE_CHECKING:
    from cdc_sync.storage.history import HistoryStore


def state_store(config: Config) -> StateStore:
    """Open what a job wrote down of a pipeline.

    Raises:
        ConfigError: if no job ever wrote there.
    """
    store = StateStore(config.pipeline.root)
    if not store.holds_any():
        raise ConfigError(
            f"Cannot find pipeline {config.pipeline.name!r}: nothing is written at {config.pipeline.root}; start it "
            "with `cdc-sync run`; where it has run, check pipeline.state and pipeline.name"
        )
    return store


def history_store(config: Config) -> HistoryStore:
    """Open its history.

    Raises:
        ConfigError: if no job ever wrote there.
    """
    from cdc_sync.storage.history import HistoryStore

    state_store(config)
    return HistoryStore(f"{config.pipeline.root}/history")


def find_table(tables: Iterable[TableId], wanted: str) -> TableId:
    """Find a table by its dotted name, or by as much of its end as no other table shares.

    Raises:
        HistoryError: if there is none, or more than one.
    """
    known = sorted(tables)
    exact = [table for table in known if str(table) == wanted]
    found = exact or [table for table in known if str(table).endswith(f".{wanted}")]
    match found:
        case [table]:
            return table
        case []:
            near = difflib.get_close_matches(wanted, [str(table) for table in known], n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}?" if near else f"{len(known)} tables are recorded"
            raise HistoryError(f"Cannot find table {wanted!r}: no schema version of it is recorded; {hint}")
        case _:
            names = " and ".join(str(table) for table in found)
            raise HistoryError(f"Cannot choose table {wanted!r}: {names} both end so; write the whole name")


def place_of(text: str) -> KafkaPosition:
    """Read `topic[partition]@offset`.

    Raises:
        RefusedError: if it is written otherwise.
    """
    found = re.fullmatch(r"(.+)\[(\d+)\]@(\d+)", text)
    if found is None:
        raise RefusedError(f"Cannot find {text!r}: a place is written as topic[partition]@offset, as `list` shows it")
    return KafkaPosition(topic=found[1], partition=int(found[2]), offset=int(found[3]))


def this_person() -> str:
    """Return who asks, as `user@host`."""
    return f"{getpass.getuser()}@{os.uname().nodename}"


def utc_now() -> str:
    """Return the time, as it is written down."""
    return utc(time.time())


def is_running(config: Config) -> bool:
    """Whether a job runs the pipeline."""
    from cdc_sync.operations.overview import job_line
    from cdc_sync.storage.leases import Leases

    job = job_line(Leases(config.pipeline.root))
    return job is not None and job.state == "running"
