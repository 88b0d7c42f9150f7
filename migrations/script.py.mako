"""${message}.

Expand first, contract in a later version: versions N and N−1 of the service run side by side (CONTRACTS 7).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
