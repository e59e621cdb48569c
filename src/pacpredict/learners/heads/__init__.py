"""Linear heads on frozen features: all models of a block are trained together, each on its own subset alone."""
