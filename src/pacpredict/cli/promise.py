"""The promise of a deployment on the terminal."""

from pacpredict.cli.columns import print_points
from pacpredict.promise import NEVER_TELL, Promise, plain


def print_promise(promise: Promise) -> None:
    print("What is promised, for the whole life of the deployment")
    print()
    print_points([*(f"{title}. {plain(sentence)}" for title, sentence in promise.titled()), NEVER_TELL])
