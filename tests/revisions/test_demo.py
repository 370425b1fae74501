"""`scripts/demo migrate`, the whole way: each command a process of its own, the rows read by PyIceberg."""

from __future__ import annotations

import pytest

from cdc_sync.demo.migrate import main


@pytest.mark.iceberg
def test_the_demo_of_revisions_ends_with_the_rows_that_it_has_to(capfd: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    assert "All rows are what they have to be." in capfd.readouterr().out
