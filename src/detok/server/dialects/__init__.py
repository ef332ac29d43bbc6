"""The same chats in the shapes of other APIs: OpenAI's Responses and Anthropic's Messages. Nothing below a shape is theirs."""
