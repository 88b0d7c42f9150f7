"""Our own loop on a screen: pictures in, mouse and keyboard out, in the model's own vocabulary."""
