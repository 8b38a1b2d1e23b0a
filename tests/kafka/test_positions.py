"""Where a reader begins, as people write it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tidings.kafka.positions import (
    LAST_MAX,
    AtOffset,
    Edge,
    Last,
    Position,
    PositionError,
    Since,
    parse_position,
)

NOW_MS = 1_763_541_000_000  # 2025-11-19T08:30:00Z


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Edge.EARLIEST),
        ("latest", Edge.LATEST),
        ("-1", Last(1)),
        ("-10", Last(10)),
        ("0", AtOffset(0)),
        ("42", AtOffset(42)),
        ("30s", Since(NOW_MS - 30_000)),
        ("1.5m", Since(NOW_MS - 90_000)),
        ("2h", Since(NOW_MS - 7_200_000)),
        ("7d", Since(NOW_MS - 604_800_000)),
        ("99999d", Since(0)),
        ("@1763541000", Since(NOW_MS)),
        ("@1763541000.25", Since(NOW_MS + 250)),
        ("2025-11-19T08:30:00Z", Since(NOW_MS)),
        ("2025-11-19T09:30+01:00", Since(NOW_MS)),
        ("2025-11-19 08:30", Since(NOW_MS)),
        ("2025-11-19T08:30:00.25", Since(NOW_MS + 250)),
        ("2025-11-19", Since(NOW_MS - 30_600_000)),
    ],
)
def test_a_position_is_what_it_says(text: str, position: Position) -> None:
    assert parse_position(text, now_ms=NOW_MS, zone=UTC) == position


def test_a_time_without_a_zone_is_of_the_given_one() -> None:
    zone = timezone(timedelta(hours=2))

    assert parse_position("2025-11-19T10:30", now_ms=NOW_MS, zone=zone) == Since(NOW_MS)


def test_a_time_without_any_zone_is_the_machine_s() -> None:
    local = datetime.fromtimestamp(NOW_MS / 1000, tz=UTC).astimezone()

    assert parse_position(local.strftime("%Y-%m-%dT%H:%M"), now_ms=NOW_MS) == Since(NOW_MS)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-0", f"-{LAST_MAX + 1}", "10x", "@", "@soon", "1e3", "25:00", "2025-13-01", "+5", "٣"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(PositionError):
        parse_position(text, now_ms=NOW_MS, zone=UTC)
