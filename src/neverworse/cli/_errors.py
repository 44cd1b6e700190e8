"""What a sub-command raises when it was asked for something impossible."""


class UsageError(Exception):
    """An argument that parses but makes no sense; the message says what would."""
