CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- The body comes last, so that reading the rest does not read it.
CREATE TABLE message (
    seq INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    ordering_key TEXT,
    id TEXT NOT NULL,
    content_type TEXT,
    headers BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- A table of its own, so that counting a delivery does not rewrite the message.
-- until: when the lease lapses or the delay ends, in milliseconds since the epoch; length: how long it was.
CREATE TABLE delivery (
    seq INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    first_received_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    length INTEGER NOT NULL
) STRICT;

CREATE TABLE recent (
    queue INTEGER NOT NULL,
    deduplication_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, deduplication_id)
) STRICT, WITHOUT ROWID;
