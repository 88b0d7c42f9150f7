"""Where ``service.domain.cleaning`` was."""

from service.domain.cleaning import clean_json, clean_str, clean_text, encode_payload, is_clean

__all__ = ["clean_json", "clean_str", "clean_text", "encode_payload", "is_clean"]
