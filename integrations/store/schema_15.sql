-- Version 15: what trends need of each verdict, beside it, so that none is parsed for them.

ALTER TABLE verdicts ADD COLUMN probability REAL;   -- sampling_probability of the verdict; NULL: it stands in it alone
ALTER TABLE verdicts ADD COLUMN version TEXT;       -- rubric_version, likewise
