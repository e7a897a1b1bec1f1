"""OpenEnv: environments behind a server that keeps a session a WebSocket."""
