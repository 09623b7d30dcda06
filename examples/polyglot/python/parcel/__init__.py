"""Quotes for parcels: what a delivery costs, and why."""
