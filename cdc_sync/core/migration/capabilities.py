"""What a table format can hold, and change in place, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, TypeAlias

from cdc_sync.core.migration.namerules import ANY_NAME, DERIVED_PREFIX, NameRules
from cdc_sync.core.schema.changes import (
    ChangePrimaryKey,
    DropColumn,
    JoinColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
)
from cdc_sync.core.schema.members import (
    AddMember,
    DropMember,
    MemberChange,
    MoveMember,
    RenameMember,
    UpdateKeyType,
    UpdatePartType,
    member_changes,
    shared_parts,
)
from cdc_sync.core.schema.types import DataType, DecimalType, FloatType, IntegerType, ListType, MapType, StructType

SchemaEvolution: TypeAlias = Literal["on_write", "on_read"]
"""`on_write`: columns are found by their names in files of any age; `on_read`: by ids, where a format has both ways."""


Partitions: TypeAlias = Literal["hidden", "derived"]
"""By what tables are partitioned, as `Capabilities.partitions` has it."""


class Promotion(Enum):
    """A family of type changes that a format may do without touching data files."""

    WITHIN_INT32 = "int8, int16 -> int16, int32"
    INT32_TO_INT64 = "int8, int16, int32 -> int64"
    FLOAT_TO_DOUBLE = "float -> double"
    DECIMAL_PRECISION = "decimal(p, s) -> decimal(p', s), p' > p"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one format can do.

    Attributes:
        format: its name, for messages.
        kind: how its tables are kept, where that can be chosen; else empty.
        evolution: how their columns are found in files that are older than a change of them.
        promotions: type changes done in place.
        widens_nested: they are done in place in the parts of lists, maps and structs too.
        rewritten: other kinds of change, of columns and inside them, that are only done by rewriting the rows.
        adds_last: a new column is done in place only behind all others.
        by_path: tables are folders, which no catalogue names.
        partitions: how its tables are partitioned: `hidden`, by what the format computes itself, and changed without
            touching a row; `derived`, by columns of the table that cdc_sync computes (`migration.derived`), and changed
            by writing all rows anew; None is not at all.
        partitions_stay: a table is partitioned as it was made, for good.
        merges: rows of several source tables can share one (`targets.merged`).
        reserved_prefix: column names that begin so are taken by cdc_sync itself.
        columns: which names of columns it holds.
        tables: the same for both parts of a table's name, each by itself.
    """

    format: str
    promotions: frozenset[Promotion]
    widens_nested: bool = True
    rewritten: frozenset[type[SchemaChange | MemberChange]] = frozenset()
    adds_last: bool = False
    by_path: bool = False
    partitions: Partitions | None = None
    partitions_stay: bool = False
    merges: bool = False
    kind: str = ""
    evolution: SchemaEvolution = "on_write"
    reserved_prefix: str = "__cdc_sync"
    columns: NameRules = ANY_NAME
    tables: NameRules = ANY_NAME


_MEMBERS = (AddMember, DropMember, RenameMember, MoveMember)
# Names of tables become folders: with `/` or `..` one would lie inside another or outside the warehouse; what stands
# behind `?` or `#` is cut off by S3 and by readers that parse locations as URIs.
_FOLDERS = NameRules(forbidden=frozenset("/\\?#\x00"), reserved=frozenset((".", "..")), max_bytes=255)
ICEBERG = Capabilities(
    format="iceberg",
    partitions="hidden",
    merges=True,
    # Iceberg spec, "Schema Evolution"; the Java library allows no more for format versions 1 to 3.
    promotions=frozenset(Promotion),
    # A member is renamed in no event; where ids say so all the same, names in the middle may collide.
    rewritten=frozenset((RenameMember,)),
    columns=NameRules(
        # `MetadataColumns` and `Partitioning`: a table with such a column can be made, and then not be read or merged.
        reserved=frozenset(
            ("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
        ),
        joins_nested=True,
    ),
    tables=_FOLDERS,
)
DELTA = Capabilities(
    format="delta",
    by_path=True,
    partitions="derived",
    merges=True,
    # Delta 3.3 on Spark 3.5 reads no other widened type; these two are held as 32 bits from the start, so that tables
    # need no feature for it. Source: `TypeWidening.isTypeChangeSupported` of that line.
    promotions=frozenset((Promotion.WITHIN_INT32,)),
    # Asked for nothing of a struct but members that a file is older than, a Spark session that nobody set up for it
    # makes a NULL of the struct, or of the list around it, and loses rows: so new members are written to every file.
    rewritten=frozenset((AddMember, RenameMember)),
    # Delta's column mapping holds any name, and tells no two apart that differ only in case.
    columns=NameRules(folds_case=True, reserved_prefix=DERIVED_PREFIX),
    # Hadoop takes what stands before a colon for the scheme of a URI, and braces and brackets for a pattern.
    tables=replace(_FOLDERS, forbidden=_FOLDERS.forbidden | frozenset(":*[]{}")),
)
HUDI = Capabilities(
    format="hudi",
    by_path=True,
    partitions="derived",
    # `hoodie.properties` names them, and no commit changes it; folders of before would be taken for new ones.
    partitions_stay=True,
    # Readers find columns by name, in files of any age, and these are the only changes of a type that Presto, Trino,
    # Hive and Spark all read right in them. Source: Hudi docs, "Schema Evolution", evolution on write.
    promotions=frozenset((Promotion.WITHIN_INT32, Promotion.INT32_TO_INT64)),
    # Source: Hudi 1.2, `ParquetSchemaEvolutionUtils`: Spark's vectorized reader takes no other nested type.
    widens_nested=False,
    # Under its name a dropped column's values would come back, and a renamed one's would be gone; records are found by
    # a key that is computed from the key's values. Some readers can be set to find columns by their place.
    rewritten=frozenset((DropColumn, JoinColumn, RenameColumn, MoveColumn, ChangePrimaryKey, *_MEMBERS)),
    adds_last=True,
    columns=NameRules(
        # Avro's rule for names; Hive and Presto know no upper and lower case. Source: Avro 1.11 specification, "Names".
        plain=True,
        folds_case=True,
        reserved_prefix=DERIVED_PREFIX,
        reserved=frozenset(
            (
                *("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path"),
                *("_hoodie_file_name", "_hoodie_operation", "_hoodie_is_deleted"),
            )
        ),
    ),
    # Hadoop takes what stands before a colon for the scheme of a URI, braces and brackets for a pattern.
    tables=replace(_FOLDERS, forbidden=_FOLDERS.forbidden | frozenset(":*[]{}%")),
)
HUDI_ON_READ = replace(
    HUDI,
    kind="hudi on read",
    evolution="on_read",
    # Told to find columns by ids, Hudi's reader shows Spark commit times in the place of a column that divides a table,
    # where a query asks for no other, or fails.
    partitions=None,
    # Columns are found by ids in files of any age. A float that was widened would read 0.1 where a rewrite has
    # 0.10000000149011612, and what becomes another kind of type is for the policies to decide, as in every format.
    promotions=frozenset((Promotion.WITHIN_INT32, Promotion.INT32_TO_INT64, Promotion.DECIMAL_PRECISION)),
    # New members are written to every file for the same reason as Delta's. A member is renamed in no event; records
    # are found by a key that is computed from the key's values.
    rewritten=frozenset((AddMember, RenameMember, ChangePrimaryKey)),
    adds_last=False,
)
PARQUET = Capabilities(
    format="parquet",
    partitions="derived",
    # Integers are held as 32 bits from the start, as in Delta tables. No other type is read right out of a file of
    # another by all of Spark 3.5, Hive, Presto and Trino.
    promotions=frozenset((Promotion.WITHIN_INT32,)),
    # As in Hudi tables: found by its name, a dropped column would come back, a renamed one be gone; and readers that
    # are set to find columns by their place would mix them up.
    rewritten=frozenset((DropColumn, JoinColumn, RenameColumn, MoveColumn, *_MEMBERS)),
    adds_last=True,
    columns=NameRules(
        # Hive's text of a struct has no quotes, and its metastore knows no upper case. Source: `TypeInfoUtils` 2.3.
        plain=True,
        folds_case=True,
        reserved_prefix=DERIVED_PREFIX,
        # Hive's virtual columns. Source: Hive 2.3, `VirtualColumn`.
        reserved=frozenset(
            (
                *("INPUT__FILE__NAME", "BLOCK__OFFSET__INSIDE__FILE", "ROW__OFFSET__INSIDE__BLOCK"),
                *("RAW__DATA__SIZE", "ROW__ID", "GROUPING__ID"),
            )
        ),
        max_bytes=255,
    ),
    # Source: Hive 2.3, `MetaStoreUtils.validateName`; and 128 characters in `package.jdo`, of which ten are left free
    # for a table that is on its way out.
    tables=NameRules(plain=True, max_bytes=118),
)
MEMORY = Capabilities(
    format="memory", promotions=frozenset(Promotion), rewritten=frozenset((RenameMember,)), merges=True
)
KINDS = (ICEBERG, DELTA, HUDI, HUDI_ON_READ, PARQUET, MEMORY)
"""What tables of each format that comes with cdc_sync are able to do, in each way to keep them."""


def can_change_in_place(capabilities: Capabilities, old: DataType, new: DataType) -> bool:
    """Tell whether a column of type `old` can become `new` without rewriting data."""
    return _keeps_oldest(old, new) and all(_in_place(capabilities, change) for change in member_changes(old, new))


def _in_place(capabilities: Capabilities, change: MemberChange) -> bool:
    match change:
        case UpdateKeyType():
            return False
        case UpdatePartType(path=path, old=old, new=new):
            return _promotion(old, new) in capabilities.promotions and (not path or capabilities.widens_nested)
        case _:
            return type(change) not in capabilities.rewritten


def _keeps_oldest(old: DataType, new: DataType) -> bool:
    """Tell whether every struct keeps its oldest member, which is in every file.

    Of a file that has no member of a struct, readers make a NULL of the whole struct, or fail (Iceberg's of Spark,
    inside maps). Ids rise, and a rewrite writes every member to every file: so the lowest id stands for a member that
    all files have as long as only others go in place.
    """
    parts = shared_parts(old, new)
    if parts is None:
        return True
    if isinstance(old, StructType) and isinstance(new, StructType) and old.fields:
        oldest = min(field.id for field in old.fields)
        if all(field.id != oldest for field in new.fields):
            return False
    return all(_keeps_oldest(*part) for part in parts)


def _promotion(old: DataType, new: DataType) -> Promotion | None:
    match old, new:
        case IntegerType(), IntegerType() if old.bits < new.bits:
            return Promotion.INT32_TO_INT64 if new.bits == 64 else Promotion.WITHIN_INT32
        case FloatType(), FloatType() if old.bits < new.bits:
            return Promotion.FLOAT_TO_DOUBLE
        case DecimalType(), DecimalType() if old.scale == new.scale and old.precision < new.precision:
            return Promotion.DECIMAL_PRECISION
        case _:
            return None


def can_compare(type_: DataType) -> bool:
    """Tell whether two values of a type can be compared, so that a row without a key can be found by all its values.

    Source: Spark, SQL Reference, "NULL Semantics" and "MAP type": maps are neither compared nor grouped by.
    """
    match type_:
        case MapType():
            return False
        case ListType(element=element):
            return can_compare(element)
        case StructType(fields=fields):
            return all(can_compare(field.type) for field in fields)
        case _:
            return True
