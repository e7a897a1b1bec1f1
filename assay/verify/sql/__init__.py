"""SQL queries, judged by what they return."""
