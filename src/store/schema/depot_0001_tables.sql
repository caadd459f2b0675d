-- The tables of a depot's file (store.h), once: version 1. A later version gets a file of its own, depot_NNNN_*.sql; each runs in one
-- transaction and ends by naming its version.
--
-- A row of entry is two here: its key with a number in entry_key, and the value under that number. So a value of any length is with others
-- on pages that are full, which it would not be in a table WITHOUT ROWID, and a key is there once, which it would not be with an index (see README.md).
CREATE TABLE meta (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE entry_key (text BLOB NOT NULL PRIMARY KEY, id INT NOT NULL) WITHOUT ROWID;
CREATE TABLE entry (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE space (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE alias (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
-- The number of the last commit.
CREATE TABLE mark (id INTEGER PRIMARY KEY CHECK (id = 1), number INT NOT NULL);
PRAGMA application_id = 0x48464450;
PRAGMA user_version = 1;
