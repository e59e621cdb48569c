"""A ledger of the first version, as anybody makes it who can write to the database and has no key."""

import sqlite3

import numpy as np
from small_deployment import M

from pacpredict.ledger.rekey import _old_first_link, _old_link
from pacpredict.ledger.schema import _TABLES, SQLITE

ALL_TABLES = ("state", "records", "old_chains", "keys", "key_use", "schema_version")


def forge_unkeyed(path, n_records=0):
    """Put one in the place of a ledger: its identity, as many records, nothing spent, and a belief that is certain."""
    database = sqlite3.connect(path)
    about = database.execute("SELECT ledger, deployment, created, step, origin FROM state").fetchone()
    for table in ALL_TABLES:
        database.execute(f"DROP TABLE {table}")
    for statement in (
        "CREATE TABLE schema_version (version {integer} NOT NULL){table_options}",
        "INSERT INTO schema_version VALUES (1)",
        *_TABLES,
    ):
        database.execute(statement.format(**SQLITE._asdict()))
    ledger, deployment, created, step, origin = about
    link = _old_first_link(ledger, deployment)
    for number in range(1, n_records + 1):
        row = (number, None, None, None, 0, 0, 0, "2026-01-01T00:00:00+00:00", None, None)
        link = _old_link(link, row)
        database.execute(
            "INSERT INTO records (sequence, digest, id, client, label, charged_steps, spent_steps, time, question, "
            "noisy, chain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, link),
        )
    certain = np.log(np.where(np.arange(M) == 0, 1 - 1e-9, 1e-9 / (M - 1)))
    numbers = (n_records, 0, 0, step, origin, certain.astype("<f8").tobytes())
    database.execute(
        "INSERT INTO state VALUES (1, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?)",
        (ledger, deployment, created, link, *numbers),
    )
    database.commit()
    database.close()
