"""What the README shows is what the program takes."""

from __future__ import annotations

import re
from pathlib import Path

from cdc_sync.cli.app import main
from cdc_sync.config import parse_config, route
from cdc_sync.core.migration.routes import TargetName
from cdc_sync.core.model.positions import TableId

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
_KNOWN = {"KAFKA_PASSWORD": "secret"}


def test_the_configuration_loads_and_routes_as_it_says() -> None:
    example, partitions, merge, evidence = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    config = parse_config(example + evidence, path="README.md", environ=_KNOWN)
    routed = route(config, TableId(database="shop", schema="public", table="orders"))
    assert routed is not None
    assert routed.target == TargetName(namespace="shop", name="orders")
    assert route(config, TableId(database="shop", schema="public", table="tmp_orders")) is None
    divided = parse_config(re.sub(r"tables:\n.*?(?=target:\n)", partitions, example, flags=re.DOTALL), environ=_KNOWN)
    routed = route(divided, TableId(database="shop", schema="inv", table="orders"))
    assert routed is not None
    assert str(routed.partition_by) == "day(created_at), bucket(16, id), region"
    merged = parse_config(
        re.sub(r"tables:\n.*?(?=target:\n)", lambda _: merge, example, flags=re.DOTALL), environ=_KNOWN
    )
    shards = [route(merged, TableId(database="shop", schema="public", table=f"orders_{number}")) for number in (1, 64)]
    assert [(shard.target.name, shard.merge) for shard in shards if shard] == [("orders", "_source_table")] * 2


def test_every_command_it_lists_exists(capsys) -> None:  # type: ignore[no-untyped-def]
    commands = re.findall(r"^\| `cdc-sync ([\w-]+)", README, re.MULTILINE)
    assert len(commands) == 16
    main(["--help"])
    shown = capsys.readouterr().out
    assert [name for name in commands if name not in shown] == []


def test_every_file_it_names_is_there() -> None:
    named = {*re.findall(r"\]\(([\w./]+)\)", README), *re.findall(r"scripts/\w+", README)}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
