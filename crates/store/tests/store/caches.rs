//! Caches may be missing, behind, damaged or foreign: results stay right.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anchorite_core::Embedding;
use anchorite_store::{CacheSettings, Disk, Hit, KnowledgeBase, Refreshed, Snapshot, Storage, StoreError, Writer};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use tempfile::{TempDir, tempdir};

use crate::support::{add, delete, document, eager, embed, invented, model, snapshot, word, writer};

fn refresh(writer: &mut Writer) -> (Refreshed, Refreshed) {
    let refreshed = writer.refresh_caches(&mut |_, _| {}).expect("refreshed");
    (refreshed.ann, refreshed.bm25)
}

/// 400 chunks in caches, 20 newer, 40 removed.
fn mixed(seed: u64) -> TempDir {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    let documents: Vec<_> = (0..20).map(|i| invented(&format!("d{i}"), seed + i, 20)).collect();
    add(&mut writer, &documents);
    assert_eq!(refresh(&mut writer), (Refreshed::Built, Refreshed::Built));
    add(&mut writer, &[invented("new", seed + 100, 20)]);
    delete(&mut writer, "d3");
    delete(&mut writer, "d9");
    folder
}

/// What a fixed set of questions finds: meaning, words, and the statistics' independence of the caches' presence.
fn answers(snapshot: &Snapshot) -> (Vec<Vec<Hit>>, Vec<Vec<i64>>) {
    let meaning = (0..6).map(|i| {
        let query = embed(&format!("{} {}", word(i), word(i * 5 + 1)));
        snapshot.dense(&query, 8).expect("found")
    });
    let words = (0..6).map(|i| {
        let mut chunks: Vec<i64> = (snapshot.bm25(&format!("{} {}", word(i), word(i + 7)), 1_000).expect("found"))
            .iter()
            .map(|hit| hit.chunk)
            .collect();
        chunks.sort_unstable();
        chunks
    });
    (meaning.collect(), words.collect())
}

/// The same questions without any cache.
fn exact_answers(folder: &Path) -> (Vec<Vec<Hit>>, Vec<Vec<i64>>) {
    let copy = tempdir().expect("folder");
    for name in ["anchorite.db", "anchorite.db-wal"] {
        let _ = fs::copy(folder.join(name), copy.path().join(name));
    }
    answers(&snapshot(copy.path()))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for kind in ["ann", "bm25"] {
        for generation in fs::read_dir(folder.join(kind)).expect("cache") {
            let generation = generation.expect("entry").path();
            found.extend(fs::read_dir(&generation).expect("cache").map(|file| file.expect("entry").path()));
        }
    }
    found.sort();
    found
}

#[test]
fn caches_and_exact_search_agree() {
    let folder = mixed(1);
    assert_eq!(answers(&snapshot(folder.path())), exact_answers(folder.path()));
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    assert_eq!(refresh(&mut writer), (Refreshed::Extended, Refreshed::Built));
    assert_eq!(answers(&snapshot(folder.path())), exact_answers(folder.path()));
    assert_eq!(refresh(&mut writer), (Refreshed::Kept, Refreshed::Kept));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn f09_a_damaged_cache_is_noticed_and_built_again(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        kind in 0..5,
        bit in 0u8..8,
    ) {
        let folder = mixed(2);
        let expected = exact_answers(folder.path());
        let files = files(folder.path());
        let path = &files[file.index(files.len())];
        let mut bytes = fs::read(path).expect("read");
        let at = at.index(bytes.len());
        match kind {
            0 => bytes[at] ^= 1 << bit,
            1 => bytes.truncate(at),
            2 => bytes.push(bit),
            3 => bytes.fill(bit),
            _ => {}
        }
        fs::write(path, &bytes).expect("written");
        if kind == 4 {
            fs::remove_file(path).expect("removed");
        }
        prop_assert_eq!(&answers(&snapshot(folder.path())), &expected);

        let calm = CacheSettings { newer_chunks: 1_000, ..eager() };
        let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(calm));
        let refreshed = refresh(&mut writer);
        prop_assert!(refreshed.0 == Refreshed::Built || refreshed.1 == Refreshed::Built);
        prop_assert!(refreshed.0 == Refreshed::Kept || refreshed.1 == Refreshed::Kept, "the whole one is kept");
        prop_assert_eq!(&answers(&snapshot(folder.path())), &expected);
        prop_assert_eq!(refresh(&mut writer), (Refreshed::Kept, Refreshed::Kept));
    }
}

#[test]
fn f09_caches_of_another_knowledge_base_are_not_used() {
    let (mine, other) = (mixed(3), mixed(50));
    let expected = exact_answers(mine.path());
    for kind in ["ann", "bm25"] {
        let (to, from) = (mine.path().join(kind), other.path().join(kind));
        fs::remove_dir_all(&to).expect("removed");
        fs::rename(from, to).expect("moved");
    }
    assert_eq!(answers(&snapshot(mine.path())), expected);
    let calm = CacheSettings { newer_chunks: 1_000, ..eager() };
    let mut writer = writer(&KnowledgeBase::at(mine.path()).with_settings(calm));
    assert_eq!(refresh(&mut writer), (Refreshed::Built, Refreshed::Built));
    assert_eq!(answers(&snapshot(mine.path())), expected);
}

#[test]
fn f09_a_folder_without_caches_answers_and_is_repaired() {
    let folder = mixed(4);
    let expected = exact_answers(folder.path());
    fs::remove_dir_all(folder.path().join("ann")).expect("removed");
    fs::remove_dir_all(folder.path().join("bm25")).expect("removed");
    fs::write(folder.path().join("ann"), "a file in place of a folder").expect("written");
    assert_eq!(answers(&snapshot(folder.path())), expected);
    fs::remove_file(folder.path().join("ann")).expect("removed");
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    assert_eq!(refresh(&mut writer), (Refreshed::Built, Refreshed::Built));
    assert_eq!(answers(&snapshot(folder.path())), expected);
}

#[test]
fn refreshing_keeps_one_generation_and_clears_what_was_left() {
    let folder = mixed(5);
    for leftover in ["ann/new", "bm25/new", "ann/77"] {
        fs::create_dir_all(folder.path().join(leftover)).expect("folder");
        fs::write(folder.path().join(leftover).join("half"), "half").expect("written");
    }
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    refresh(&mut writer);
    for kind in ["ann", "bm25"] {
        let names: Vec<OsString> = (fs::read_dir(folder.path().join(kind)).expect("cache"))
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        assert_eq!(names, ["4"], "{kind}");
    }
}

#[test]
fn caches_are_built_when_they_are_worth_it() {
    let folder = tempdir().expect("folder");
    let settings = CacheSettings {
        exact_below: 100,
        newer_chunks: 30,
        newer_fraction: 0.1,
        removed_fraction: 0.2,
        ..CacheSettings::default()
    };
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(settings));
    add(&mut writer, &[invented("a", 1, 99)]);
    assert_eq!(refresh(&mut writer), (Refreshed::NotNeeded, Refreshed::NotNeeded));
    assert!(!folder.path().join("ann").exists());
    add(&mut writer, &[invented("b", 2, 101)]);
    assert_eq!(refresh(&mut writer), (Refreshed::Built, Refreshed::Built));
    add(&mut writer, &[invented("c", 3, 30)]);
    assert_eq!(refresh(&mut writer), (Refreshed::Kept, Refreshed::Kept));
    add(&mut writer, &[invented("d", 4, 5)]);
    assert_eq!(refresh(&mut writer), (Refreshed::Extended, Refreshed::Built));
    let mut told = Vec::new();
    delete(&mut writer, "b");
    writer.refresh_caches(&mut |done, total| told.push((done, total))).expect("refreshed");
    // Vectors come by the thousand, texts one by one.
    assert_eq!(told.len(), 1 + 134);
    assert!(told.is_sorted() && told.iter().all(|&(_, total)| total == 2 * 134));
    assert_eq!(told.last(), Some(&(268, 268)));
    let caches = snapshot(folder.path()).stats().expect("stats").caches;
    assert!(caches.iter().all(|cache| (cache.entries, cache.removed, cache.newer) == (134, 0, 0)), "{caches:?}");
    delete(&mut writer, "a");
    assert_eq!(refresh(&mut writer), (Refreshed::NotNeeded, Refreshed::NotNeeded));
    assert!(snapshot(folder.path()).stats().expect("stats").caches.is_empty());
}

#[test]
fn f33_chunks_that_came_and_went_between_two_refreshes_take_no_places() {
    let folder = tempdir().expect("folder");
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    add(&mut writer, &[invented("a", 1, 60)]);
    refresh(&mut writer);
    for round in 0..20 {
        add(&mut writer, &[invented("guest", 100 + round, 60)]);
        delete(&mut writer, "guest");
    }
    add(&mut writer, &[invented("b", 2, 60)]);
    assert_eq!(refresh(&mut writer), (Refreshed::Extended, Refreshed::Built));
    let snapshot = snapshot(folder.path());
    assert!(snapshot.stats().expect("stats").caches.iter().all(|cache| (cache.entries, cache.removed) == (120, 0)));
    let query = embed("river castle");
    for k in [1, 5, 20, 119, 500] {
        assert_eq!(snapshot.dense(&query, k).expect("found"), snapshot.dense_exact(&query, k).expect("found"), "{k}");
    }
}

#[test]
fn without_room_in_memory_vectors_are_read_from_the_database() {
    let folder = mixed(6);
    let expected = answers(&snapshot(folder.path()));
    let tight = CacheSettings { vectors_in_memory: 5, ..eager() };
    let place = KnowledgeBase::at(folder.path()).with_settings(tight);
    assert_eq!(answers(&place.snapshot().expect("snapshot")), expected);
    fs::remove_dir_all(folder.path().join("ann")).expect("removed");
    assert_eq!(answers(&place.snapshot().expect("snapshot")), expected);
}

/// Fails from the `left`-th operation that changes something.
#[derive(Debug)]
struct Failing {
    left: AtomicUsize,
    kind: io::ErrorKind,
}

impl Failing {
    fn step(&self) -> io::Result<()> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| io::Error::from(self.kind))
    }
}

impl Storage for Failing {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Disk.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.step() {
            Disk.write(path, &bytes[..bytes.len() / 2])?;
            return Err(error);
        }
        Disk.write(path, bytes)
    }
    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.sync_file(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.sync_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        Disk.rename(from, to)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.create_dir_all(path)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        Disk.list(path)
    }
}

#[test]
fn f04_wherever_the_disk_is_full_a_refresh_fails_cleanly_and_the_old_state_serves() {
    let folder = mixed(7);
    let expected = exact_answers(folder.path());
    let mut failures = 0;
    for allowed in 1.. {
        let storage = Arc::new(Failing { left: AtomicUsize::new(allowed), kind: io::ErrorKind::StorageFull });
        let place = KnowledgeBase::at(folder.path()).with_settings(eager()).with_storage(storage);
        let mut writer = writer(&place);
        let result = writer.refresh_caches(&mut |_, _| {});
        drop(writer);
        assert_eq!(answers(&snapshot(folder.path())), expected, "after {allowed} operations");
        match result {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, StoreError::StorageFull { .. }), "{error}"),
        }
        failures += 1;
    }
    assert!(failures > 8, "only {failures} places failed");
    let mut writer = writer(&KnowledgeBase::at(folder.path()).with_settings(eager()));
    refresh(&mut writer);
    assert_eq!(answers(&snapshot(folder.path())), expected);
}

const CLUSTERED_DIM: usize = 64;

fn clustered(count: usize, random: &mut StdRng) -> Vec<Embedding> {
    let mut gaussian = |scale: f32| -> Vec<f32> {
        (0..CLUSTERED_DIM).map(|_| (0..6).map(|_| random.random_range(-scale..scale)).sum()).collect()
    };
    let centres: Vec<Vec<f32>> = (0..50).map(|_| gaussian(1.0)).collect();
    (0..count)
        .map(|i| {
            let noise = gaussian(0.6);
            let sum = centres[i % centres.len()].iter().zip(noise).map(|(centre, noise)| centre + noise).collect();
            Embedding::new(sum).expect("finite")
        })
        .collect()
}

fn recall(snapshot: &Snapshot, queries: &[Embedding]) -> f64 {
    let mut found = 0;
    for query in queries {
        let exact = snapshot.dense_exact(query, 10).expect("found");
        let hits = snapshot.dense(query, 10).expect("found");
        assert_eq!(hits.len(), 10);
        found += hits.iter().filter(|hit| exact.contains(hit)).count();
    }
    found as f64 / (10 * queries.len()) as f64
}

#[test]
fn f33_recall_against_exact_search_before_and_after_deleting_half() {
    let mut random = StdRng::seed_from_u64(11);
    let vectors = clustered(5_000, &mut random);
    let queries = clustered(100, &mut random);
    let folder = tempdir().expect("folder");
    let settings = CacheSettings { removed_fraction: 0.9, newer_chunks: 500, ..CacheSettings::default() };
    let place = KnowledgeBase::at(folder.path()).with_settings(settings);
    let mut writer = place.create_or_open_writer(&model(), CLUSTERED_DIM).expect("writer");
    let put = |writer: &mut Writer, name: &str, vectors: &[Embedding]| {
        let mut batch = writer.begin("vectors").expect("begun");
        for (i, vector) in vectors.iter().enumerate() {
            let text = document(&format!("{name}{i}"), "", &format!("{name} {i}"));
            let chunk = anchorite_core::Chunk { ordinal: 0, start: 0, end: text.text.len(), text: text.text.clone() };
            batch.add(&text, &[(chunk, vector.clone())]).expect("added");
        }
        batch.commit().expect("committed");
    };
    put(&mut writer, "v", &vectors);
    assert_eq!(refresh(&mut writer).0, Refreshed::Built);
    let whole = recall(&snapshot(folder.path()), &queries);
    assert!(whole >= 0.95, "recall {whole}");

    let mut batch = writer.begin("half").expect("begun");
    for i in (0..5_000).filter(|i| i % 2 == 0) {
        batch.delete_source(&format!("v{i}")).expect("deleted");
    }
    batch.commit().expect("committed");
    assert_eq!(refresh(&mut writer).0, Refreshed::Kept);
    let half = recall(&snapshot(folder.path()), &queries);
    assert!(half >= 0.95, "recall {half} with half the index removed");

    // The same content again, under the graph's tombstones.
    put(&mut writer, "again", &vectors[..1_000]);
    assert_eq!(refresh(&mut writer).0, Refreshed::Extended);
    let again = recall(&snapshot(folder.path()), &queries);
    assert!(again >= 0.95, "recall {again} after adding again");
    assert_eq!(snapshot(folder.path()).stats().expect("stats").caches[0].removed, 2_500);
}

fn mapped() -> CacheSettings {
    CacheSettings { mapped_from: 0, ..eager() }
}

#[test]
fn mapped_caches_answer_as_those_that_are_read() {
    let folder = mixed(5);
    let read = answers(&snapshot(folder.path()));
    let opened = KnowledgeBase::at(folder.path()).with_settings(mapped()).snapshot().expect("opens");
    assert_eq!(answers(&opened), read);
    // Removing what is mapped takes nothing from who holds it.
    drop(writer(&KnowledgeBase::at(folder.path())));
    for kind in ["ann", "bm25"] {
        fs::remove_dir_all(folder.path().join(kind)).expect("removed");
    }
    assert_eq!(answers(&opened), read);
}

#[test]
fn f09_a_changed_or_copied_file_is_not_mapped_but_read_and_checked() {
    let folder = mixed(6);
    let right = answers(&snapshot(folder.path()));
    let place = KnowledgeBase::at(folder.path()).with_settings(mapped());
    for file in files(folder.path()) {
        let whole = fs::read(&file).expect("read");
        if whole.is_empty() {
            continue;
        }
        let mut spoilt = whole.clone();
        let middle = spoilt.len() / 2;
        spoilt[middle] ^= 0x55;
        fs::write(&file, &spoilt).expect("spoilt");
        assert_eq!(answers(&place.snapshot().expect("opens")), right, "{}", file.display());
        // The right bytes again, in a file that is another: read, since nobody knows where it is from.
        fs::write(&file, &whole).expect("mended");
        assert_eq!(answers(&place.snapshot().expect("opens")), right, "{}", file.display());
    }
    let mut open = writer(&place);
    let refreshed = open.refresh_caches(&mut |_, _| ()).expect("refreshed");
    assert_ne!((refreshed.ann, refreshed.bm25), (Refreshed::NotNeeded, Refreshed::NotNeeded));
}

/// Whoever made the knowledge base could also write the hash: the structure is walked before a file is trusted for good.
#[test]
fn f10_a_hostile_file_with_a_right_hash_is_not_kept_and_so_never_mapped() {
    let folder = mixed(7);
    let right = answers(&snapshot(folder.path()));
    let file = files(folder.path()).into_iter().find(|file| file.ends_with("index.usearch")).expect("the graph");
    let mut bytes = fs::read(&file).expect("read");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
    let entry = 8 + number(0) * number(4) + 64 + 8 + 16 + 8;
    bytes[entry..entry + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    fs::write(&file, &bytes).expect("written");
    let mut hash = Sha256::new();
    for part in [&b"index.usearch"[..], &bytes] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let database = Connection::open(folder.path().join("anchorite.db")).expect("opens");
    database.execute("UPDATE caches SET sha256 = ?1 WHERE kind = 'ann'", [hash]).expect("forged");
    drop(database);
    // So lazy that nothing but damage makes it build.
    let lazy = CacheSettings { newer_chunks: 10_000, removed_fraction: 1.0, ..mapped() };
    let place = KnowledgeBase::at(folder.path()).with_settings(lazy);
    assert_eq!(answers(&place.snapshot().expect("opens")), right);
    assert_eq!(refresh(&mut writer(&place)).0, Refreshed::Built);
    assert_eq!(answers(&place.snapshot().expect("opens")).1, right.1);
}
