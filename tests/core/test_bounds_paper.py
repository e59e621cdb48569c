"""Every figure of the paper that follows from a budget alone, at the precision in which it is printed.

Where exact arithmetic disagrees with a printed figure, the figure stays here with its exact value beside it.
"""

import pytest

from pacpredict.core.bounds import (
    budget_for_success,
    epsilon_for_success,
    queries_supported,
    success_bound,
    success_for_epsilon,
)

STEPS = [2.0**-4, 2.0**-8, 2.0**-12, 2.0**-16, 2.0**-20, 2.0**-24, 2.0**-28, 2.0**-32]

# Table 1 (tab:n_to_delta): success in percent after T releases, one column per step budget.
TABLE_1A = {
    1: "67.5 54.4 51.1 50.3 50.07 50.02 50.00 50.00",
    100: "100 91.0 61.0 52.8 50.69 50.17 50.04 50.01",
    10_000: "100 100 100 76.9 56.89 51.73 50.43 50.11",
    1_000_000: "100 100 100 100 100 67.09 54.31 51.08",
}
TABLE_1B = {
    1: "5.6 1.7 1.0 0.8 0.79 0.78 0.78 0.78",
    100: "100 17.5 3.4 1.3 0.91 0.81 0.79 0.78",
    10_000: "100 100 63.8 9.4 2.28 1.10 0.86 0.80",
    1_000_000: "100 100 100 100 32.55 5.42 1.66 0.98",
}
# Table 2 (tab:dp_t): releases until membership inference may do as well as under (epsilon, 1e-5)-DP.
TABLE_2 = {
    1: "1 28 454 7K 116K 2M 30M 477M",
    2: "5 83 1K 21K 344K 5M 88M 1B",
    4: "9 154 2K 40K 632K 10M 162M 3B",
}
# The bound rows of Table tab:mia; T = 100,000 to 1,000,000.
MIA_BOUNDS = {
    -12: "100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00",
    -16: "100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00 100.00",
    -20: "71.48 79.85 85.89 90.60 94.38 97.39 99.61 100.00 100.00 100.00",
    -24: "55.45 57.71 59.43 60.87 62.15 63.29 64.34 65.32 66.23 67.09",
    -28: "51.36 51.93 52.36 52.73 53.05 53.34 53.61 53.86 54.09 54.31",
    -32: "50.34 50.48 50.59 50.68 50.76 50.84 50.90 50.97 51.02 51.08",
}
# Table tab:distillation at b = 2^-32: T, total budget, success bound in percent, matching epsilon.
DISTILLATION = [
    (5_000, "1.16e-06", "50.08", "0.0030"),
    (10_000, "2.33e-06", "50.11", "0.0043"),
    (20_000, "4.66e-06", "50.15", "0.0061"),
    (40_000, "9.31e-06", "50.22", "0.0086"),
    (80_000, "1.86e-05", "50.31", "0.0122"),
    (160_000, "3.73e-05", "50.43", "0.0172"),
    (210_000, "4.89e-05", "50.49", "0.0198"),
]


def cells(table, columns):
    return [
        (row, column, cell)
        for row, line in table.items()
        for column, cell in zip(columns, line.split(), strict=True)
    ]


def percent(success, printed):
    """Format a success rate with as many decimals as the printed cell."""
    decimals = len(printed.partition(".")[2])
    return f"{100 * success:.{decimals}f}"


def abbreviated(count):
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if count >= size:
            return f"{count / size:.0f}{unit}"
    return str(count)


@pytest.mark.parametrize(("queries", "step", "printed"), cells(TABLE_1A, STEPS))
def test_table_1a(queries, step, printed):
    """Table 1(a), membership at prior 1/2."""
    assert percent(success_bound(queries * step, 0.5), printed) == printed


@pytest.mark.parametrize(("queries", "step", "printed"), cells(TABLE_1B, STEPS))
def test_table_1b(queries, step, printed):
    """Table 1(b), stealing the model at prior 1/128."""
    assert percent(success_bound(queries * step, 1 / 128), printed) == printed


@pytest.mark.parametrize(("epsilon", "step", "printed"), cells(TABLE_2, STEPS))
def test_table_2(epsilon, step, printed):
    """Table 2, releases before the membership guarantee is that of (epsilon, 1e-5)-DP."""
    assert abbreviated(queries_supported(step, success_for_epsilon(epsilon))) == printed


@pytest.mark.parametrize(
    ("power", "queries", "printed"), cells(MIA_BOUNDS, range(100_000, 1_000_001, 100_000))
)
def test_table_mia_bounds(power, queries, printed):
    """The bound rows above the attacks that the paper ran."""
    assert percent(success_bound(queries * 2.0**power), printed) == printed


@pytest.mark.parametrize(("queries", "budget", "success", "epsilon"), DISTILLATION)
def test_table_distillation(queries, budget, success, epsilon):
    """Total budget, success bound and matching epsilon of every distilled student."""
    total = queries * 2.0**-32
    assert f"{total:.2e}" == budget
    assert percent(success_bound(total), success) == success
    assert f"{epsilon_for_success(success_bound(total)):.4f}" == epsilon


@pytest.mark.parametrize(
    ("budget", "printed"),
    [
        (2.0**-10, "52.21"),
        (2.0**-32, "50.001"),
        (2.0**-8, "54.42"),
        (100 * 2.0**-8, "91"),
        (1e6 * 2.0**-32, "51.08"),
        (210_000 * 2.0**-32, "50.49"),
    ],
)
def test_success_quoted_in_the_text(budget, printed):
    """Success rates of section 2.2, section 4.3 and the abstract."""
    assert percent(success_bound(budget), printed) == printed


@pytest.mark.parametrize(
    ("budget", "printed"),
    [(2.0**-8, "0.18"), (100 * 2.0**-8, "2.31"), (1e6 * 2.0**-32, "0.04"), (210_000 * 2.0**-32, "0.02")],
)
def test_epsilon_quoted_in_the_text(budget, printed):
    """Matching epsilons of section 4.3 and the abstract."""
    assert f"{epsilon_for_success(success_bound(budget)):.2f}" == printed


@pytest.mark.parametrize(("epsilon", "printed"), [(1, "73.11"), (0.1, "52.50")])
def test_what_dp_promises(epsilon, printed):
    """Section 2.2 on membership inference under (epsilon, 1e-5)-DP."""
    assert percent(success_for_epsilon(epsilon), printed) == printed


def test_capacity_quoted_in_the_text():
    """About 477 million releases at epsilon 1, over two billion at epsilon 3, a total of about 0.11 nats."""
    assert round(queries_supported(2.0**-32, success_for_epsilon(1)) / 1e6) == 477
    assert queries_supported(2.0**-32, success_for_epsilon(3)) > 2e9
    assert f"{budget_for_success(success_for_epsilon(1)):.2f}" == "0.11"


def test_the_one_figure_that_exact_arithmetic_prints_differently():
    """Section 2.2 prints 83.78 % at 2^-2 nats; the exact bound is 83.7893 %, cut off instead of rounded."""
    assert f"{100 * success_bound(2.0**-2):.4f}" == "83.7893"


def test_no_cell_is_missing():
    """Tables 1(a), 1(b), 2, tab:mia and tab:distillation have 32, 32, 24, 60 and 7 cells or columns."""
    tables = (TABLE_1A, TABLE_1B, TABLE_2, MIA_BOUNDS)
    assert [sum(len(row.split()) for row in table.values()) for table in tables] == [32, 32, 24, 60]
    assert len(DISTILLATION) == 7


def test_below_one_percent_for_the_secret():
    """Section 4.3: at b = 2^-32 stealing the model succeeds in under 1 % after a million queries."""
    assert success_bound(1e6 * 2.0**-32, 1 / 128) < 0.01
