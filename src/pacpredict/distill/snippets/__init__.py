"""Programs that are put beside a student as predict.py. They use the libraries of the models, never this package."""
