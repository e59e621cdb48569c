"""The installed program, run as people run it."""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

import pacpredict.cli
from pacpredict.cli import attacks, main
from pacpredict.core.bounds import advantage_bound, epsilon_for_success, success_bound
from pacpredict.core.plan import plan

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
    assert list(got) == ["queries", "success", "epsilon", "step_budget", "total_budget_nats", "prior"]
    assert got == vars(plan(queries=10**6, success=0.5108))
    assert isinstance(got["queries"], int)


def test_plan_for_step_and_epsilon():
    """The paper's 477 million queries."""
    got = run_json("plan", "--step-budget", "2^-32", "--epsilon", "1")
    assert got["queries"] == 476_512_710


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
    }


def test_epsilon_is_about_membership_whatever_the_prior():
    """Only success and advantage depend on the prior."""
    half, rare = (run_json("bounds", "--budget-nats", "0.25", "--prior", q) for q in ("1/2", "1/128"))
    assert half["epsilon"] == rare["epsilon"]
    assert rare["success"] == success_bound(0.25, 1 / 128)


@pytest.mark.parametrize(
    ("options", "prior"),
    [
        ([], 0.5),
        (["--attack", "membership"], 0.5),
        (["--attack", "reconstruction", "--models", "64"], 0.5),
        (["--attack", "full-set"], 1 / 128),
        (["--attack", "model"], 1 / 128),
        (["--attack", "model", "--models", "64"], 1 / 64),
        (["--attack", "group", "--group-size", "1"], 0.5),
        (["--prior", "1/1000"], 1 / 1000),
    ],
)
def test_attacks_have_their_priors(options, prior):
    """Appendix C: each attack brings its own prior, into plans and bounds alike."""
    assert run_json("bounds", "--budget-nats", "0.01", *options)["prior"] == prior
    assert run_json("plan", "--queries", "5", "--step-budget", "0.01", *options)["prior"] == prior


def test_group_priors_repeat_and_fall():
    """The simulated prior is the same every time and smaller for larger groups."""
    first, again, larger = (
        run_json("bounds", "--budget-nats", "0.1", "--attack", "group", "--group-size", size)["prior"]
        for size in ("5", "5", "9")
    )
    assert first == again
    assert 1 / 32 < first < 0.1
    assert 1 / 128 < larger < first


def test_tables_for_people():
    """Without --json the same facts come as a table within 80 columns."""
    done = run("plan", "--queries", "1e6", "--success", "0.5108")
    assert done.returncode == 0
    for text in ("1,000,000", "51.0800 %", "50.0000 %", "2^-32.00", "0.04319"):
        assert text in done.stdout
    done = run("bounds", "--budget-nats", "0.25")
    for text in ("membership", "83.7894 %", "group of 5", "model, 1 of 128", "==========#######...", "1.643"):
        assert text in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_bounds_table_takes_models_and_group_size():
    """The rows of the overview follow the options; one attack makes one row."""
    overview = run("bounds", "--budget-nats", "0.25", "--models", "64", "--group-size", "2").stdout
    assert "group of 2" in overview
    assert "model, 1 of 64" in overview
    single = run("bounds", "--budget-nats", "0.25", "--attack", "model").stdout
    assert "12.9592 %" in single
    assert "membership " not in single.split("matching")[0]
    assert "any with this prior" in run("bounds", "--budget-nats", "0.25", "--prior", "0.1").stdout


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "choose a command: fit, predict, serve, show, verify, ledger verify, "),
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
        ("plan --queries 5 --epsilon 1 --group-size 3", "--attack group"),
        ("plan --queries 5 --epsilon 1 --models 64", "--attack"),
        ("plan --queries 5 --epsilon 1 --attack model --models 3", "even"),
        ("plan --que 5 --epsilon 1", "unrecognized arguments"),
        ("bounds", "--budget-nats"),
        ("bounds --budget-nats -1", "at least 0"),
        ("bounds --budget-nats inf", "like 0.25"),
        ("bounds --budget-nats 1 --prior 2", "prior"),
        ("bounds --budget-nats 1 --delta 1", "delta"),
        ("bounds --budget-nats 1 --attack group --group-size 0", "group_size"),
        ("bounds --budget-nats 1 --attack group --group-size 1001", "group_size"),
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
    """The best of five takes less than half a second."""

    def seconds():
        start = time.perf_counter()
        assert run("--help").returncode == 0
        return time.perf_counter() - start

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


def test_every_attack_is_explained():
    """Each attack that can be chosen has a prior."""
    assert all(0 < attacks.prior_of(attack) < 1 for attack in attacks.ATTACKS)
