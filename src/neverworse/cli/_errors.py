"""What a sub-command raises when it cannot do what it was asked for."""


class UsageError(Exception):
    """An argument that parses but makes no sense; the message says what would."""


class FailureError(Exception):
    """Something is missing or went wrong that the user can put right; the message says how."""
