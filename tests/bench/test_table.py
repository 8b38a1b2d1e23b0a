"""The comparison as text and Markdown, with gaps and failures shown."""

from bench import table
from bench.rows import KAFKA, KAFKA_FSYNC, TIDINGS, Goal, Row
from bench.table import Results

SPEED = Row(
    name="speed", label="a load", unit="msg/s", digits=0, goal=Goal(bound=2, at_least=True, against=KAFKA)
)
PAUSE = Row(name="pause", label="a fault", unit="s", digits=2, goal=Goal(bound=1, at_least=False))


def _results() -> Results:
    results = Results()
    results.add("speed", KAFKA, [900.0, 1000.0, 5000.0])
    results.add("speed", TIDINGS, [2500.0])
    results.add("pause", TIDINGS, [1.5])
    return results


def test_a_row_shows_medians_their_ratio_and_the_verdict() -> None:
    lines = table.lines([SPEED], (KAFKA, TIDINGS), _results(), markdown=True)

    assert lines == [
        "| row | unit | Kafka | Tidings | Tidings / Kafka | must |  |",
        "| --- | --- | ---: | ---: | ---: | --- | --- |",
        "| a load | msg/s | 1,000 | 2,500 | 2.50 | >= 2x kafka | met |",
    ]


def test_what_was_not_measured_is_a_dash() -> None:
    lines = table.lines([PAUSE], (KAFKA, KAFKA_FSYNC, TIDINGS), _results(), markdown=True)

    assert lines[-1] == "| a fault | s | - | - | 1.50 | - | - | <= 1 | missed |"


def test_one_failure_hides_the_figure_of_the_rounds_that_went_well() -> None:
    results = _results()
    results.add_failure("speed", TIDINGS)

    lines = table.lines([SPEED], (KAFKA, TIDINGS), results, markdown=True)

    assert lines[-1] == "| a load | msg/s | 1,000 | failed | - | >= 2x kafka |  |"


def test_text_columns_are_aligned() -> None:
    lines = table.lines([SPEED, PAUSE], (KAFKA, TIDINGS), _results(), markdown=False)

    assert lines == [
        "row      unit   Kafka  Tidings  Tidings / Kafka  must",
        "a load   msg/s  1,000    2,500             2.50  >= 2x kafka  met",
        "a fault  s          -     1.50                -  <= 1         missed",
    ]
