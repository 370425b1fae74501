"""The leases of a pipeline, below its root: `lease/00000042.json`, and `standby/JOB.json` of jobs that wait for one.

Each is a `Lease`; one that is waited for has the number 0.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import PurePosixPath

from cdc_sync.core.model.lease import Lease
from cdc_sync.storage.documents import Documents

_KEPT = 20
_REMEDY = "delete the file if no job of this pipeline runs"


class Leases:
    """Files of one pipeline. Thread-safe.

    Every method raises `TransientError` if the store does not answer, and `HistoryError` if a file is damaged.
    """

    def __init__(self, root: str, *, create: bool = False) -> None:
        """Open the files below a pipeline's root; reading needs no `create`."""
        self._files = Documents(root, create=create)

    def newest(self) -> Lease | None:
        """Return the lease in force, None if there never was one."""
        while numbers := self._numbers():
            found = self._files.get(_path(numbers[-1]), Lease, _REMEDY)
            if found is not None:
                return found
        return None

    def newest_number(self) -> int:
        """Return its number, 0 if there never was one; reads no file."""
        return max(self._numbers(), default=0)

    def make(self, lease: Lease) -> bool:
        """Put a lease in force, unless its number is taken; also true if this very job has taken it."""
        path = _path(lease.number)
        if not self._files.create(path, asdict(lease)):
            found = self._files.get(path, Lease, _REMEDY)  # a reply may have been lost
            if found is None or found.job != lease.job:
                return False
        # Who was held up for long may have taken a number that was in force, and forgotten, before.
        numbers = self._numbers()
        for number in numbers[:-_KEPT]:
            self._files.delete(_path(number))
        return numbers[-1] == lease.number

    def renew(self, lease: Lease) -> None:
        """Replace a lease by what its holder says now."""
        self._files.put(_path(lease.number), asdict(lease))

    def stand_by(self, lease: Lease) -> None:
        """Say, and say again, that a job waits for the lease."""
        self._files.put(_standby(lease.job), asdict(lease))

    def leave(self, lease: Lease) -> None:
        """Say that a job does not wait any more."""
        self._files.delete(_standby(lease.job))

    def standing_by(self) -> list[Lease]:
        """Return the jobs that wait, or did when they were killed."""
        return self._files.all("standby", Lease, _REMEDY)

    def age(self, lease: Lease) -> float | None:
        """Return for how many seconds it was not renewed, by the store's clock and this one; None if it is gone."""
        return self._files.age(_path(lease.number) if lease.number else _standby(lease.job))

    def _numbers(self) -> list[int]:
        names = (PurePosixPath(path) for path in self._files.paths("lease"))
        return sorted(int(name.stem) for name in names if name.suffix == ".json" and name.stem.isdecimal())


def _path(number: int) -> str:
    return f"lease/{number:08d}.json"


def _standby(job: str) -> str:
    return f"standby/{job}.json"
