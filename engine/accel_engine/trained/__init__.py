"""Opens trained runs, and stores what is measured of them."""
