"""What is proved about a candidate against a baseline, with a bound of all rounding errors."""
