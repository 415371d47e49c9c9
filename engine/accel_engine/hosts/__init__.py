"""Other machines, which OpenSSH reaches: their runs are mirrored here, and what is asked of a run is done there.

Nothing listens anywhere. ``accel-tui remote`` answers on a host, over the standard input and output of ``ssh``, and
ends with the connection.
"""
