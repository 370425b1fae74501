"""A configuration that is followed: its file is looked at while the job runs, and what is new in it is taken up."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from structlog import get_logger

from cdc_sync.config.models import Config
from cdc_sync.errors import ConfigError

LOOK_EVERY = 5.0
"""Seconds from one look at the file to the next."""
_CLIENTS = tuple(
    f"kafka.{name}" for name in ("bootstrap_servers", "allow", "properties", "driver_properties", "spark_properties")
)
AT_START = ("pipeline", "target", "spark", "job.stop_within", *_CLIENTS)
"""What the lease, Spark's session, Kafka's clients and the process are made by: only another start takes it up."""
_BEAT = 0.2


def changed(before: Config, after: Config) -> tuple[str, ...]:
    """Return the sections that differ."""
    return tuple(name for name in Config.model_fields if getattr(before, name) != getattr(after, name))


def for_a_start(before: Config, after: Config) -> tuple[str, ...]:
    """Return what differs that a running job does not take up."""
    return tuple(name for name in AT_START if attrgetter(name)(before) != attrgetter(name)(after))


class Followed:
    """The file that a job's configuration is from.

    Attributes:
        ends: set when the job is to stop, or to go on with another configuration.
        refused: why the last edit was not taken up; None if it was.
    """

    def __init__(self, path: str | Path, config: Config, load: Callable[[], Config], *, now: threading.Event) -> None:
        """Begin with the configuration as it was loaded.

        Args:
            path: of the file.
            load: reads it, and checks it.
            now: set by whoever wants it to be read at once, and again though the file is the same: what `${file:…}`
                names may be another.
        """
        self.ends = threading.Event()
        self.refused: str | None = None
        self._path = Path(path)
        self._config = config
        self._load = load
        self._now = now
        self._seen: str | None = ""
        self._next: Config | None = None

    def configurations(self, stop: threading.Event) -> Iterator[Config]:
        """Yield the configuration, and, each time `ends` was set and nothing stops the job, the next one."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop, over), name="configuration", daemon=True)
        thread.start()
        try:
            yield self._config
            while self._next is not None and not stop.is_set():
                self._config, self._next = self._next, None
                self.ends.clear()
                yield self._config
        finally:
            over.set()
            thread.join()

    def look(self, *, again: bool = False) -> None:
        """Look whether the file says something else, and take it up, or say why not.

        Args:
            again: read it though it is the same file.
        """
        digest = self._digest()
        if digest == self._seen and not again:
            return
        self._seen = digest
        try:
            found = self._load()
        except ConfigError as error:
            self._refuse("; ".join(map(str, (error, *error.others))))
            return
        except Exception as error:  # whatever it is, the thread that looks must live: it also tells the job to stop
            self._refuse(f"it cannot be read ({type(error).__name__})")
            return
        fixed = for_a_start(self._config, found)
        if fixed:
            self._refuse(f"what is set under {', '.join(fixed)} is taken up by another start only, and so is this edit")
            return
        self.refused = None
        if sections := changed(self._config, found):
            get_logger().info("configuration taken up", sections=sections)
            self._next = found
            self.ends.set()

    def _refuse(self, why: str) -> None:
        if why != self.refused:
            get_logger().error("configuration refused, the job goes on with the one before", reason=why)
        self.refused = why

    def _digest(self) -> str | None:
        with suppress(OSError):
            return hashlib.sha256(self._path.read_bytes()).hexdigest()
        return None

    def _watch(self, stop: threading.Event, over: threading.Event) -> None:
        waited = 0.0
        while not over.wait(_BEAT):
            if stop.is_set() or self._next is not None:
                self.ends.set()
            waited += _BEAT
            asked = self._now.is_set()
            if self._next is None and (asked or waited >= LOOK_EVERY):
                self._now.clear()
                waited = 0.0
                self.look(again=asked)
