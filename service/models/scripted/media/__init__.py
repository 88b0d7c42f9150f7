"""Back ends of media services in OpenAI's shapes: real pictures, recordings and films, a function of what was asked."""
