-- Version 14: checksums of what is read whole at a start, so that a byte that changed in it is noticed.

ALTER TABLE kept ADD COLUMN checksum INTEGER;   -- of name and value; NULL: written by an earlier version
ALTER TABLE facts ADD COLUMN checksum INTEGER;
ALTER TABLE noted ADD COLUMN checksum INTEGER;
