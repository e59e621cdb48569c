"""Logs for people, a line for each request, or for programs, a JSON object for each line."""

import logging
import logging.config
import re
import secrets
import sys
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

_log = logging.getLogger("pacpredict.serving")

Log = Literal["text", "json"]

_OWN_FIELDS = "pacpredict"
# An id that a proxy gave, to find a request in its logs and in these; anything else might be anything.
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class AsJson(logging.Formatter):
    """Writes the time, the level, the text, and what the server knows of a request."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": time,
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= getattr(record, _OWN_FIELDS, {})
        return orjson.dumps(line).decode()


def begin_log(form: Log) -> None:
    """Let all that this process says from now on have one form, also what libraries warn of."""
    logging.config.dictConfig(logging_config(form))
    logging.captureWarnings(form == "json")


def announce(form: Log, level: int, text: str) -> None:
    """Say what an operator waits for: in a terminal as every command does, and otherwise as a line of the log."""
    if form == "text":
        sys.stderr.write(f"pacpredict: {text}\n")
    else:
        _log.log(level, text)


def logging_config(form: Log) -> dict[str, Any]:
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "%(asctime)s %(levelname)s %(message)s"},
            "json": {"()": f"{AsJson.__module__}.{AsJson.__name__}"},
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form, "stream": "ext://sys.stderr"}
        },
        "loggers": {
            "pacpredict.serving": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
            "pacpredict": {"handlers": ["stderr"], "level": "WARNING"},
            "py.warnings": {"handlers": ["stderr"], "level": "WARNING"},
            # Of the HTTP server only what went wrong.
            "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        },
    }


def fields(**values: Any) -> dict[str, Any]:
    """Return what a line has beside its text, where lines are JSON."""
    return {_OWN_FIELDS: values}


def request_id(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the id that a request came with, or a new one."""
    given = next((value for name, value in headers if name == b"x-request-id"), b"")
    return given.decode() if _ID.fullmatch(given) else secrets.token_hex(8)
