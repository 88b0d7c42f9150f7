"""The program that runs in the room. Standard library, and Pillow where the image has it; no service around it."""
