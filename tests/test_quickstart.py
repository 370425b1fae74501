"""What docs/quickstart.md tells people to type is what the program and the tests' own connectors take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer

from cdc_sync.cli.app import app
from cdc_sync.config import parse_config
from cdc_sync.config.routes import is_routed
from cdc_sync.core.model.positions import TableId
from cdc_sync.local.connectors import mariadb_connector, postgres_connector

PAGE = (Path(__file__).parents[1] / "docs" / "quickstart.md").read_text(encoding="utf-8")
CONNECTORS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
OURS = [postgres_connector("shop", port=1), mariadb_connector("shop", port=1, bootstrap_servers="b:1")]
_THE_TESTS_OWN = ("poll.interval.ms", "topic.creation.default.partitions", "topic.creation.default.replication.factor")
_PLACES = ("database.", "slot.name", "publication.name", "schema.history.internal.kafka.", "topic.prefix")


@pytest.mark.parametrize(("said", "ours"), [*zip(CONNECTORS, OURS, strict=True)])
def test_its_connectors_are_set_as_those_that_are_tested(said: dict[str, str], ours: dict[str, str]) -> None:
    missing = [name for name in ours if name not in said and name not in _THE_TESTS_OWN]
    other = [name for name in ours if name in said and said[name] != ours[name] and not name.startswith(_PLACES)]
    assert (missing, other) == ([], [])


@pytest.mark.parametrize(
    ("text", "topic", "table", "told"),
    [
        (text, *expected)
        for text, expected in zip(
            re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL),
            [
                ("shop.public.orders", TableId(database="shop", schema="public", table="orders"), ["shop.message"]),
                ("shop.shop.orders", TableId(database="shop", schema="", table="orders"), ["shop"]),
            ],
            strict=True,
        )
    ],
)
def test_its_configurations_load_and_route(text: str, topic: str, table: TableId, told: list[str]) -> None:
    config = parse_config(text)
    prefix = CONNECTORS[0]["topic.prefix"]
    assert config.kafka.matching([topic, prefix, f"{prefix}.message", "shop-schema-history"]) == (topic,)
    assert is_routed(config, table)
    assert [*config.evidence.messages, *config.evidence.schema_changes] == told


def test_its_commands_exist() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    named = re.findall(r"cdc-sync ([a-z-]+)", PAGE)
    assert len(named) >= 7
    assert set(named) <= set(commands)


def test_its_links_lead_somewhere() -> None:
    for page in re.findall(r"\]\(([\w.]+)\)", PAGE):
        assert (Path(__file__).parents[1] / "docs" / page).is_file()
