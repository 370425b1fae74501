"""The ALTER TABLE statements in a text that a client sent to Postgres, as far as they are sure to be all there is.

Only what moves columns or changes their values is read: names added, renamed, given a type by an expression, and tables
renamed. The text is all that the client sent at once;
a procedure, a function or a DO block in it may do more than it shows, and then nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from cdc_sync.core.lineage.stated import Part, Stated, stated_default

_PLAIN = frozenset(
    ("ALTER", "CREATE", "DROP", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "BEGIN", "START", "COMMIT", "END", "COMMENT")
)
"""First words of statements that do nothing to other tables than those they show, if they call no function."""

_NO_COLUMNS = frozenset(
    (
        *("OWNER", "REPLICA", "ENABLE", "DISABLE", "CLUSTER", "RESET", "INHERIT", "NO", "VALIDATE", "FORCE"),
        *("ATTACH", "DETACH", "OF", "NOT"),
    )
)
"""First words of clauses that leave names and places of columns alone."""

_CONSTRAINTS = frozenset(("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """One ALTER TABLE statement.

    Attributes:
        schema: as written, None if the name is not qualified.
        renamed: old and new name, for RENAME COLUMN.
        moved: RENAME TO or SET SCHEMA: the table has another name behind it.
        added: names that were added for sure.
        perhaps_added: names of ADD COLUMN IF NOT EXISTS.
        retyped: names that were given a type, each with whether their values come from an expression (USING).
        stated: what each ADD COLUMN gives to rows that are there, by the column's name, in the statement's order.
    """

    schema: str | None
    table: str
    renamed: tuple[str, str] | None = None
    moved: bool = False
    moved_to: str | None = None
    added: frozenset[str] = frozenset()
    perhaps_added: frozenset[str] = frozenset()
    retyped: frozenset[tuple[str, bool]] = frozenset()
    stated: tuple[tuple[str, Stated], ...] = ()


def alterations(query: str) -> tuple[Alteration, ...] | None:
    """Return all ALTER TABLE statements of a text in order; None if it may do more than it shows, or is not read."""
    try:
        tokens = Postgres().tokenize(query)
        return tuple(_alterations(query, tokens))
    except (SqlglotError, _NotPlain):
        return None


def moved_from(query: str, schema: str, table: str) -> tuple[str, str] | None:
    """Return the name that a table had before the command behind which it has this one, by the text it was sent with.

    Args:
        query: all text the client had sent, uncut; one of its ALTER TABLE statements is the command.
        schema, table: the name behind the command.

    Returns:
        Schema and table; None if the command need not be the one RENAME TO or SET SCHEMA in the text that leads there.
    """
    leading = [
        found
        for found in alterations(query) or ()
        if (found.moved_to if found.moved else found.table) == table and (found.moved or found.schema in (None, schema))
    ]
    if len(leading) != 1 or not leading[0].moved:
        return None
    (found,) = leading
    if found.table == table:  # SET SCHEMA
        return None if found.schema in (None, schema) else (found.schema, table)
    return (schema, found.table) if found.schema in (None, schema) else None


def stated_in(query: str, schema: str, table: str, column: str) -> Stated | None:
    """Return what the ADD COLUMN of a text gives to rows that are there.

    Args:
        query: all text the client had sent, uncut.
        schema, table, column: the names behind the command.

    Returns:
        None if the text does not add just one column of this name, or not in one way.
    """
    found = {
        stated
        for alteration in alterations(query) or ()
        if alteration.table == table and alteration.schema in (None, schema)
        for name, stated in alteration.stated
        if name == column
    }
    return found.pop() if len(found) == 1 else None


class _NotPlain(Exception):
    """The text may do more than it shows."""


def _alterations(query: str, tokens: list[Token]) -> Iterator[Alteration]:
    for statement in _split(tokens, TokenType.SEMICOLON):
        if not statement:
            continue
        words = _Words(query, statement)
        if words.peek() not in _PLAIN or any(
            token.token_type in (TokenType.COMMAND, TokenType.SELECT) for token in statement
        ):
            raise _NotPlain
        if words.take("ALTER", "TABLE"):
            yield _alter_table(words)
        elif words.peek() in ("INSERT", "UPDATE", "DELETE"):
            _check_no_calls(statement)


def _check_no_calls(statement: list[Token]) -> None:
    """Refuse a function call; the column list of INSERT INTO looks like one and is none."""
    for place, token in enumerate(statement[:-1]):
        called = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if called and statement[place + 1].token_type is TokenType.L_PAREN and not _is_target(statement, place):
            raise _NotPlain


def _is_target(statement: list[Token], place: int) -> bool:
    while place >= 2 and statement[place - 1].token_type is TokenType.DOT:
        place -= 2
    return place >= 1 and statement[place - 1].token_type is TokenType.INTO


def _alter_table(words: _Words) -> Alteration:
    words.take("IF", "EXISTS")
    words.take("ONLY")
    parts = [words.name()]
    while words.take("."):
        parts.append(words.name())
    words.take("*")
    if len(parts) > 2:
        raise _NotPlain
    schema, table = (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    if words.take("RENAME"):
        return _rename(words, schema, table)
    if words.peek_all("SET", "SCHEMA"):
        return Alteration(schema=schema, table=table, moved=True, moved_to=table)
    added: set[str] = set()
    perhaps: set[str] = set()
    retyped: set[tuple[str, bool]] = set()
    stated: list[tuple[str, Stated]] = []
    for clause in words.clauses():
        if clause.take("ALTER"):
            retyped |= _retyping(clause)
        else:
            stated += _clause(clause, added, perhaps)
    return Alteration(
        schema=schema,
        table=table,
        added=frozenset(added),
        perhaps_added=frozenset(perhaps),
        retyped=frozenset(retyped),
        stated=tuple(stated),
    )


def _retyping(words: _Words) -> set[tuple[str, bool]]:
    """Return what ALTER COLUMN … TYPE names and whether it has a USING, nothing for other clauses."""
    words.take("COLUMN")
    name = words.name()
    words.take("SET", "DATA")
    if not words.take("TYPE"):
        return set()
    depth = 0
    for token in words.rest():
        depth += (token.text == "(") - (token.text == ")") if _is_sign(token) else 0
        if depth == 0 and token.token_type is TokenType.USING:
            return {(name, True)}
    return {(name, False)}


def _rename(words: _Words, schema: str | None, table: str) -> Alteration:
    if words.take("TO"):
        return Alteration(schema=schema, table=table, moved=True, moved_to=words.name())
    if words.take("CONSTRAINT"):
        return Alteration(schema=schema, table=table)
    words.take("COLUMN")
    old = words.name()
    if not words.take("TO"):
        raise _NotPlain
    new = words.name()
    if words.rest():
        raise _NotPlain
    return Alteration(schema=schema, table=table, renamed=(old, new))


def _clause(words: _Words, added: set[str], perhaps: set[str]) -> Iterator[tuple[str, Stated]]:
    if words.take("ADD"):
        if (
            (words.peek() or "").split(" ")[0] in _CONSTRAINTS
            or words.peek_all("EXCLUDE", "USING")
            or words.peek_all("EXCLUDE", "(")
        ):
            return
        words.take("COLUMN")
        names = perhaps if words.take("IF", "NOT", "EXISTS") else added
        name = words.name()
        names.add(name)
        yield name, stated_default([_part(token) for token in words.rest()], words.written())
    elif not (words.take("DROP") or words.take("SET")) and words.peek() not in _NO_COLUMNS:
        raise _NotPlain


def _part(token: Token) -> Part:
    match token.token_type:
        case TokenType.STRING:
            return Part("string", token.text)
        case TokenType.NUMBER:
            return Part("number", token.text)
        case TokenType.IDENTIFIER:
            return Part("name", token.text)
    return Part("word" if token.text[:1].isalpha() and token.text[:1].isascii() else "sign", token.text)


def _split(tokens: list[Token], separator: TokenType) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[")) - (token.text in (")", "]")) if _is_sign(token) else 0
        if token.token_type is separator and depth == 0:
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _is_sign(token: Token) -> bool:
    return token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN, TokenType.L_BRACKET, TokenType.R_BRACKET)


class _Words:
    """Reads tokens from left to right; quoted names are never key words."""

    def __init__(self, query: str, tokens: list[Token]) -> None:
        self._query = query
        self._tokens = tokens
        self._place = 0

    def peek(self, ahead: int = 0) -> str | None:
        place = self._place + ahead
        if place >= len(self._tokens) or self._tokens[place].token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return None
        return self._tokens[place].text.upper()

    def peek_all(self, *words: str) -> bool:
        return all(self.peek(ahead) == word for ahead, word in enumerate(words))

    def take(self, *words: str) -> bool:
        if not self.peek_all(*words):
            return False
        self._place += len(words)
        return True

    def name(self) -> str:
        """Take a name, folded to lower case unless it is quoted, as Postgres does."""
        if self._place >= len(self._tokens):
            raise _NotPlain
        token = self._tokens[self._place]
        self._place += 1
        if token.token_type is TokenType.IDENTIFIER:
            return token.text
        if not (token.text[:1].isalpha() or token.text[:1] == "_") or token.token_type is TokenType.STRING:
            raise _NotPlain
        return "".join(letter.lower() if letter.isascii() else letter for letter in token.text)

    def rest(self) -> list[Token]:
        return self._tokens[self._place :]

    def clauses(self) -> list[_Words]:
        """Return the rest by its commas."""
        return [_Words(self._query, clause) for clause in _split(self.rest(), TokenType.COMMA)]

    def written(self) -> str:
        """Return the rest as it stands in the text, on one line."""
        rest = self.rest()
        return " ".join(self._query[rest[0].start : rest[-1].end + 1].split()) if rest else ""
