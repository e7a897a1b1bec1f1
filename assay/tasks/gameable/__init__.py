"""Tasks whose prompt says how they are graded, with a response that games the metric and an honest one."""
