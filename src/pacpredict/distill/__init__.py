"""Students: models trained on private labels alone, which may be published with the guarantee of the labels."""
