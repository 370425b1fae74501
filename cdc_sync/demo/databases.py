"""The databases that the demo can be played with."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_sync.demo.mariadb import MARIADB
from cdc_sync.demo.postgres import POSTGRES
from cdc_sync.demo.source import Database

DATABASES: Mapping[str, Database] = {database.name: database for database in (POSTGRES, MARIADB)}
