import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Tests run beside others: threads that wait for each other would take most of the time."""
    torch.set_num_threads(1)
