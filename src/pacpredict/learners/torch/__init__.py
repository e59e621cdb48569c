"""Networks that are trained by PyTorch: how they look, how they are trained and stored, and how they vote.

Nothing outside of this folder imports PyTorch, and here only what trains or votes does: whoever lists learners or shows
an artifact does not wait for it.
"""
