-- The tables of hf_store (store.h), once: version 1. A later version gets a file of its own, which changes what is here;
-- each runs in one transaction and ends by naming its version.
--
-- A key of one number is the rowid. history packs run and first event into it (sqlite/statement.c): its values are long, and
-- in a table WITHOUT ROWID a page would hold only a quarter of one and send the rest to a page of its own.
CREATE TABLE meta (text BLOB NOT NULL PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE run (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE history (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE name (text BLOB NOT NULL, run INT NOT NULL, v BLOB NOT NULL, PRIMARY KEY (text, run)) WITHOUT ROWID;
CREATE TABLE due (at INT NOT NULL, run INT NOT NULL, PRIMARY KEY (at, run)) WITHOUT ROWID;
CREATE TABLE task (queue BLOB NOT NULL, id INT NOT NULL, v BLOB NOT NULL, PRIMARY KEY (queue, id)) WITHOUT ROWID;
CREATE TABLE inbox (run INT NOT NULL, id INT NOT NULL, v BLOB NOT NULL, PRIMARY KEY (run, id)) WITHOUT ROWID;
-- The number of the last commit, when the journal does not tell.
CREATE TABLE mark (id INTEGER PRIMARY KEY CHECK (id = 1), number INT NOT NULL);
PRAGMA application_id = 0x48465354;
PRAGMA user_version = 1;
