"""From the columns of a table to features and labels: notation, plans, values, preparation."""
