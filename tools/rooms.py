"""The rooms of `src/tidings/`: who may import whom, and who may touch the world outside.

Rule: a room without a row in the table breaks the contract, so that no room slips in; a row whose room is not
built yet is fine. Two contracts for import-linter, whose tables stand in pyproject.toml.
Must not know: which rooms there are.
Tests: tests/house/test_rooms.py
"""

from collections.abc import Iterator
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT_PACKAGE = "tidings"
EVERY_ROOM = "*"


class _BrokenRulesContract(Contract):
    """A contract whose check finds sentences, one per broken rule."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        found = sorted(self.broken_rules(graph))
        return ContractCheck(kept=not found, metadata={"broken": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for sentence in check.metadata["broken"]:
            output.print_error(f"- {sentence}", bold=False)

    def broken_rules(self, graph: ImportGraph) -> Iterator[str]:
        raise NotImplementedError


class RoomTableContract(_BrokenRulesContract):
    """`table`: lines `room: other.module room2`; a room imports itself, these modules and what is below them.

    Only direct imports are looked at: the rows of the rooms in between hold the rest.
    """

    table = fields.ListField(subfield=fields.StringField())

    def broken_rules(self, graph: ImportGraph) -> Iterator[str]:
        allowed_by_room = parse_table(cast(list[str], self.table))
        for importer in sorted(graph.modules):
            room = room_of(importer)
            if room is None:
                continue
            if room not in allowed_by_room:
                yield f"{importer}: the room '{room}' is not in the table"
                continue
            for imported in graph.find_modules_directly_imported_by(importer):
                if not may_import(room, allowed_by_room[room], imported):
                    yield f"{place(graph, importer, imported)}: '{room}' may not import {imported}"


class PureRoomsContract(_BrokenRulesContract):
    """`rooms` import none of the `outside` modules; `seams` are the modules of theirs that may."""

    rooms = fields.ListField(subfield=fields.StringField())
    outside = fields.ListField(subfield=fields.StringField())
    seams = fields.ListField(subfield=fields.StringField(), default=[])

    def broken_rules(self, graph: ImportGraph) -> Iterator[str]:
        rooms, outside = cast(list[str], self.rooms), cast(list[str], self.outside)
        seams = {f"{ROOT_PACKAGE}.{seam}" for seam in cast(list[str], self.seams)}
        for importer in sorted(graph.modules - seams):
            if room_of(importer) not in rooms:
                continue
            for imported in graph.find_modules_directly_imported_by(importer):
                if imported.partition(".")[0] in outside:
                    yield f"{place(graph, importer, imported)}: a pure room may not import {imported}"


def parse_table(lines: list[str]) -> dict[str, tuple[str, ...]]:
    """Rooms and what each may import, from lines `room: module module`."""
    rows = (line.partition(":") for line in lines)
    return {room.strip(): tuple(modules.split()) for room, _, modules in rows}


def room_of(module: str) -> str | None:
    """The room of one of our modules; None for the root package and for other people's modules."""
    parts = module.split(".")
    return parts[1] if parts[0] == ROOT_PACKAGE and len(parts) > 1 else None


def may_import(room: str, allowed: tuple[str, ...], imported: str) -> bool:
    """Whether the row of `room` lets it import `imported`. The root package holds only the version."""
    if room_of(imported) in (None, room) or EVERY_ROOM in allowed:
        return True
    inside = imported.removeprefix(f"{ROOT_PACKAGE}.")
    return any(inside == module or inside.startswith(f"{module}.") for module in allowed)


def place(graph: ImportGraph, importer: str, imported: str) -> str:
    """Where the import stands, for the reader of a broken contract."""
    lines = [
        detail["line_number"] for detail in graph.get_import_details(importer=importer, imported=imported)
    ]
    return f"{importer}:{lines[0]}" if lines else importer
