"""Where programs find the screen: deskd, the agent's program and its tool calls all get the same."""

SCREEN_ENVIRONMENT = {
    "DISPLAY": ":1",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/tmp/run-user/bus",
    "XDG_RUNTIME_DIR": "/tmp/run-user",  # noqa: S108 - inside the sandbox
}
"""To be merged into the environment of surfaces with a screen."""
VNC_PORT = 5900
"""On 127.0.0.1 of the sandbox's empty namespace."""
