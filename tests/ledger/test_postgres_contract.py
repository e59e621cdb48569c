"""The PostgreSQL ledger keeps the contract of all ledgers."""

import pytest
from ledger_contract import LedgerContract
from small_deployment import KEY

from pacpredict.ledger.postgres import PostgresLedger


class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, url):
        with PostgresLedger(url, key=KEY) as ledger:
            yield ledger
