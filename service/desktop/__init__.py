"""The desktop of a sandbox from the host's side: its action server's client, providers' vocabularies, the viewer's filter."""
