"""Tools with known answers, and questions that it takes one or several calls to answer."""
