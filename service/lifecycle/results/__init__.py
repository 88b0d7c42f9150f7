"""Result tables and reports: rows of the store become frames, frames figures."""
