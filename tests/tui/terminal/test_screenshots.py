"""Where screenshots go, and what is said of them."""

from pathlib import Path

import pytest

from accel_tui.terminal import screenshots
from tui.stand_ins import StubApp, shows, until


async def test_a_screenshot_has_a_place_and_says_where(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = tmp_path / "Downloads"
    monkeypatch.setattr(screenshots, "user_downloads_path", lambda: downloads)
    monkeypatch.chdir(tmp_path)
    app = StubApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await shows(pilot, "Start")

        async def saved(path: Path | None = None) -> tuple[str, str]:
            app.clear_notifications()
            app.deliver_screenshot("shot.svg", path and str(path))
            await until(pilot, lambda: list(app._notifications), "the notification")
            (said,) = app._notifications
            return said.title, said.message

        assert await saved() == ("Screenshot saved", str(tmp_path / "shot.svg")), "there is no such folder"
        assert "</svg>" in (tmp_path / "shot.svg").read_text()
        downloads.mkdir()
        assert await saved() == ("Screenshot saved", str(downloads / "shot.svg"))
        title, message = await saved(tmp_path / "nowhere")
        assert title == "Screenshot not saved"
        assert "No such file or directory" in message
