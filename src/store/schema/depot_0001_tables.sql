-- The tables of a depot's file (store.h), once: version 1. A later version gets a file of its own, depot_NNNN_*.sql; each runs in one
-- transaction and ends by naming its version.
--
-- Values of entry may be long: a table WITHOUT ROWID would send them to pages of their own (see README.md). Its keys are in an index.
CREATE TABLE meta (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE entry (text BLOB NOT NULL UNIQUE, v BLOB NOT NULL);
CREATE TABLE space (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE alias (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
-- The number of the last commit.
CREATE TABLE mark (id INTEGER PRIMARY KEY CHECK (id = 1), number INT NOT NULL);
PRAGMA application_id = 0x48464450;
PRAGMA user_version = 1;
