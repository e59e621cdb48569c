"""Durable ledgers."""
