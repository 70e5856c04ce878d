"""Data: from files to rows of named values, without torch."""

from __future__ import annotations

from recurra.data.files import extension, lines
from recurra.data.formats import Reader, Row, Value, rows

__all__ = ["Reader", "Row", "Value", "extension", "lines", "rows"]
