"""The installed program, run as people run it."""

import json
import os
import resource
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import pacpredict.cli
from pacpredict.cli import attacks, build_parser, main
from pacpredict.core.attacks import QUESTIONS
from pacpredict.core.bounds import advantage_bound, success_bound
from pacpredict.core.matching import match_gaussian, match_generic
from pacpredict.core.plan import plan
from pacpredict.core.roc import tpr_bound

PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"


def run(*arguments, **options):
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=60,
        **options,
    )


def run_json(*arguments):
    done = run(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def refused(*arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("pacpredict: error: ")
    return done.stderr


def test_plan_for_queries_and_success():
    """A million queries at 51.08 %: the JSON is the plan of the library, bit by bit."""
    got = run_json("plan", "--queries", "1e6", "--success", "0.5108")
    assert list(got) == [
        *("queries", "success", "step_budget", "total_budget_nats", "prior"),
        *("fpr", "tpr", "odds_limit", "limited_tpr"),
    ]
    assert got == vars(plan(queries=10**6, success=0.5108))
    assert isinstance(got["queries"], int)


def test_plan_for_true_positives():
    """A million queries after which no test finds more than 1% of members at 0.1% false positives."""
    got = run_json("plan", "--queries", "1e6", "--tpr", "0.01", "--fpr", "0.001")
    assert got == vars(plan(queries=10**6, tpr=0.01))
    assert got["tpr"] <= 0.01 < tpr_bound(got["total_budget_nats"] * 1.0001)


def test_bounds_count_true_positives_where_asked():
    """--fpr moves the rate of false alarms; --prior is that of the test."""
    got = run_json("bounds", "--budget-nats", "0.1", "--fpr", "0.01", "--prior", "1/4")
    assert (got["fpr"], got["tpr"]) == (0.01, tpr_bound(0.1, 0.01, 0.25))


def test_an_epsilon_stands_in_bounds_alone_and_in_both_ways():
    """`bounds` translates average success by both formulas, each with its true positive rate; `plan` has no epsilon."""
    shown = " ".join(run("bounds", "--budget-nats", "0.11094676097854972").stdout.split())
    for text in (
        "this budget 73.1062% 29.2633%",
        "generic formula: (1, 1e-05)-DP 73.1062% 0.2729%",
        "Gaussian mechanism: (5.584, 1e-05)-DP 73.1062% 3.1572%",
        "Neither epsilon is a guarantee",
    ):
        assert text in shown, shown
    planned = run("plan", "--queries", "1e6", "--step-budget", "2^-32")
    assert "epsilon" not in planned.stdout + run("plan", "--help").stdout + run("fit", "--help").stdout


def test_plan_proposes_an_odds_limit_and_says_what_a_smaller_one_costs():
    """12 sqrt(2 B) in two digits, next to what honest use was measured to reach."""
    shown = " ".join(run("plan", "--queries", "1e6", "--step-budget", "2^-32").stdout.split())
    for text in (
        "proposed odds limit 0.25 (a factor of 1.285)",
        "true positives at 0.1%, at most 0.1285%",
        "without an odds limit 0.2854%",
        "is 12 sqrt(2 B) for a total of B nats",
        "which is 0.15 to 0.17 here",
        "With map and sample that costs no accuracy.",
    ):
        assert text in shown, shown
    assert run_json("plan", "--queries", "1", "--total-budget", "0.11")["odds_limit"] == 5.6


def test_plan_without_a_guarantee_is_null():
    """An infinite odds limit is null, because JSON has no infinity, and no promise is worded."""
    got = run_json("plan", "--queries", "100", "--step-budget", "1e8")
    assert (got["success"], got["odds_limit"]) == (1, None)
    shown = " ".join(run("plan", "--queries", "100", "--step-budget", "1e8").stdout.split())
    assert "proposed odds limit none" in shown
    assert "of the time" not in shown


def test_delta_reaches_both_translations():
    """A larger delta goes with a smaller epsilon at the same success."""
    small, large = (
        run_json("bounds", "--budget-nats", "0.1", "--delta", delta)["matching"] for delta in ("1e-9", "0.01")
    )
    for name in ("generic", "gaussian"):
        assert small[name]["epsilon"] > large[name]["epsilon"]
        assert (small[name]["delta"], large[name]["delta"]) == (1e-9, 0.01)


def test_what_delta_alone_allows_is_not_hidden():
    """Where even an epsilon of 0 allows more than the budget, the row of DP says so."""
    printed = " ".join(run("bounds", "--budget-nats", "0").stdout.split())
    assert "(0, 1e-05)-DP 50.0005%" in printed


def test_bounds_as_json():
    """The JSON is what the library says about budget and prior."""
    got = run_json("bounds", "--budget-nats", "0.25", "--prior", "0.5")
    assert got == {
        "budget_nats": 0.25,
        "prior": 0.5,
        "success": success_bound(0.25),
        "advantage": advantage_bound(0.25),
        "fpr": 0.001,
        "tpr": tpr_bound(0.25),
        "matching": {"generic": match_generic(0.25)._asdict(), "gaussian": match_gaussian(0.25)._asdict()},
    }


def test_epsilon_goes_with_the_prior_that_is_reported():
    """It is that of membership with this prior; below 1/2, which no membership inference has, with 1/2."""
    half, rare, more = (
        run_json("bounds", "--budget-nats", "0.1", "--prior", q) for q in ("1/2", "1/128", "2/3")
    )
    assert half["matching"] == rare["matching"]
    assert rare["success"] == success_bound(0.1, 1 / 128)
    assert more["matching"]["generic"] == match_generic(0.1, 2 / 3)._asdict()
    assert more["matching"]["generic"]["epsilon"] > half["matching"]["generic"]["epsilon"]


@pytest.mark.parametrize(
    ("options", "prior"),
    [
        ([], 0.5),
        (["--attack", "membership"], 0.5),
        (["--attack", "reconstruction", "--models", "64"], 0.5),
        (["--attack", "full-set"], 1 / 128),
        (["--attack", "model"], 1 / 128),
        (["--attack", "model", "--models", "64"], 1 / 64),
        (["--attack", "group-any", "--group-size", "1"], 0.5),
        (["--attack", "group-exact", "--group-size", "1"], 0.5),
        (["--prior", "1/1000"], 1 / 1000),
    ],
)
def test_attacks_have_their_priors(options, prior):
    """Appendix C: each attack brings its own prior, into plans and bounds alike."""
    assert run_json("bounds", "--budget-nats", "0.01", *options)["prior"] == prior
    assert run_json("plan", "--queries", "5", "--step-budget", "0.01", *options)["prior"] == prior


def test_group_priors_repeat_and_go_opposite_ways():
    """The prior is the same every time; in larger groups more is needed to know all, and less to know any."""
    (exact, again, exact_of_9), (any_of_5, _, any_of_9) = (
        [
            run_json("bounds", "--budget-nats", "0.1", "--attack", attack, "--group-size", size)["prior"]
            for size in ("5", "5", "9")
        ]
        for attack in ("group-exact", "group-any")
    )
    assert exact == again
    assert 1 / 128 < exact_of_9 < 1 / 32 < exact < 0.1
    assert 0.96 < any_of_5 < any_of_9 <= 1


def test_tables_for_people():
    """Without --json the same facts come as a table within 80 columns."""
    done = run("plan", "--queries", "1e6", "--success", "0.5108")
    assert done.returncode == 0
    for text in ("1,000,000", "51.0800%", "50.0000%", "2^-32.00", "51.08% of the time"):
        assert text in done.stdout
    done = run("bounds", "--budget-nats", "0.25")
    for text in (
        *(
            "was this person trained on?",
            "83.7894%",
            "trained on any of 5 random persons?",
            "=====###..",
            "1.643",
        ),
        *("trained on which of 5 random persons?", "which of the 128 models answers?", "imitation"),
    ):
        assert text in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_bounds_table_takes_models_and_group_size():
    """The rows of the overview follow the options; one attack makes one row."""
    overview = run("bounds", "--budget-nats", "0.25", "--models", "64", "--group-size", "2").stdout
    assert "trained on any of 2 random persons?" in overview
    assert "which of the 64 models answers?" in overview
    single = run("bounds", "--budget-nats", "0.25", "--attack", "model").stdout
    assert "12.9592%" in single
    assert "person" not in single
    assert "any attack with this prior" in run("bounds", "--budget-nats", "0.25", "--prior", "0.1").stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "choose a command: demo, evaluate, fit, predict, serve, distill, keys make, "),
        ("fly", "invalid choice: 'fly'"),
        ("plan", "0 is too few"),
        ("plan --queries 5", "1 is too few"),
        ("plan --queries 1.5 --success 0.6", "not a whole number"),
        ("plan --queries 5 --success 0.6 --step-budget 1", "all three"),
        ("plan --queries 5 --success 0.6 --tpr 0.1", "not allowed with"),
        ("plan --queries 5 --success 51.08", "0.5108"),
        ("plan --queries 5 --success 0.4", "not above the prior"),
        ("plan --queries 5 --step-budget 0", "step_budget"),
        ("plan --queries 5 --success 0.6 --prior 1/2 --attack model", "not allowed with"),
        ("plan --queries 5 --success 0.6 --group-size 3", "--attack group-any and group-exact"),
        ("plan --queries 5 --success 0.6 --attack group", "invalid choice: 'group'"),
        ("plan --queries 5 --success 0.6 --attack model --artifact a --models 4", "not allowed with"),
        ("bounds --budget-nats 1 --artifact nowhere.pac", "there is no artifact nowhere.pac"),
        ("plan --queries 5 --success 0.6 --models 64", "--attack"),
        ("plan --queries 5 --success 0.6 --attack model --models 3", "even"),
        ("plan --que 5 --success 0.6", "unrecognized arguments: --que 5 (see pacpredict plan --help)"),
        ("ledger move a.pac --to URL", "unrecognized arguments: --to (see pacpredict ledger move --help)"),
        ("bounds", "--budget-nats"),
        ("bounds --budget-nats -1", "at least 0"),
        ("bounds --budget-nats inf", "like 0.25"),
        ("bounds --budget-nats 1 --prior 2", "prior"),
        ("bounds --budget-nats 1 --delta 1", "delta"),
        ("bounds --budget-nats 1 --attack group-any --group-size 0", "group_size"),
        ("bounds --budget-nats 1 --attack group-exact --group-size 1001", "group_size"),
    ],
)
def test_errors_are_one_line(line, text):
    """Whatever is wrong takes one line on stderr and exit code 2, never a traceback."""
    assert text in refused(*line.split())


def test_version():
    """The version is that of the installed package."""
    assert run("--version").stdout == f"pacpredict {version('pacpredict')}\n"


@pytest.mark.parametrize("command", pacpredict.cli.COMMANDS, ids=lambda command: command.name)
def test_each_command_helps_with_an_example(command):
    """The help of a command ends with an example that the command line takes; tests/test_docs.py runs examples."""
    *group, _ = names = command.name.split()
    done = run(*names, "--help")
    assert done.returncode == 0
    assert command.example in done.stdout
    assert command.summary in " ".join(run(*group, "--help").stdout.split())
    program, *arguments = command.example.split()
    assert program == "pacpredict"
    assert pacpredict.cli.build_parser().parse_args(arguments).run is command.run


def test_help_imports_nothing_slow():
    """Neither NumPy nor SciPy, Numba or rich is loaded to print help."""
    program = (
        "import sys; from pacpredict.cli import main; code = main(['--help']); "
        "print(code, sorted({'numpy', 'scipy', 'numba', 'rich', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_json_of_a_plan_imports_nothing_slow():
    """A plan for a program needs no array library either."""
    program = (
        "import sys; from pacpredict.cli import main; main('plan --queries 5 --success 0.6 --json'.split()); "
        "print(sorted({'numpy', 'scipy', 'numba', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_is_quick():
    """The best of five takes less than half a second of a processor, however busy that is."""

    def seconds():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run("--help").returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(5)) < 0.5


@pytest.mark.parametrize("line", ["--help", "bounds --budget-nats 1 --json", "bounds --budget-nats 1"])
def test_a_reader_who_left_is_no_error(line, monkeypatch):
    """Output into a closed pipe ends quietly, as for programs that SIGPIPE ends."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # argparse itself drops errors of unbuffered output
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [PROGRAM, *line.split()], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_interruption_is_no_traceback(monkeypatch, capsys):
    """Ctrl-C ends a command with 130 and without words."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pacpredict.cli.plan.chosen_prior", interrupted)
    assert main(["bounds", "--budget-nats", "1", "--json"]) == 130
    assert capsys.readouterr() == ("", "")


def test_other_errors_are_not_hidden(monkeypatch):
    """A mistake in the program itself keeps its traceback."""

    def broken(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr("pacpredict.cli.plan.chosen_prior", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["bounds", "--budget-nats", "1", "--json"])


@pytest.mark.parametrize("attack", QUESTIONS)
def test_every_attack_has_a_prior(attack):
    """Each attack that can be chosen has one, counted in fresh subsets."""
    options = build_parser().parse_args(["bounds", "--budget-nats", "1", "--attack", attack])
    assert 0 < attacks.chosen_prior(options) < 1
