"""The SQLite ledger keeps the contract of all ledgers."""

import pytest
from ledger_contract import LedgerContract
from small_deployment import KEY

from pacpredict.ledger.sqlite import SqliteLedger


class TestSqliteLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path):
        with SqliteLedger(tmp_path / "ledger.sqlite", key=KEY) as ledger:
            yield ledger
