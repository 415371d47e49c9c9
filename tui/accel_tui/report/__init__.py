"""Reports on runs: one HTML file with curves, plan, results, diagnostics, advice and environment."""
