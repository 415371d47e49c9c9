"""Records every ``fit`` of a script that ``accel-tui run`` has started; the script is not changed.

``startup/sitecustomize.py`` runs before the script. :mod:`.hook` waits for the import of Keras.
"""
