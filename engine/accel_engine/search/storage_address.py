"""Addresses of a search's storage: the path of a journal file, or the URL of a database. Without Optuna."""

from pathlib import Path

from accel_engine.user_paths import user_path


def journal_path(storage: str) -> Path | None:
    """The path of a journal file; ``None`` for a database, whose address is a URL."""
    return None if "://" in storage else user_path(storage).absolute()


def absolute_storage(storage: str) -> str:
    """The address of a storage for any working directory."""
    return storage if not storage or "://" in storage else str(user_path(storage).absolute())


def shown_address(storage: str) -> str:
    """An address without the user, the password and the options of a URL, for messages and other machines."""
    if "://" not in storage:
        return storage
    scheme, _, rest = storage.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
