"""Commands of the terminal, run in this process, for tests."""

from pacpredict.cli import main


def run_here(capsys, *arguments):
    """Run a command, quicker than the installed program; return its code, output and errors."""
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def refused(capsys, *arguments):
    """Run a command that is refused in one line, and return that."""
    code, output, errors = run_here(capsys, *arguments)
    assert (code, output) == (2, "")
    assert errors.startswith("pacpredict: error: ")
    assert errors.count("\n") == 1
    return errors
