"""`completion`: what a shell needs to complete commands, options and files of this program."""

from argparse import Action, ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from pathlib import Path

from pacpredict.cli.command import Command

_SHELLS = ("bash", "zsh", "fish", "tcsh")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS, help="the shell to complete in")


def _run(arguments: Namespace) -> None:
    import shtab  # noqa: PLC0415  # nobody else needs it

    from pacpredict.cli import build_parser  # noqa: PLC0415  # which has this command, too

    parser = build_parser()
    for action in _actions(parser):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab's own attribute
    print(shtab.complete(parser, arguments.shell))


def _actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the arguments of a parser and of all parsers below it."""
    for action in parser._actions:  # noqa: SLF001  # argparse has no other way to list them
        if isinstance(action, _SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)
        else:
            yield action


COMPLETION = Command(
    name="completion",
    summary="print what a shell needs to complete commands",
    description="Print a script by which a shell completes commands, options and names of files when you press Tab.\n"
    'In ~/.bashrc:  eval "$(pacpredict completion bash)"   In ~/.zshrc:  eval "$(pacpredict completion zsh)"\n'
    "fish:  pacpredict completion fish > ~/.config/fish/completions/pacpredict.fish",
    example="pacpredict completion bash",
    add_arguments=_add_arguments,
    run=_run,
)
