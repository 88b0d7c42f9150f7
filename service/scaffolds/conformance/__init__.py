"""What every scaffold has to do right, whatever its program: cases against a scripted provider, and how they are judged."""
