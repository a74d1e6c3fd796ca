"""The OpenAI chat protocol: requests, streams, refusals and their meaning. Pure but for `transport` and `exchange`; entered by `llm.langchain`."""
