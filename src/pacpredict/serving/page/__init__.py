"""The page at `/`: what a deployment promises, what it has spent, and a way to try it, in any browser."""
