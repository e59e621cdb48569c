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
from pacpredict.core.bounds import advantage_bound, epsilon_for_success, success_bound
from pacpredict.core.plan import plan
from pacpredict.core.roc import tpr_bound, tpr_for_epsilon

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
        *("queries", "success", "epsilon", "step_budget", "total_budget_nats", "prior"),
        *("fpr", "tpr", "epsilon_tpr"),
    ]
    assert got == vars(plan(queries=10**6, success=0.5108))
    assert isinstance(got["queries"], int)


def test_plan_for_step_and_epsilon():
    """The paper's 477 million queries."""
    got = run_json("plan", "--step-budget", "2^-32", "--epsilon", "1")
    assert got["queries"] == 476_512_710


def test_plan_for_true_positives():
    """A million queries that let nobody find more than 1 % of the members at 0.1 % false alarms."""
    got = run_json("plan", "--queries", "1e6", "--tpr", "0.01", "--fpr", "0.001")
    assert got == vars(plan(queries=10**6, tpr=0.01))
    assert got["tpr"] <= 0.01 < tpr_bound(got["total_budget_nats"] * 1.0001)


def test_bounds_count_true_positives_where_asked():
    """--fpr moves the rate of false alarms; --prior is that of the test."""
    got = run_json("bounds", "--budget-nats", "0.1", "--fpr", "0.01", "--prior", "1/4")
    assert (got["fpr"], got["tpr"]) == (0.01, tpr_bound(0.1, 0.01, 0.25))


def test_an_epsilon_never_stands_alone():
    """Wherever a matching epsilon is printed it is for average success, beside both true positive rates."""
    for command in ("plan --epsilon 1 --step-budget 2^-32", "bounds --budget-nats 0.11094676097854972"):
        shown = run(*command.split()).stdout
        for text in ("average success", "0.1 % false alarms", "29.2633 %", "0.2729 %"):
            assert text in shown


def test_plan_without_a_guarantee_is_null():
    """An infinite epsilon is null, because JSON has no infinity."""
    got = run_json("plan", "--queries", "10", "--step-budget", "1")
    assert (got["success"], got["epsilon"]) == (1, None)


def test_delta_reaches_the_plan():
    """A larger delta allows a larger budget for the same epsilon."""
    small, large = (
        run_json("plan", "--queries", "9", "--epsilon", "0.1", "--delta", d) for d in ("0", "0.01")
    )
    assert small["step_budget"] < large["step_budget"]
    assert small == vars(plan(queries=9, epsilon=0.1, delta=0))


def test_what_delta_alone_allows_is_not_hidden():
    """Where even an epsilon of 0 allows more than the budget, the row of DP says so."""
    printed = " ".join(run("bounds", "--budget-nats", "0").stdout.split())
    assert "(0, 1e-05)-DP 50.0005 %" in printed


def test_bounds_as_json():
    """The JSON is what the library says about budget and prior."""
    got = run_json("bounds", "--budget-nats", "0.25", "--prior", "0.5")
    assert got == {
        "budget_nats": 0.25,
        "prior": 0.5,
        "success": success_bound(0.25),
        "advantage": advantage_bound(0.25),
        "epsilon": epsilon_for_success(success_bound(0.25)),
        "delta": 1e-5,
        "fpr": 0.001,
        "tpr": tpr_bound(0.25),
        "epsilon_tpr": tpr_for_epsilon(epsilon_for_success(success_bound(0.25))),
    }


def test_epsilon_goes_with_the_prior_that_is_reported():
    """It is that of membership with this prior; below 1/2, which no membership inference has, with 1/2."""
    half, rare, more = (
        run_json("bounds", "--budget-nats", "0.1", "--prior", q) for q in ("1/2", "1/128", "2/3")
    )
    assert half["epsilon"] == rare["epsilon"]
    assert rare["success"] == success_bound(0.1, 1 / 128)
    assert more["epsilon"] == epsilon_for_success(success_bound(0.1, 2 / 3)) > half["epsilon"]
    assert (
        run_json("plan", "--queries", "1", "--step-budget", "0.1", "--prior", "2/3")["epsilon"]
        == more["epsilon"]
    )


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
    for text in ("1,000,000", "51.0800 %", "50.0000 %", "2^-32.00", "0.04319"):
        assert text in done.stdout
    done = run("bounds", "--budget-nats", "0.25")
    for text in (
        *(
            "was this person trained on?",
            "83.7894 %",
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
    assert "12.9592 %" in single
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
        ("plan --queries 5 --success 0.6 --epsilon 1", "not allowed with"),
        ("plan --queries 5 --success 51.08", "0.5108"),
        ("plan --queries 5 --success 0.4", "not above the prior"),
        ("plan --queries 5 --step-budget 0", "step_budget"),
        ("plan --queries 5 --epsilon 1 --prior 1/2 --attack model", "not allowed with"),
        ("plan --queries 5 --epsilon 1 --group-size 3", "--attack group-any and group-exact"),
        ("plan --queries 5 --epsilon 1 --attack group", "invalid choice: 'group'"),
        ("plan --queries 5 --epsilon 1 --attack model --artifact a --models 4", "not allowed with"),
        ("bounds --budget-nats 1 --artifact nowhere.pac", "there is no artifact nowhere.pac"),
        ("plan --queries 5 --epsilon 1 --models 64", "--attack"),
        ("plan --queries 5 --epsilon 1 --attack model --models 3", "even"),
        ("plan --que 5 --epsilon 1", "unrecognized arguments: --que 5 (see pacpredict plan --help)"),
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
