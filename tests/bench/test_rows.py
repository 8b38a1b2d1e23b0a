"""Goals: met, missed, or silent where a figure is missing; and every row has its measurement."""

from bench.figures import quantile
from bench.measurements import MEASUREMENTS
from bench.rows import KAFKA, KAFKA_FSYNC, ROWS, TIDINGS, Goal

AT_LEAST_TWICE_KAFKA = Goal(bound=2.0, at_least=True, against=KAFKA)
AT_MOST_ONE = Goal(bound=1.0, at_least=False)


def test_a_ratio_goal_is_met_from_its_bound_on() -> None:
    assert AT_LEAST_TWICE_KAFKA.verdict({KAFKA: 10.0, TIDINGS: 20.0}) == "met"
    assert AT_LEAST_TWICE_KAFKA.verdict({KAFKA: 10.0, TIDINGS: 19.9}) == "missed"


def test_an_absolute_goal_needs_no_other_system() -> None:
    assert AT_MOST_ONE.verdict({TIDINGS: 1.0}) == "met"
    assert AT_MOST_ONE.verdict({TIDINGS: 1.1}) == "missed"


def test_without_the_figures_it_compares_a_goal_says_nothing() -> None:
    assert AT_LEAST_TWICE_KAFKA.verdict({TIDINGS: 20.0}) == ""
    assert AT_LEAST_TWICE_KAFKA.verdict({KAFKA: 10.0}) == ""
    assert AT_LEAST_TWICE_KAFKA.verdict({KAFKA_FSYNC: 1.0, TIDINGS: 20.0}) == ""


def test_a_ratio_to_nothing_is_no_division_by_zero() -> None:
    assert AT_LEAST_TWICE_KAFKA.verdict({KAFKA: 0.0, TIDINGS: 1.0}) == "met"


def test_every_row_is_measured_once() -> None:
    measured = [row for measurement in MEASUREMENTS for row in measurement.rows]

    assert sorted(measured) == sorted(row.name for row in ROWS)


def test_the_worst_kills_count_among_the_kills_of_all_rounds() -> None:
    row = next(row for row in ROWS if row.name == "kill-p99")
    gaps_s = [0.1] * 20 + [0.9]

    assert row.combine(gaps_s) == quantile(gaps_s, 0.99) == 0.9
