"""Table: the comparison as people read it, as text or Markdown.

The one rule: every row that was asked for is printed, with a dash where there is no figure and `failed`
where there should be one. Must not know: how figures came about. Tests: tests/bench/test_table.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bench.rows import KAFKA, KAFKA_FSYNC, TIDINGS, Row, ratio

TITLES: Final = {KAFKA: "Kafka", KAFKA_FSYNC: "Kafka, fsync", TIDINGS: "Tidings"}
RATIOS: Final = {KAFKA: "Tidings / Kafka", KAFKA_FSYNC: "Tidings / Kafka, fsync"}


@dataclass(slots=True, kw_only=True)
class Results:
    """All samples, by row name and system; and which of them failed how often."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failures: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, row: str, system: str, values: Sequence[float]) -> None:
        self.samples.setdefault(row, {}).setdefault(system, []).extend(values)

    def add_failure(self, row: str, system: str) -> None:
        of_row = self.failures.setdefault(row, {})
        of_row[system] = of_row.get(system, 0) + 1

    def figures(self, row: Row) -> dict[str, float]:
        """One figure per system, for those that never failed the row."""
        failed = self.failures.get(row.name, {})
        of_row = self.samples.get(row.name, {})
        return {system: row.combine(values) for system, values in of_row.items() if system not in failed}


def lines(rows: Sequence[Row], systems: Sequence[str], results: Results, *, markdown: bool) -> list[str]:
    """The table, line by line."""
    compared = [system for system in RATIOS if system in systems and TIDINGS in systems]
    header = ["row", "unit", *(TITLES[system] for system in systems), *(RATIOS[other] for other in compared)]
    cells = [[*header, "must", ""]]
    for row in rows:
        figures = results.figures(row)
        failed = results.failures.get(row.name, {})
        cells.append(
            [
                row.label,
                row.unit,
                *(_figure(row, figures, failed, system) for system in systems),
                *(_ratio(figures, other) for other in compared),
                str(row.goal or ""),
                row.goal.verdict(figures) if row.goal and TIDINGS not in failed else "",
            ]
        )
    return _markdown(cells) if markdown else _aligned(cells)


def _figure(row: Row, figures: Mapping[str, float], failed: Mapping[str, int], system: str) -> str:
    if system in failed:
        return "failed"
    return row.shown(figures[system]) if system in figures else "-"


def _ratio(figures: Mapping[str, float], other: str) -> str:
    if TIDINGS not in figures or other not in figures:
        return "-"
    return f"{ratio(figures[TIDINGS], figures[other]):.2f}"


def _markdown(cells: Sequence[Sequence[str]]) -> list[str]:
    header, *body = cells
    rule = ["---", "---", *("---:" for _ in header[2:-2]), "---", "---"]
    return [f"| {' | '.join(line)} |" for line in (header, rule, *body)]


def _aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    words = (0, 1, len(widths) - 2, len(widths) - 1)
    return [
        "  ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
