"""A configuration's file is followed: what is new is taken up, what cannot be is refused and the old one goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cdc_sync.config import Config, load_config
from cdc_sync.runtime.reload import AT_START, Followed, changed, for_a_start

TEXT = """
pipeline: {name: p, state: state}
kafka: {bootstrap_servers: 'a:1', topics: [t]}
tables: [{pattern: '.*'}]
target: {catalog: {warehouse: w}}
"""
Edit = Callable[[str, str], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "p.yaml"
    made.write_text(TEXT)
    return made


@pytest.fixture
def edit(path: Path) -> Edit:
    def replace(old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return replace


@pytest.fixture
def followed(path: Path) -> Followed:
    return Followed(path, load_config(path), partial(load_config, path), now=threading.Event())


def refused(followed: Followed) -> str | None:
    return followed.refused


def taken(followed: Followed) -> Config | None:
    """Return what the job goes on with, as it does: behind a batch."""
    return followed._next if followed.ends.is_set() else None


def test_what_is_new_is_taken_up_and_ends_the_run_by_the_one_before(followed: Followed, edit: Edit) -> None:
    followed.look()
    assert taken(followed) is None, "it is as it was loaded"

    edit("'.*'", "'shop.*'")
    followed.look()

    found = taken(followed)
    assert found is not None
    assert found.tables[0].pattern == "shop.*"


def test_what_stands_elsewhere_in_the_file_is_nothing_new(followed: Followed, edit: Edit) -> None:
    edit("pipeline:", "# a comment\npipeline:")
    followed.look()
    assert (taken(followed), refused(followed)) == (None, None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'.*'", "'('", "tables[0]"),
        ("tables:", "tabels:", "tabels"),
        ("{name: p, state: state}", "{name: p, state: elsewhere}", "what is set under pipeline"),
        ("warehouse: w", "warehouse: v", "what is set under target"),
        ("'a:1'", "'b:1'", "what is set under kafka.bootstrap_servers"),
    ],
)
def test_a_bad_edit_is_refused_until_it_is_mended(
    followed: Followed, edit: Edit, old: str, new: str, said: str
) -> None:
    edit(old, new)
    followed.look()
    assert taken(followed) is None
    assert said in str(refused(followed))

    edit(new, old)
    followed.look()

    assert (taken(followed), refused(followed)) == (None, None)


def test_nothing_of_an_edit_is_taken_up_that_only_another_start_takes_up(followed: Followed, edit: Edit) -> None:
    edit("'.*'", "'shop.*'")
    edit("warehouse: w", "warehouse: v")
    followed.look()
    assert taken(followed) is None
    assert refused(followed) is not None


def test_a_file_that_is_gone_for_a_moment_is_refused_and_read_again(followed: Followed, path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    followed.look()
    assert refused(followed) is not None
    path.with_suffix(".old").rename(path)
    followed.look()
    assert refused(followed) is None


def test_whatever_reading_it_fails_with_is_no_end_of_the_job(path: Path) -> None:
    def fail() -> Config:
        raise RuntimeError("a value that nobody may see")

    followed = Followed(path, load_config(path), fail, now=threading.Event())
    followed.look()
    assert refused(followed) == "it cannot be read (RuntimeError)"


def test_what_the_file_refers_to_is_read_again_where_somebody_asks_for_it(path: Path, tmp_path: Path) -> None:
    (tmp_path / "pattern").write_text("a.*")
    path.write_text(TEXT.replace("'.*'", "'${file:${config_dir}/pattern}'"))
    followed = Followed(path, load_config(path), partial(load_config, path), now=threading.Event())
    followed.look()
    (tmp_path / "pattern").write_text("b.*")
    followed.look()
    assert taken(followed) is None

    followed.look(again=True)

    assert taken(followed) is not None


def test_each_configuration_is_gone_on_with_in_turn_until_the_job_is_to_stop(followed: Followed, edit: Edit) -> None:
    stop, patterns = threading.Event(), []
    for config in followed.configurations(stop):
        patterns.append(config.tables[0].pattern)
        if len(patterns) == 3:
            stop.set()
        else:
            edit(f"'{patterns[-1]}'", f"'{patterns[-1]}x'")
            followed._now.set()
        assert followed.ends.wait(30), "by a look of its own, or because the job is to stop"

    assert patterns == [".*", ".*x", ".*xx"]


def test_what_differs_is_told_by_its_section(path: Path, edit: Edit) -> None:
    config = load_config(path)
    assert (changed(config, config), for_a_start(config, config)) == ((), ())
    assert {name.partition(".")[0] for name in AT_START} <= set(Config.model_fields)
    edit("'a:1', topics: [t]", "'b:1', topics: [u]")
    edit("tables:", "limits: {max_columns: 5}\ntables:")
    after = load_config(path)
    assert (changed(config, after), for_a_start(config, after)) == (("kafka", "limits"), ("kafka.bootstrap_servers",))
