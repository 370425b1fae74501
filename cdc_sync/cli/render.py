"""What commands return, as text for people or JSON for machines."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc_sync.api.dead_letters import LetterList, LettersDiscarded, LetterShown, LettersRedriven
from cdc_sync.api.results import RequestedOfTables, ResetAsked, Rewritten, RolledBack, SchemaDifference, Validation
from cdc_sync.cli import dead_letter_text, migrate_text, requested
from cdc_sync.cli.printable import printable
from cdc_sync.config import Config, Secret, Target, TargetName, redact
from cdc_sync.config.fields import duration_text
from cdc_sync.core.migration.wording import Phrase
from cdc_sync.core.model.positions import SourcePosition, TableId
from cdc_sync.core.model.times import seconds_of, span
from cdc_sync.core.planning import maintenance_report as maintained
from cdc_sync.core.planning.deciding import Decided
from cdc_sync.core.planning.maintenance_report import PipelineMaintained
from cdc_sync.core.planning.resync import ResyncAsked, marked
from cdc_sync.demo.report import DemoReport, parts
from cdc_sync.operations.migrate.report import Checked, Migrated, MigrationPlan, MigrationStatus, RevisionHistory
from cdc_sync.operations.overview import JobLine, Status
from cdc_sync.operations.verify.report import Verified
from cdc_sync.operations.verify.text import lines
from cdc_sync.runtime.reports import Plan, PlannedTable, TableHistory, VersionLine
from cdc_sync.sources.databases.postgres import CaptureResult

_WIDTH = 200
"""Columns of text that does not go to a terminal: enough that a line of a report stays one line."""
_NAMED = 3
"""Tables that a line names."""
_RETENTION_NEAR = 24 * 3600.0
"""Seconds from which on it is said."""


def show(value: object, *, as_json: bool, secrets: Collection[Secret] = ()) -> None:
    """Print a command's result on stdout; secret values show as their references."""
    if as_json:
        _write_json(jsonable(value, secrets))
        return
    terminal = sys.stdout.isatty()
    console = Console(file=sys.stdout, highlight=False, width=None if terminal else _WIDTH, soft_wrap=not terminal)
    for part in _parts(value, secrets):
        if isinstance(part, str):
            console.print(Text(printable(redact(part, secrets))))
        else:
            console.print(part)


def show_error(
    message: str, exit_code: int, *, as_json: bool, secrets: Collection[Secret] = (), others: Iterable[str] = ()
) -> None:
    """Print why a command failed: one line on stderr; with JSON one object on stdout, where the result would be.

    Args:
        others: what else is wrong, one line each.
    """
    text, *more = (printable(redact(" ".join(item.split()), secrets)) for item in (message, *others))
    if as_json:
        _write_json({"error": text, "exit_code": exit_code} | ({"others": more} if more else {}))
    else:
        sys.stderr.write("".join(f"cdc-sync: {line}\n" for line in (text, *more)))


def _write_json(data: object) -> None:
    sys.stdout.write(printable(json.dumps(data, indent=2, ensure_ascii=False)) + "\n")


def jsonable(value: object, secrets: Collection[Secret] = ()) -> Any:
    """Turn any value a command returns into what JSON can hold.

    Names of tables and source positions become their text, bytes base64, durations as in the configuration.
    """
    match value:
        case Secret():
            return value.reference
        case None | bool() | int() | float():
            return value
        case Enum():
            return jsonable(value.value, secrets)
        case str():
            return redact(value, secrets)
        case TableId() | TargetName() | SourcePosition():
            return redact(str(value), secrets)
        case bytes():
            return base64.b64encode(value).decode()
        case timedelta():
            return duration_text(value)
        case BaseModel():
            return {name: jsonable(getattr(value, name), secrets) for name in type(value).model_fields}
        case Mapping():
            return {redact(str(key), secrets): jsonable(item, secrets) for key, item in value.items()}
        case set() | frozenset():
            return sorted((jsonable(item, secrets) for item in value), key=str)
        case tuple() | list():
            return [jsonable(item, secrets) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {item.name: jsonable(getattr(value, item.name), secrets) for item in fields(value)}
        case _:
            return redact(str(value), secrets)


def _parts(value: object, secrets: Collection[Secret]) -> Iterator[str | Table]:
    match value:
        case str():
            yield value.rstrip("\n")
        case Validation():
            yield from _validation(value)
        case Status():
            yield from _status(value, secrets)
        case Plan():
            yield from _plan(value)
        case Verified():
            yield from lines(value)
        case PipelineMaintained():
            yield from maintained.lines(value)
        case DemoReport():
            yield from parts(value)
        case CaptureResult():
            yield from _capture(value)
        case SchemaDifference():
            yield f"{value.table}: version {value.before} to {value.after}"
            yield from _changes(value.changes)
        case LetterList() | LetterShown() | LettersDiscarded() | LettersRedriven():
            yield from dead_letter_text.lines(value)
        case Decided() | RolledBack() | Rewritten() | ResyncAsked() | RequestedOfTables() | ResetAsked():
            yield from requested.lines(value)
        case MigrationPlan() | Migrated() | MigrationStatus() | RevisionHistory() | Checked():
            yield from migrate_text.lines(value)
        case tuple() if value and all(isinstance(item, RevisionHistory) for item in value):
            for item in value:
                yield from migrate_text.lines(item)
        case tuple() if all(isinstance(item, TableHistory) for item in value):
            yield from _histories(value)
        case _:
            yield from _anything(jsonable(value, secrets))


def _target(target: Target) -> Iterator[str]:
    yield target.format
    if target.format == "iceberg":
        yield f"{target.catalog.type} catalog {target.catalog.name}"
    if target.format != "memory":
        yield f"warehouse {target.catalog.warehouse}"


def _validation(value: Validation) -> Iterator[str]:
    config: Config = value.config
    yield f"The configuration of pipeline {config.pipeline.name!r} can be used."
    yield f"  state    {config.pipeline.root}"
    yield f"  kafka    {config.kafka.bootstrap_servers!r}"
    reads = ", ".join(config.kafka.topics) if config.kafka.topics else f"pattern {config.kafka.topic_pattern}"
    yield f"  topics   {reads}"
    yield f"  tables   {len(config.tables)} rule{'s' if len(config.tables) != 1 else ''}"
    yield f"  target   {', '.join(_target(config.target))}"
    if value.topics is not None:
        yield f"  matching now: {', '.join(value.topics) or 'no topic'}"
    for warning in value.warnings:
        yield f"warning: {warning}"


def _status(value: Status, secrets: Collection[Secret]) -> Iterator[str | Table]:
    written = max((line.written_at for line in value.tables if line.written_at is not None), default=None)
    yield "job: " + ("none has run yet" if value.job is None else _job(value.job, written))
    if value.job is not None and value.job.state == "running":
        for name, doing in value.job.doing.items():
            yield f"{name}: {doing.what} for {span(max(0.0, time.time() - doing.since))}"
        if value.job.refused is not None:
            yield f"configuration: the last edit is refused, and the one before goes on: {value.job.refused}"
        yield from (f"topic {topic} cannot be read: {why}" for topic, why in value.job.unread.items())
    for waiting in value.standby:
        yield f"standby: {waiting.host} (pid {waiting.pid}) since {waiting.started}"
    if not value.tables:
        yield f"Pipeline {value.pipeline!r} has seen no table yet."
    else:
        # Where none is configured the column would say the same of all.
        told = any(line.evidence for line in value.tables)
        names = ("table", "target", "state", "for", "version", "lag", "behind", "not applied")
        table = Table(*names, *(("evidence",) if told else ()), box=None, pad_edge=False)
        for line in value.tables:
            counts = ", ".join(f"{count} {kind}" for kind, count in sorted(line.counts.items()) if count)
            cells = (
                str(line.table),
                line.target,
                line.state if line.unfollowed is None else "not followed",
                "-" if line.since is None else span(max(0.0, time.time() - seconds_of(line.since))),
                "-" if line.version is None else str(line.version),
                "-" if line.unfollowed else "unknown" if line.lag is None else str(line.lag),
                "-" if line.unfollowed else "unknown" if line.behind_s is None else span(line.behind_s),
                counts or "-",
                *((_evidence(line.evidence),) if told else ()),
            )
            table.add_row(*(Text(printable(redact(cell, secrets))) for cell in cells))
        yield table
    for line in value.tables:
        if line.unfollowed is not None:
            yield f"{line.table} is not followed: {line.unfollowed}; {line.target} stays as it is"
            continue
        if line.reason is not None:
            at = f" at {line.paused_at}" if line.paused_at else ""
            code = f" ({line.code})" if line.code else ""
            remedy = f"; {line.remedy}" if line.remedy else ""
            yield f"{line.table} is {line.state}{code}{at}: {line.reason}{remedy}"
        if line.retention_left_s is not None and line.retention_left_s < _RETENTION_NEAR:
            yield f"{line.table}: {_retention(line.retention_left_s)}"
        for mark in line.needs_resync:
            yield f"{line.table}: {marked(mark)} needs resync since version {mark.version}: {mark.reason}"
        for warning in line.warnings:
            yield f"{line.table}: warning: {warning}"
    for source in value.sources:
        yield f"source {source.name}{'' if source.well else ' is not well'}: {source.text}"
    yield from _evidence_gaps(value)
    yield from map(dead_letter_text.counted, value.dead_letters)
    if value.kafka_problem is not None:
        yield f"Lag is unknown: {value.kafka_problem}"


def _retention(left: float) -> str:
    if not left:
        return "the topic does not hold any more what comes next; see retention in `cdc-sync docs runbook`"
    return f"its topic's retention takes what it has not read yet in {span(left)}; raise retention.ms until it has"


def _job(job: JobLine, written: str | None) -> str:
    where, batches = f"{job.host} (pid {job.pid})", f"{job.batches:,} batch{'es' if job.batches != 1 else ''}"
    match job.state:
        case "running":
            now = "" if job.batch_s is None else f", in one for {span(job.batch_s)}"
            ago = "" if written is None else f", last commit {span(max(0.0, time.time() - seconds_of(written)))} ago"
            return f"running on {where} since {job.started}, {batches}{now}{ago}, heard of {span(job.silent_s)} ago"
        case "dead":
            return (
                f"dead since {job.heard}: the one on {where} ended without a word or cannot reach the store; {batches}"
            )
        case "failed":
            return f"failed at {job.heard} on {where} after {batches}; its log says why"
        case _:
            return f"{job.state} at {job.heard} on {where} after {batches}"


def _evidence(since: Mapping[str, str | None]) -> str:
    """Say which evidence tells of a table, and since when."""
    names = ((name.removeprefix("evidence."), at) for name, at in since.items())
    return ", ".join(f"{name} since {at}" if at else f"({name})" for name, at in names) or "none"


def _evidence_gaps(value: Status) -> Iterator[str]:
    """Say each gap once, with the tables that it is of."""
    tables: dict[str, list[str]] = {}
    for line in value.tables:
        for gap in line.evidence_gaps if line.unfollowed is None else ():
            tables.setdefault(gap, []).append(str(line.table))
    for gap, names in tables.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"evidence of {', '.join(names[:_NAMED])}{more}: {gap}"


def _plan(value: Plan) -> Iterator[str]:
    if not value.tables:
        yield f"Pipeline {value.pipeline!r} would find no table" + (f": {value.problem}." if value.problem else ".")
    for table in value.tables:
        yield from _planned(table)
    yield from map(dead_letter_text.counted, value.dead_letters)


def _planned(table: PlannedTable) -> Iterator[str]:
    waiting = f"{table.offsets} offset{'s' if table.offsets != 1 else ''} to read"
    still = "" if table.versions or table.steps or table.problem else ", no change"
    yield f"{table.table} -> {table.target}: {waiting}{still}"
    for version in table.versions:
        yield from _version(version)
    for step in table.steps:
        for statement in step.statements or ("stamp the version",):
            yield f"  {step.cost:<8}  {statement}"
    if table.problem is not None:
        at = f" at {table.at}" if table.at else ""
        what = "would pause" if table.paused else "would not get to the end"
        yield f"  {what}{at}: {table.problem}" + (f"; {table.remedy}" if table.remedy else "")
    for warning in table.warnings:
        yield f"  warning: {warning}"


def _histories(value: tuple[TableHistory, ...]) -> Iterator[str]:
    if not value:
        yield "No schema version is recorded yet."
    for history in value:
        yield str(history.table)
        for version in history.versions:
            yield from _version(version)


def _version(version: VersionLine) -> Iterator[str]:
    seen = ", first seen in a snapshot" if version.snapshot else ""
    yield f"  version {version.number}  {version.position}  {version.kafka}{seen}"
    yield from _changes(version.changes, indent="    ", none="no change of columns")
    for evidence in version.evidence:
        if evidence.kind == "considered":
            yield f"      considered: {evidence.subject}: {evidence.text}"
        else:
            yield f"      because of {evidence.subject}: {evidence.text} ({evidence.kind})"


def _capture(value: CaptureResult) -> Iterator[str]:
    if not value.applied:
        yield value.script  # to be piped into psql
        return
    yield "Done. DDL capture writes to the topic <topic.prefix>.message, which belongs under evidence.messages."
    for warning in value.warnings:
        yield f"warning: {warning}"


def _changes(changes: tuple[Phrase, ...], *, indent: str = "  ", none: str = "no difference") -> Iterator[str]:
    if not changes:
        yield f"{indent}{none}"
    for change in changes:
        yield f"{indent}{change.text}"


def _anything(data: Any, indent: str = "") -> Iterator[str]:
    """Lines of `key: value` for results that have no layout of their own."""
    match data:
        case dict():
            width = max((len(key) for key in data), default=0)
            for key, item in data.items():
                if isinstance(item, dict | list) and item:
                    yield f"{indent}{key}:"
                    yield from _anything(item, indent + "  ")
                else:
                    yield f"{indent}{key:<{width}}  {_plain(item)}"
        case list():
            for item in data:
                if isinstance(item, dict | list):
                    yield from _anything(item, indent + "  ")
                    yield ""
                else:
                    yield f"{indent}{_plain(item)}"
        case _:
            yield f"{indent}{_plain(data)}"


def _plain(item: object) -> str:
    match item:
        case None | [] | {}:
            return "-"
        case bool():
            return "yes" if item else "no"
        case _:
            return str(item)
