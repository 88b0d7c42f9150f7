"""Images, speech, video and transcripts through gateway services: for tools of our own loop, and as ``ws-media``."""
