"""From files to tables of PyArrow: formats, compression, words for missing values, memory."""
