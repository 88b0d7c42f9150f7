"""OpenAI's Responses, Chat Completions and embeddings, and all who speak like it."""
