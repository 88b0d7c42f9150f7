"""Votes into the store, those of the same moment together."""

from service.domain.judging import Vote
from service.lifecycle.batch_writer import BatchWriter
from service.store import votes
from service.store.blobs import BlobStore
from service.store.database import Database
from service.store.votes import NewVote


class VoteWriter(BatchWriter[NewVote, Vote]):
    """See :class:`BatchWriter`: of one vote the one that was written first stands, and is returned."""

    def __init__(self, db: Database, blobs: BlobStore, database_patience_s: float = 600.0) -> None:
        super().__init__(db, blobs, votes.put, database_patience_s)
