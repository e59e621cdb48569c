"""What a privacy officer wants to know of a deployment, on two printed pages."""
