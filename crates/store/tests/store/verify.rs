//! Forty ways in which a knowledge base can be damaged, each of them found; and what can be mended, mended.

use std::path::{Path, PathBuf};

use anchorite_store::{Finding, FindingKind, KnowledgeBase, Mode};
use rusqlite::Connection;

use crate::support::{add, delete, document, eager, embed, invented, writer};

/// A knowledge base with a history: documents added, changed, noted twice, deleted; and both caches.
fn made(folder: &Path) -> KnowledgeBase {
    let place = KnowledgeBase::at(folder).with_settings(eager());
    let mut writer = writer(&place);
    let documents: Vec<_> = (0..30).map(|n| invented(&format!("{n}.md"), n, 3 + n as usize % 5)).collect();
    add(&mut writer, &documents);
    let mut twin = documents[4].clone();
    twin.source = "twin.md".into();
    add(&mut writer, &[twin, invented("7.md", 700, 4), document("last.md", "Last", "The anchor holds. It is deep. ")]);
    delete(&mut writer, "9.md");
    writer.refresh_caches(&mut |_, _| ()).expect("caches");
    // One more removal that the caches do not know of.
    delete(&mut writer, "11.md");
    place
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("reads") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copies");
        }
    }
}

fn sql(statement: &'static str) -> Box<dyn Fn(&Path)> {
    Box::new(move |folder| {
        let connection = Connection::open(folder.join("anchorite.db")).expect("opens");
        connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;").expect("set");
        if statement.contains(" audit ") {
            let triggers = "DROP TRIGGER audit_is_not_changed; DROP TRIGGER audit_is_not_removed;";
            connection.execute_batch(triggers).expect("dropped");
        }
        let before = connection.total_changes();
        connection.execute_batch(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert!(connection.total_changes() > before, "{statement} changed nothing");
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("moved");
    })
}

fn cache_file(folder: &Path, kind: &str) -> PathBuf {
    let generation = std::fs::read_dir(folder.join(kind)).expect("reads").next().expect("one").expect("entry").path();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(generation).expect("reads").map(|entry| entry.expect("an entry").path()).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.metadata().expect("metadata").len()));
    files.swap_remove(0)
}

fn change(file: impl Fn(&Path) -> PathBuf + 'static, change: impl Fn(&mut Vec<u8>) + 'static) -> Box<dyn Fn(&Path)> {
    Box::new(move |folder| {
        let path = file(folder);
        let mut bytes = std::fs::read(&path).expect("reads");
        change(&mut bytes);
        std::fs::write(&path, bytes).expect("writes");
    })
}

/// Puts a byte in place of the first of a text that stands somewhere in the database.
fn within(text: &'static str) -> Box<dyn Fn(&Path)> {
    change(
        |folder| folder.join("anchorite.db"),
        move |bytes| {
            let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).expect("the text");
            bytes[at] ^= 1;
        },
    )
}

fn verify(folder: &Path) -> Vec<Finding> {
    KnowledgeBase::at(folder).with_settings(eager()).snapshot().expect("opens").verify().findings
}

type Damage = (&'static str, FindingKind, Box<dyn Fn(&Path)>);

fn damages() -> Vec<Damage> {
    use FindingKind::*;
    let ann = |folder: &Path| cache_file(folder, "ann");
    let bm25 = |folder: &Path| cache_file(folder, "bm25");
    vec![
        ("a text longer by a letter", Document, sql("UPDATE documents SET text = text || 'x' WHERE id = 3")),
        ("another title", Document, sql("UPDATE documents SET title = 'other' WHERE id = 3")),
        ("another hash", Document, sql("UPDATE documents SET hash = 'ff' || substr(hash, 3) WHERE id = 3")),
        ("a letter of a text, in the file", Document, within("The anchor holds")),
        ("no source", Document, sql("DELETE FROM sources WHERE document = 6")),
        ("a source of another document", Audit, sql("UPDATE sources SET document = 1 WHERE source = '3.md'")),
        ("a source of no document", Database, sql("UPDATE sources SET document = 999 WHERE source = '3.md'")),
        ("a source of no generation", Database, sql("UPDATE sources SET generation = 99 WHERE source = '3.md'")),
        ("metadata cut short", Source, sql("UPDATE sources SET metadata = '{' WHERE source = '3.md'")),
        ("metadata that is a list", Source, sql("UPDATE sources SET metadata = '[1]' WHERE source = '3.md'")),
        ("a source renamed", Audit, sql("UPDATE sources SET source = 'new.md' WHERE source = '3.md'")),
        (
            "all chunks of a document gone",
            Chunk,
            sql(
                "DELETE FROM vectors WHERE chunk IN (SELECT id FROM chunks WHERE document = 5); DELETE FROM chunks WHERE document = 5",
            ),
        ),
        ("a chunk gone", Chunk, sql("DELETE FROM vectors WHERE chunk = 2; DELETE FROM chunks WHERE id = 2")),
        ("a chunk gone, its vector left", Database, sql("DELETE FROM chunks WHERE id = 2")),
        (
            "a chunk that ends behind its text",
            Chunk,
            sql("UPDATE chunks SET end_byte = end_byte + 100000 WHERE id = 2"),
        ),
        ("a chunk that starts behind its end", Chunk, sql("UPDATE chunks SET start_byte = end_byte + 1 WHERE id = 2")),
        ("a chunk that starts before its text", Chunk, sql("UPDATE chunks SET start_byte = -1 WHERE id = 2")),
        ("an empty chunk", Chunk, sql("UPDATE chunks SET start_byte = end_byte WHERE id = 2")),
        ("a chunk with another number", Chunk, sql("UPDATE chunks SET ordinal = ordinal + 50 WHERE id = 2")),
        ("a chunk of another document", Chunk, sql("UPDATE chunks SET document = 12 WHERE id = 2")),
        ("an actor", Audit, sql("UPDATE audit SET actor = 'somebody else' WHERE id = 5")),
        ("the first line of the audit trail", Audit, sql("DELETE FROM audit WHERE id = 1")),
        ("a former text", History, sql("UPDATE past_documents SET text = text || 'x'")),
        ("former parts", History, sql("UPDATE past_documents SET chunks = '[[0, 0, 100000]]'")),
        ("former vectors", History, sql("UPDATE past_documents SET vectors = substr(vectors, 2)")),
        ("former documents gone", History, sql("DELETE FROM past_documents")),
        ("a past that ends before it begins", History, sql("UPDATE past_sources SET to_generation = 1")),
        ("a vector gone", Vector, sql("DELETE FROM vectors WHERE chunk = 2")),
        ("a vector of zeros", Vector, sql("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE chunk = 2")),
        ("a vector cut short", Vector, sql("UPDATE vectors SET vector = substr(vector, 1, 20) WHERE chunk = 2")),
        (
            "a vector that is no numbers",
            Vector,
            sql("UPDATE vectors SET vector = CAST(x'0000c07f' || substr(vector, 5) AS BLOB) WHERE chunk = 2"),
        ),
        (
            "a vector too long",
            Vector,
            sql("UPDATE vectors SET vector = CAST(x'00000041' || substr(vector, 5) AS BLOB) WHERE chunk = 2"),
        ),
        (
            "a vector of no chunk",
            Database,
            sql("INSERT INTO vectors SELECT 99999, vector FROM vectors WHERE chunk = 2"),
        ),
        ("a removed chunk that is there", History, sql("INSERT INTO tombstones VALUES (2, 1)")),
        ("a removal by a generation to come", History, sql("INSERT INTO tombstones VALUES (90000, 99)")),
        (
            "a count that is too high",
            History,
            sql("UPDATE generations SET documents_added = documents_added + 1 WHERE id = 1"),
        ),
        (
            "a count that is too low",
            History,
            sql("UPDATE generations SET chunks_added = chunks_added - 1 WHERE id = 1"),
        ),
        ("a generation gone", History, sql("DELETE FROM generations WHERE id = 3")),
        ("numbers given again", History, sql("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'chunks'")),
        ("an entry of the audit trail gone", Audit, sql("DELETE FROM audit WHERE source = '3.md'")),
        ("an entry with another content", Audit, sql("UPDATE audit SET hash = 'ff' WHERE source = '3.md'")),
        ("a source gone in silence", Audit, sql("DELETE FROM sources WHERE source = 'twin.md'")),
        ("another hash of a cache", Cache, sql("UPDATE caches SET sha256 = 'ff' WHERE kind = 'ann'")),
        ("a cache of the future", Cache, sql("UPDATE caches SET last_chunk = 99999 WHERE kind = 'bm25'")),
        ("a cache with another count", Cache, sql("UPDATE caches SET entries = entries + 1 WHERE kind = 'bm25'")),
        (
            "a bit of the graph",
            Cache,
            change(ann, |bytes| {
                let at = bytes.len() / 2;
                bytes[at] ^= 4;
            }),
        ),
        ("half of the graph", Cache, change(ann, |bytes| bytes.truncate(bytes.len() / 2))),
        (
            "a bit of the words",
            Cache,
            change(bm25, |bytes| {
                let at = bytes.len() / 3;
                bytes[at] ^= 1;
            }),
        ),
        (
            "a file of the words gone",
            Cache,
            Box::new(|folder| std::fs::remove_file(cache_file(folder, "bm25")).expect("removed")),
        ),
        (
            "a page of zeros",
            Database,
            change(|folder| folder.join("anchorite.db"), |bytes| bytes[5 * 8192..6 * 8192].fill(0)),
        ),
    ]
}

#[test]
fn m38_a_whole_knowledge_base_has_no_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = made(folder.path());
    let seen = place.snapshot().expect("opens").verify();
    assert_eq!(seen.findings, []);
    assert_eq!((seen.documents, seen.caches, seen.generation), (29, 2, 4));
    assert_eq!(seen.chunks, place.snapshot().expect("opens").stats().expect("stats").chunks);
    let empty = tempfile::tempdir().expect("a folder");
    let place = KnowledgeBase::at(empty.path());
    drop(writer(&place));
    assert_eq!(place.snapshot().expect("opens").verify().findings, []);
}

#[test]
fn m38_every_damage_is_found_and_named() {
    let original = tempfile::tempdir().expect("a folder");
    drop(made(original.path()));
    let damages = damages();
    assert!(damages.len() > 30);
    for (name, kind, damage) in damages {
        let folder = tempfile::tempdir().expect("a folder");
        let kb = folder.path().join("kb");
        copy(original.path(), &kb);
        damage(&kb);
        let findings = verify(&kb);
        assert!(findings.iter().any(|finding| finding.kind == kind), "{name}: {findings:?}");
    }
}

#[test]
fn m38_damaged_caches_are_built_again_and_nothing_else_is_touched() {
    let original = tempfile::tempdir().expect("a folder");
    drop(made(original.path()));
    let found = |folder: &Path| {
        let snapshot = KnowledgeBase::at(folder).with_settings(eager()).snapshot().expect("opens");
        let vector = embed("anchor bridge winter");
        let hits = snapshot.search("anchor bridge winter", Some(&vector), Mode::Hybrid, 20, 50).expect("searches");
        hits.into_iter().map(|passage| passage.chunk).collect::<Vec<_>>()
    };
    let whole = found(original.path());
    assert!(whole.len() > 10);
    for (name, kind, damage) in damages() {
        if kind != FindingKind::Cache {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let kb = folder.path().join("kb");
        copy(original.path(), &kb);
        damage(&kb);
        let place = KnowledgeBase::at(&kb).with_settings(eager());
        place.open_writer().expect("opens").repair_caches(&mut |_, _| ()).expect("repairs");
        assert_eq!(verify(&kb), [], "{name}");
        // Words of what was removed no longer count as frequent, so the last places may differ.
        assert_eq!(found(&kb)[..10], whole[..10], "{name}");
    }
}

#[test]
fn m38_many_findings_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    drop(made(folder.path()));
    sql("UPDATE vectors SET vector = zeroblob(length(vector))")(folder.path());
    let seen = KnowledgeBase::at(folder.path()).snapshot().expect("opens").verify();
    let vectors = seen.findings.iter().filter(|finding| finding.kind == FindingKind::Vector).count();
    assert_eq!(vectors as u64 + seen.more, seen.chunks);
    assert_eq!(vectors, 100);
}
