"""The wire formats that the scripted provider speaks."""
