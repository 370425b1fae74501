"""Whether a name that is used again would have Hudi find another column in an old file, or fail; pure.

A column that a file is older than is asked for under its own name; if the file has that name, of another column, then
under the name and `suffix`. A file that has that one too shows its values. Where all names and types are as in the file
and only ids differ, Hudi's merge of a copy-on-write file takes the rows as they are, old values and all. Where it is a
member of a struct, Spark's vectorized reader takes the struct for one of another type, and fails. And Spark finds names
in files in letters of any case. So such a name is looked for in no file. Source: Hudi 1.2.0,
`InternalSchemaMerger.buildRecordType`, `ParquetSchemaEvolutionUtils.getHadoopConfClone`. What the merge does was seen
by `tests/targets/test_hudi_on_read.py`, in `FileGroupReaderBasedMergeHandle`; it fits
`HoodieAvroUtils.rewriteRecordWithNewSchema`, which returns records as they are where both schemas are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_sync.targets.hudi.internal_schema import Field, fields_of


def misreads(asked: str, held: str, wanted: str) -> bool:
    """Tell whether a file's columns are taken for others, or cannot be read.

    Args:
        asked: the columns that Hudi asks the file for: with the ids of those wanted, and the names it looks for.
        held: the columns the file has.
        wanted: the columns of the table.
    """
    pairs = tuple(zip(fields_of(asked), fields_of(wanted), strict=True))
    if any(_member_names(one["type"]) != _member_names(other["type"]) for one, other in pairs):
        return True
    if _shape(fields_of(held)) == _shape(fields_of(wanted)) and _ids(held) != _ids(wanted):
        return True
    ids = set(_ids(held))
    if any(one["name"] != other["name"] for one, other in pairs if one["id"] not in ids):
        return True
    return _misreads(fields_of(asked), fields_of(held))


def _shape(fields: Sequence[Field]) -> list[tuple[str, str]]:
    """Return what tells files apart that are looked at without ids."""
    return [(field["name"], field["type"] if isinstance(field["type"], str) else "") for field in fields]


def _ids(internal: str) -> list[int]:
    return [field["id"] for field in fields_of(internal)]


def _member_names(type_: Any) -> Any:
    """Return the names in a type, in its own form, so that two of them can be compared."""
    if isinstance(type_, str):
        return None
    match type_["type"]:
        case "record":
            return [(field["name"], _member_names(field["type"])) for field in type_["fields"]]
        case "array":
            return _member_names(type_["element"])
        case _:
            return _member_names(type_["value"])


def _misreads(asked: Sequence[Field], held: Sequence[Field]) -> bool:
    by_id, names = {field["id"]: field for field in held}, {field["name"].casefold() for field in held}
    for field in asked:
        same = by_id.get(field["id"])
        if same is None:
            if field["name"].casefold() in names:
                return True
        elif same["name"] != field["name"] or _inside(field["type"], same["type"]):
            return True
    return False


def _inside(asked: Any, held: Any) -> bool:
    if isinstance(asked, str) or isinstance(held, str) or asked["type"] != held["type"]:
        return False
    match asked["type"]:
        case "record":
            return _misreads(asked["fields"], held["fields"])
        case "array":
            return _inside(asked["element"], held["element"])
        case _:
            return _inside(asked["value"], held["value"])
