#!/usr/bin/env bash
# Fails when api_schema/ is not what the code would write.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m service openapi --check
