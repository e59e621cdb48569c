"""The directory that a fit leaves: how it is made, checked and read."""
