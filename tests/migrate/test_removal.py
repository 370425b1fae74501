"""Where a target can go in one step, and where it cannot."""

from __future__ import annotations

import pytest

from cdc_sync.config.formats import BUILT_IN
from cdc_sync.core.migration.removal import why_not_removed, why_not_renamed


def reason(format_: str, answer: str, warehouse: str, catalog: str = "jdbc") -> str | None:
    return why_not_removed(BUILT_IN[format_].usual, answer, catalog=catalog, warehouse=warehouse)


@pytest.mark.parametrize("answer", ["keep", "pause", None])
def test_what_stays_is_always_possible(answer: str) -> None:
    assert {reason(name, answer, "s3://lake") for name in BUILT_IN} == {None}


@pytest.mark.parametrize("answer", ["drop", "archive"])
def test_folders_are_moved_in_one_step_where_the_file_system_does_so(answer: str) -> None:
    for warehouse in ("./warehouse", "/lake", "file:///lake", "hdfs://name/lake"):
        assert {reason(name, answer, warehouse) for name in BUILT_IN} == {None}
    for warehouse in ("s3://lake", "s3a://lake", "gs://lake", "abfss://c@a/lake"):
        assert {name for name in BUILT_IN if reason(name, answer, warehouse) is not None} == {"delta", "hudi"}


def test_a_target_follows_where_it_can_be_archived_and_stays_anywhere() -> None:
    for warehouse in ("/lake", "hdfs://name/lake", "s3://lake"):
        for name in BUILT_IN:
            for catalog in ("jdbc", "hadoop"):
                place = {"catalog": catalog, "warehouse": warehouse}
                archived = why_not_removed(BUILT_IN[name].usual, "archive", **place)
                assert (why_not_renamed(BUILT_IN[name].usual, "follow", **place) is None) == (archived is None)
                assert why_not_renamed(BUILT_IN[name].usual, "stay", **place) is None


def test_a_catalogue_of_folders_drops_and_does_not_rename() -> None:
    assert reason("iceberg", "drop", "/lake", "hadoop") is None
    assert "cannot rename" in (reason("iceberg", "archive", "/lake", "hadoop") or "")
    assert reason("delta", "archive", "/lake", "hadoop") is None
