-- Version 3: vectors of embedded texts, so that a text is embedded once.

CREATE TABLE vectors (
    key TEXT PRIMARY KEY,               -- hex SHA-256 of model and text
    used_ns INTEGER NOT NULL,           -- when it last served
    vector BLOB NOT NULL                -- float32, little-endian, of length 1
);
CREATE INDEX vectors_by_use ON vectors (used_ns);
