"""Operation ``image_import``: an image that a client brought is looked at, kept, and loaded by hosts."""
