"""Whether what was delivered opens, is all there, is not empty and is of the type that it claims; nothing is read."""
