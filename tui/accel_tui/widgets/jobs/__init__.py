"""Widgets of the screens of jobs: forms of options, and what draws results; commands print the plots, too."""
