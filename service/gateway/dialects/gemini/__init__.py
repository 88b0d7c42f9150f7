"""Gemini's generateContent and streamGenerateContent."""
