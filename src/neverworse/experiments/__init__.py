"""The experiments of the paper, beside what was published."""

from neverworse.experiments._reproduction import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
