"""Mechanisms that lie on purpose: what a self-test must notice, and by which its power is measured."""
