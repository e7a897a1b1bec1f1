"""Screens of a telephone: widget trees, gestures, apps of several pages, judged by the apps' data."""
