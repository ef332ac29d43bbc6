"""A tokenizer seen from outside: `trace` shows a stream step by step, `check` compares it with its own library, `compare` with
another one."""

from .against import Comparison, Disagreement, compare
from .certificate import Certificate, Difference
from .check import check
from .check_encode import EncodeCertificate, EncodeDifference, check_encode
from .drift_report import DriftReport, StoredConversation, drift_report
from .hostile import hostile_ids
from .trace import Deviation, Summary, TraceRow, summary, trace

__all__ = [
    "Certificate",
    "Comparison",
    "Deviation",
    "Difference",
    "Disagreement",
    "DriftReport",
    "EncodeCertificate",
    "EncodeDifference",
    "StoredConversation",
    "Summary",
    "TraceRow",
    "check",
    "check_encode",
    "compare",
    "drift_report",
    "hostile_ids",
    "summary",
    "trace",
]
