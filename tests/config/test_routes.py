"""Which target a table goes to, and with which declarations."""

from __future__ import annotations

import pytest

from cdc_sync.config import Config, Route, TargetName, check_routes, parse_config, route
from cdc_sync.core.migration.capabilities import HUDI, HUDI_ON_READ, ICEBERG
from cdc_sync.core.migration.routes import LeftOut
from cdc_sync.core.model.positions import TableId
from cdc_sync.core.schema.partitioning import Partitioning
from cdc_sync.core.schema.policy import Policy
from cdc_sync.errors import RefusedError

ORDERS = TableId(database="shop", schema="inv", table="orders")
MYSQL_ORDERS = TableId(database="inventory", schema="", table="orders")


def config_with(*rules: str, policy: str = "{}", target: str = "{}") -> Config:
    lines = "".join(f"  - {rule}\n" for rule in rules)
    return parse_config(
        f"pipeline: {{name: p}}\nkafka: {{bootstrap_servers: 'b:1', topics: [t]}}\npolicy: {policy}\n"
        f"target: {target}\ntables:\n{lines}"
    )


def routed(config: Config, table: TableId = ORDERS) -> Route:
    found = route(config, table)
    assert found is not None
    return found


def test_without_a_target_a_table_keeps_its_schema_and_name() -> None:
    assert routed(config_with("table: shop.inv.orders")).target == TargetName(namespace="inv", name="orders")


def test_where_there_are_no_schemas_the_database_is_the_namespace() -> None:
    found = routed(config_with("table: inventory.orders"), MYSQL_ORDERS)

    assert str(found.target) == "inventory.orders"


def test_a_target_of_one_part_goes_to_the_default_namespace() -> None:
    assert str(routed(config_with("{table: shop.inv.orders, target: o}")).target) == "default.o"


def test_a_pattern_fills_its_groups_into_the_target() -> None:
    config = config_with(r"{pattern: 'shop\.(?P<team>\w+)\.(?P<base>\w+)_\d+', target: '{team}_raw.{base}'}")

    assert str(routed(config, TableId(database="shop", schema="inv", table="orders_17")).target) == "inv_raw.orders"


def test_which_columns_events_leave_out_is_stated_for_all_tables() -> None:
    config = config_with("table: shop.inv.orders")
    assert routed(config).left_out is None
    stated = config.model_copy(update={"connector": config.connector.model_copy(update={"excluded_columns": ("a",)})})
    assert routed(stated).left_out == LeftOut(("a",))


def test_a_table_may_be_kept_otherwise_than_the_others() -> None:
    rules = ("{table: d.s.a, schema_evolution: on_read, readers: [spark]}", "{table: d.s.b, readers: [trino]}")
    tables = [TableId(database="d", schema="s", table=name) for name in "ab"]
    config = config_with(*rules, target="{format: hudi}")
    assert [routed(config, table).capabilities for table in tables] == [HUDI_ON_READ, HUDI]
    rules = ("{table: d.s.a, schema_evolution: on_write, readers: [trino]}", "{table: d.s.b}")
    config = config_with(*rules, target="{format: hudi, schema_evolution: on_read, readers: [spark]}")
    assert [routed(config, table).capabilities for table in tables] == [HUDI, HUDI_ON_READ]
    assert routed(config_with("table: shop.inv.orders")).capabilities == ICEBERG


def test_a_pattern_must_match_the_whole_name() -> None:
    config = config_with(r"pattern: 'shop\.inv\.ord'")

    assert route(config, ORDERS) is None


def test_excluded_tables_fall_through_to_later_rules() -> None:
    config = config_with(
        r"{pattern: 'shop\.inv\..*', exclude: ['shop\.inv\.ord.*'], target: 'a.{table}'}",
        r"{pattern: '.*', target: 'b.{table}'}",
    )

    assert str(routed(config).target) == "b.orders"


@pytest.mark.parametrize(
    ("connector", "name", "is_mirrored"),
    [
        ("{}", "inv.debezium_signal", False),
        ("{}", "inv.signals", True),
        ("{signal_table: inv.signals}", "inv.signals", False),
        ("{signal_table: inv.signals}", "inv.debezium_signal", True),
        ("{signal_table: inv.signals}", "other.signals", True),
    ],
)
def test_the_connector_s_signalling_table_is_no_table_to_follow(connector: str, name: str, is_mirrored: bool) -> None:
    config = config_with("pattern: '.*'")
    settings = parse_config(
        f"pipeline: {{name: p}}\nkafka: {{bootstrap_servers: 'b:1', topics: [t]}}\nconnector: {connector}\n"
        "tables: [{pattern: '.*'}]\n"
    ).connector
    config = config.model_copy(update={"connector": settings})
    schema, _, table = name.partition(".")

    assert (route(config, TableId(database="shop", schema=schema, table=table)) is not None) == is_mirrored


def test_unless_a_rule_names_it() -> None:
    signals = TableId(database="shop", schema="inv", table="debezium_signal")

    assert route(config_with("table: shop.inv.debezium_signal"), signals) is not None


def test_the_first_rule_that_matches_wins() -> None:
    config = config_with("{table: shop.inv.orders, target: a.x}", "{pattern: '.*', target: 'b.{table}'}")

    assert str(routed(config).target) == "a.x"


def test_a_table_that_matches_nothing_has_no_route() -> None:
    assert route(config_with("table: shop.inv.customers"), ORDERS) is None


def test_names_are_matched_as_they_are_not_as_patterns() -> None:
    assert route(config_with("table: shop.inv.o.ders"), ORDERS) is None


def test_a_dot_inside_a_name_stays_inside_the_name() -> None:
    config = config_with("pattern: '.*'")

    found = routed(config, TableId(database="shop", schema="in.v", table="or.ders"))

    assert found.target == TargetName(namespace="in.v", name="or.ders")


def test_a_name_may_hold_braces_and_backslashes() -> None:
    config = config_with("pattern: '.*'")

    assert routed(config, TableId(database="d", schema="s", table=r"{table}\g<0>")).target.name == r"{table}\g<0>"


def test_declarations_come_with_the_route() -> None:
    config = config_with(
        "{table: shop.inv.orders, renames: {qty: quantity}, drops: [note], initial_values: {region: eu, paid: null}}"
    )

    found = routed(config)

    assert found.renames == {"qty": "quantity"}
    assert found.drops == {"note"}
    assert found.initials == {"region": "eu", "paid": None}


def test_a_tables_own_policy_wins_over_the_general_one() -> None:
    config = config_with(
        "{table: shop.inv.orders, policy: {unproven_rename: add}}",
        policy="{unproven_rename: pause, missing_rows: insert}",
    )

    policy = routed(config).policy

    assert policy == Policy(unproven_rename="add", ambiguous_null="warn", missing_rows="insert")


def test_a_table_whose_target_name_comes_out_empty_is_refused_alone() -> None:
    config = config_with(r"{pattern: 'shop\.inv\.(?P<base>x?).*', target: 'inv.{base}'}")

    with pytest.raises(RefusedError) as refusal:
        route(config, ORDERS)

    assert str(refusal.value) == (
        "Cannot route table shop.inv.orders: tables[0].target gives 'inv.', which has an empty part; fix it"
    )


def test_the_first_table_on_a_target_keeps_it() -> None:
    config = config_with("{pattern: '.*', target: 'inv.{table}'}")
    other = TableId(database="shop", schema="archive", table="orders")
    third = TableId(database="shop", schema="archive", table="customers")

    clashes = check_routes([routed(config), routed(config, other), routed(config, third), routed(config)])

    assert [(clash.refused, clash.holder) for clash in clashes] == [(other, ORDERS)]
    assert str(clashes[0]) == (
        "Cannot route table shop.archive.orders to inv.orders: table shop.inv.orders is already written there; give "
        "one of them another target in the tables section"
    )


def test_a_rule_says_what_its_tables_are_partitioned_by() -> None:
    found = routed(config_with("{table: shop.inv.orders, partition_by: [day(created_at), bucket(16, id), region]}"))

    assert str(found.partition_by) == "day(created_at), bucket(16, id), region"


def test_no_partitions_are_something_else_than_nothing_said_of_them() -> None:
    assert routed(config_with("{table: shop.inv.orders, partition_by: []}")).partition_by == Partitioning()
    assert routed(config_with("table: shop.inv.orders")).partition_by is None


def test_tables_that_are_merged_share_their_target() -> None:
    config = config_with(r"{pattern: 'shop\.inv\.orders_\d+', target: inv.orders, merge: {}}")
    members = [routed(config, TableId(database="shop", schema="inv", table=f"orders_{number}")) for number in (1, 2)]

    assert check_routes(members) == ()
    assert {member.merge for member in members} == {"_source_table"}


def test_tables_that_name_their_source_in_different_columns_do_not_share_a_target() -> None:
    config = config_with(
        "{table: shop.inv.a, target: inv.t, merge: {}}",
        "{pattern: '.*', target: inv.t, merge: {source_column: origin}}",
    )
    a, b = (routed(config, TableId(database="shop", schema="inv", table=name)) for name in ("a", "b"))

    assert [clash.refused for clash in check_routes([a, b])] == [b.table]


def test_a_table_that_is_not_merged_shares_no_target() -> None:
    config = config_with("{table: shop.inv.a, target: inv.t, merge: {}}", "{pattern: '.*', target: inv.t}")
    a, b = (routed(config, TableId(database="shop", schema="inv", table=name)) for name in ("a", "b"))

    assert [clash.refused for clash in check_routes([a, b])] == [b.table]
    assert [clash.refused for clash in check_routes([b, a])] == [a.table]


def test_a_merged_table_pauses_at_a_type_that_would_rewrite_rows_of_others() -> None:
    merged = "{table: shop.inv.orders, target: inv.t, merge: {}}"

    assert routed(config_with("table: shop.inv.orders")).policy.incompatible_types == "rewrite"
    assert routed(config_with(merged)).policy.incompatible_types == "pause"
    assert routed(config_with(merged, policy="{incompatible_types: rewrite}")).policy.incompatible_types == "pause"
    side = routed(config_with(merged, policy="{incompatible_types: side_column}"))
    assert side.policy.incompatible_types == "side_column"
