-- Blocks of runs that have ended, and a summary of each. The engine fills them from the rows of the runs (engine/blocks.c).
CREATE TABLE block (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE summary (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
PRAGMA user_version = 3;
