"""The form of a plan, its preview, and starting a run from it, without widgets."""
