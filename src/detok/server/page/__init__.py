"""The page at ``/``: what happens inside, for people who look rather than read."""

from __future__ import annotations

from .routes import page_routes

__all__ = ["page_routes"]
