"""What README and pages show is what the program takes, and what they link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from cdc_sync.cli.app import app
from cdc_sync.config import Config, parse_config, route
from cdc_sync.core.migration.routes import Route, TargetName
from cdc_sync.core.model.positions import TableId

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)


def routed(config: Config, schema: str, table: str) -> Route:
    found = route(config, TableId(database="shop", schema=schema, table=table))
    assert found is not None
    return found


def test_the_readme_is_one_screen_and_its_configuration_loads() -> None:
    assert len(README.splitlines()) <= 60
    (example,) = blocks(README)
    assert routed(parse_config(example), "public", "orders").target == TargetName(namespace="public", name="orders")


def test_the_configurations_route_as_their_page_says() -> None:
    example, partitions, merge = blocks((DOCS / "configuration.md").read_text(encoding="utf-8"))
    (evidence,) = blocks((DOCS / "evidence.md").read_text(encoding="utf-8"))

    def with_tables(tables: str) -> Config:
        text = re.sub(r"tables:\n.*?(?=target:\n)", lambda _: tables, example, flags=re.DOTALL)
        return parse_config(text, environ={"KAFKA_PASSWORD": "secret"})

    config = parse_config(example + evidence, environ={"KAFKA_PASSWORD": "secret"})
    assert routed(config, "public", "orders").target == TargetName(namespace="shop", name="orders")
    assert route(config, TableId(database="shop", schema="public", table="tmp_orders")) is None
    divided = routed(with_tables(partitions), "inv", "orders")
    assert str(divided.partition_by) == "day(created_at), bucket(16, id), region"
    shards = [routed(with_tables(merge), "public", f"orders_{number}") for number in (1, 64)]
    assert [(shard.target.name, shard.merge) for shard in shards] == [("orders", "_source_table")] * 2


def test_every_command_has_a_line_and_no_other() -> None:
    told = set(re.findall(r"^\| `cdc-sync ([\w-]+)", (DOCS / "commands.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert sorted(told) == sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_what_the_readme_links_to_is_there() -> None:
    """Links of pages are checked by `mkdocs build --strict`."""
    named = {*re.findall(r"\]\(([\w./-]+)\)", README), *re.findall(r"scripts/[\w-]+", README)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_page_is_found_from_the_first_one() -> None:
    linked = {path.name for path in DOCS.glob("*.md") if f"({path.name})" in (DOCS / "index.md").read_text()}
    assert {path.name for path in DOCS.glob("*.md")} - linked - {"index.md"} == set()
    listed = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    assert [path.name for path in sorted((DOCS / "decisions").glob("0*.md")) if f"({path.name})" not in listed] == []
