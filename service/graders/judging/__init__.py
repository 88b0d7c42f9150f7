"""What all methods with judges share: settings, prompts, the fence around what was delivered, orders, answers, panels."""
