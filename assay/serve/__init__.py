"""A server that speaks OpenAI's protocol in front of a model of ours."""
