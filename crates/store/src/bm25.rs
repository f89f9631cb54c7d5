//! The word index: tantivy with BM25 (Robertson and Zaragoza 2009).
//!
//! A search asks up to two indexes, the one on disk and one in memory over the chunks that came since, and scores both
//! with their common statistics: a new chunk gets the score it would get if there were one index. Chunks that were removed
//! since the index on disk was built are never returned; until it is built anew they still count in the statistics.
//!
//! The files are read into memory and verified before tantivy opens them, so it needs neither a writable folder (it would
//! create lock files) nor trust in what is on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, Lock, MmapDirectory, RamDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::indexer::NoMergePolicy;
use tantivy::query::{Bm25StatisticsProvider, BooleanQuery, BoostQuery, EnableScoring, Occur, Query, TermQuery};
use tantivy::schema::{FAST, Field, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, PreTokenizedString, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter,
    TextAnalyzer, Token, TokenizerManager,
};
use tantivy::{Directory, Index, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term};

use crate::language::Language;
use crate::ranking::{Hit, TopK};
use crate::storage::{FolderHash, Storage};

/// Words come stemmed; the name changes with what is done to them, so that an older index is not taken for one of these.
const TOKENIZER: &str = "anchorite_by_language";
const CHUNK: &str = "chunk";
/// Longer "words" are encoded data.
const WORD_BYTES: usize = 100;
/// A title is short, so the normalisation by length already weighs its words high. Over SciFact, half weight ranks better
/// than full (nDCG@10 0.686 against 0.671) or more.
const TITLE_WEIGHT: f32 = 0.5;
const WRITER_MEMORY: usize = 64 << 20;

#[derive(Clone, Copy)]
struct Fields {
    chunk: Field,
    language: Field,
    title: Field,
    body: Field,
}

fn schema() -> (Schema, Fields) {
    let text = TextOptions::default().set_indexing_options(
        TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(IndexRecordOption::WithFreqs),
    );
    let mut builder = Schema::builder();
    let chunk = builder.add_i64_field(CHUNK, FAST);
    let language = builder.add_text_field("language", STRING);
    let title = builder.add_text_field("title", text.clone());
    let body = builder.add_text_field("body", text);
    (builder.build(), Fields { chunk, language, title, body })
}

fn known_to_tantivy(language: Language) -> tantivy::tokenizer::Language {
    match language {
        Language::English => tantivy::tokenizer::Language::English,
        Language::German => tantivy::tokenizer::Language::German,
    }
}

/// Words in lower case, without accents, reduced to their stems, and without the small words of `left_out`.
fn analyzer(language: Language, left_out: &[Language]) -> TextAnalyzer {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(WORD_BYTES + 1))
        .filter(LowerCaser)
        .dynamic();
    let small_words = left_out.iter().filter_map(|&language| StopWordFilter::new(known_to_tantivy(language)));
    small_words
        .fold(words, |words, filter| words.filter_dynamic(filter))
        .filter_dynamic(AsciiFoldingFilter)
        .filter_dynamic(Stemmer::new(known_to_tantivy(language)))
        .build()
}

/// The stems of a text, as many for every language.
fn stems(language: Language, text: &str, left_out: &[Language]) -> Vec<Token> {
    let mut tokens = Vec::new();
    analyzer(language, left_out).token_stream(text).process(&mut |token| tokens.push(token.clone()));
    tokens
}

fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    // Never asked for words: documents come with theirs, and queries are taken apart here.
    manager.register(TOKENIZER, analyzer(Language::English, &[]));
    manager
}

fn document(fields: Fields, chunk: i64, title: &str, body: &str) -> TantivyDocument {
    let mut document = TantivyDocument::new();
    let language = Language::of(body);
    document.add_i64(fields.chunk, chunk);
    document.add_text(fields.language, language.name());
    for (field, text) in [(fields.title, title), (fields.body, body)] {
        let words = PreTokenizedString { text: String::new(), tokens: stems(language, text, &[]) };
        document.add_pre_tokenized_text(field, words);
    }
    document
}

/// An index that can be asked.
pub(crate) struct WordIndex {
    searcher: Searcher,
    fields: Fields,
}

/// An index in memory, being filled.
pub(crate) struct MemoryBuilder {
    writer: tantivy::SingleSegmentIndexWriter,
    fields: Fields,
}

impl MemoryBuilder {
    pub(crate) fn new() -> Result<Self, TantivyError> {
        let (schema, fields) = schema();
        let builder = Index::builder().schema(schema).tokenizers(tokenizers());
        Ok(Self { writer: builder.single_segment_index_writer(RamDirectory::create(), WRITER_MEMORY)?, fields })
    }

    pub(crate) fn add(&mut self, chunk: i64, title: &str, body: &str) -> Result<(), TantivyError> {
        self.writer.add_document(document(self.fields, chunk, title, body))
    }

    pub(crate) fn finish(self) -> Result<WordIndex, TantivyError> {
        WordIndex::over(&self.writer.finalize()?)
    }
}

/// An index on disk, being filled. Memory is bounded: finished parts are written out and merged at the end.
pub(crate) struct DiskBuilder {
    writer: IndexWriter,
    fields: Fields,
}

impl DiskBuilder {
    /// `folder` must exist and be empty.
    pub(crate) fn new(folder: &Path) -> Result<Self, TantivyError> {
        let (schema, fields) = schema();
        let index = Index::builder().schema(schema).tokenizers(tokenizers()).create_in_dir(folder)?;
        let writer: IndexWriter = index.writer_with_num_threads(1, WRITER_MEMORY)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Self { writer, fields })
    }

    pub(crate) fn add(&mut self, chunk: i64, title: &str, body: &str) -> Result<(), TantivyError> {
        self.writer.add_document(document(self.fields, chunk, title, body)).map(|_| ())
    }

    pub(crate) fn finish(mut self) -> Result<(), TantivyError> {
        self.writer.commit()?;
        let parts = self.writer.index().searchable_segment_ids()?;
        if parts.len() > 1 {
            self.writer.merge(&parts).wait()?;
        }
        self.writer.garbage_collect_files().wait()?;
        self.writer.wait_merging_threads()
    }
}

/// Removes what tantivy leaves beside an index, flushes the files and hashes them.
pub(crate) fn seal(storage: &dyn Storage, folder: &Path) -> std::io::Result<String> {
    let mut hash = FolderHash::new();
    for name in storage.list(folder)? {
        let path = folder.join(&name);
        let name = name.to_string_lossy();
        if name.ends_with(".lock") {
            storage.remove(&path)?;
            continue;
        }
        storage.sync_file(&path)?;
        hash.add(&name, &storage.read(&path)?);
    }
    Ok(hash.finish())
}

/// Reads an index's files, if they are those that were recorded.
pub(crate) fn read_verified(storage: &dyn Storage, folder: &Path, sha256: &str) -> Result<RamDirectory, String> {
    let directory = RamDirectory::create();
    let mut hash = FolderHash::new();
    for name in storage.list(folder).map_err(|error| error.to_string())? {
        let bytes = storage.read(&folder.join(&name)).map_err(|error| error.to_string())?;
        hash.add(&name.to_string_lossy(), &bytes);
        directory.atomic_write(Path::new(&name), &bytes).map_err(|error| error.to_string())?;
    }
    if hash.finish() == sha256 { Ok(directory) } else { Err("its bytes are not those that were written".to_owned()) }
}

/// Files that are mapped and never written: no lock is taken, so a read-only folder will do.
#[derive(Clone, Debug)]
pub(crate) struct MappedFiles(MmapDirectory);

/// Maps an index's files, which must be those that this machine wrote.
pub(crate) fn map(folder: &Path) -> Result<MappedFiles, String> {
    MmapDirectory::open(folder).map(MappedFiles).map_err(|error| error.to_string())
}

fn refused() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "an index that is being searched is not written")
}

impl Directory for MappedFiles {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        Err(DeleteError::IoError { io_error: Arc::new(refused()), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        Err(OpenWriteError::wrap_io_error(refused(), path.to_owned()))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }

    fn atomic_write(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Err(refused())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

impl WordIndex {
    /// Opens files that are known to be whole; `entries` chunks must be in them.
    pub(crate) fn open(directory: impl Into<Box<dyn Directory>>, entries: usize) -> Result<Self, String> {
        let mut index = Index::open(directory).map_err(|error| error.to_string())?;
        if index.schema() != schema().0 {
            return Err("it has other fields".to_owned());
        }
        index.set_tokenizers(tokenizers());
        let opened = Self::over(&index).map_err(|error| error.to_string())?;
        let found = opened.searcher.num_docs();
        if found == entries as u64 { Ok(opened) } else { Err(format!("it holds {found} chunks instead of {entries}")) }
    }

    fn over(index: &Index) -> Result<Self, TantivyError> {
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { searcher: reader.searcher(), fields: schema().1 })
    }
}

/// Statistics of several indexes as if they were one.
struct Together<'a>(&'a [&'a WordIndex]);

impl Together<'_> {
    fn sum(&self, part: impl Fn(&Searcher) -> tantivy::Result<u64>) -> tantivy::Result<u64> {
        self.0.iter().map(|index| part(&index.searcher)).sum()
    }
}

impl Bm25StatisticsProvider for Together<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.total_num_tokens(field))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.sum(Bm25StatisticsProvider::total_num_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.sum(|searcher| searcher.doc_freq(term))
    }
}

/// Any of the query's words, in title or text. The query is plain words: there is no syntax, and nothing in it is an error.
///
/// Small words are left out unless there are no others: a long question is full of them, and together they outweigh the
/// words that it is about.
///
/// A query is too short to tell its language by. Each word stands for its stems in all `languages` that there are texts
/// in; the stem of the wrong language is mostly the same, or in no text.
fn parse(query: &str, fields: Fields, languages: &[Language]) -> BooleanQuery {
    let read = |left_out: &[Language]| -> Vec<Vec<Token>> {
        languages.iter().map(|&language| stems(language, query, left_out)).collect()
    };
    let mut readings = read(languages);
    if readings.iter().all(Vec::is_empty) {
        readings = read(&[]);
    }
    let count = readings.iter().map(Vec::len).max().unwrap_or(0);
    let mut words: BTreeMap<&str, f32> = BTreeMap::new();
    for index in 0..count {
        let word: BTreeSet<&str> =
            readings.iter().filter_map(|tokens| tokens.get(index)).map(|t| t.text.as_str()).collect();
        for stem in word {
            *words.entry(stem).or_default() += 1.0;
        }
    }
    let clauses = words.into_iter().flat_map(|(word, times)| {
        [(fields.title, TITLE_WEIGHT), (fields.body, 1.0)].map(|(field, weight)| {
            let term = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
            let clause: Box<dyn Query> = Box::new(BoostQuery::new(Box::new(term), times * weight));
            (Occur::Should, clause)
        })
    });
    BooleanQuery::new(clauses.collect())
}

/// The best `k` chunks that `admits` lets through, over all `indexes`.
pub(crate) fn search(
    indexes: &[&WordIndex],
    query: &str,
    k: usize,
    admits: &dyn Fn(i64) -> bool,
) -> Result<Vec<Hit>, TantivyError> {
    let mut top = TopK::new(k);
    let Some(first) = indexes.first() else { return Ok(Vec::new()) };
    let statistics = Together(indexes);
    let mut languages = Vec::new();
    for language in Language::ALL {
        if statistics.doc_freq(&Term::from_field_text(first.fields.language, language.name()))? > 0 {
            languages.push(language);
        }
    }
    let query = parse(query, first.fields, &languages);
    if k == 0 || query.clauses().is_empty() || statistics.total_num_docs()? == 0 {
        return Ok(Vec::new());
    }
    for index in indexes {
        let weight = query.weight(EnableScoring::enabled_from_statistics_provider(&statistics, &index.searcher))?;
        for segment in index.searcher.segment_readers() {
            let chunks = segment.fast_fields().i64(CHUNK)?;
            // Tantivy skips what does not exceed the threshold; an equal score may still enter by its identifier.
            let threshold = |top: &TopK| top.threshold().map_or(f32::MIN, f32::next_down);
            weight.for_each_pruning(threshold(&top), segment, &mut |document, score| {
                if let Some(chunk) = chunks.first(document)
                    && admits(chunk)
                {
                    top.push(Hit { chunk, score });
                }
                threshold(&top)
            })?;
        }
    }
    Ok(top.into_hits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(texts: &[(i64, &str, &str)]) -> WordIndex {
        let mut builder = MemoryBuilder::new().expect("builder");
        for (chunk, title, body) in texts {
            builder.add(*chunk, title, body).expect("added");
        }
        builder.finish().expect("index")
    }

    fn found(indexes: &[&WordIndex], query: &str) -> Vec<i64> {
        search(indexes, query, 10, &|_| true).expect("found").iter().map(|hit| hit.chunk).collect()
    }

    const TEXTS: [(i64, &str, &str); 4] = [
        (1, "Delays", "A delayed flight earns compensation."),
        (2, "Baking", "Boil the bagels, then bake them."),
        (3, "", "Überraschung: a naïve café."),
        (4, "Compensation", "Rules for airlines."),
    ];

    #[test]
    fn m32_words_match_by_stem_case_and_accent() {
        let index = index(&TEXTS);
        assert_eq!(found(&[&index], "BAGEL"), [2]);
        assert_eq!(found(&[&index], "delays"), [1]);
        assert_eq!(found(&[&index], "cafe uberraschung"), [3]);
        assert_eq!(found(&[&index], "compensation"), [1, 4], "in a text and in a title");
    }

    #[test]
    fn m32_words_match_by_the_stem_of_the_language_of_the_text() {
        let german = "Die Häuser der Stadt sind alt, und die Mieter haben eine Kündigung bekommen.";
        let index = index(&[(1, "", german), (2, "", "The houses are old."), (3, "", "Ein Buch ist auf dem Tisch.")]);
        assert_eq!(found(&[&index], "Haus"), [1], "Häuser");
        assert_eq!(found(&[&index], "Kündigungen"), [1]);
        assert_eq!(found(&[&index], "house"), [2]);
    }

    #[test]
    fn m32_small_words_of_a_query_count_only_where_there_are_no_others() {
        let index =
            index(&[(1, "", "The Who is a band, and it is the band of the who."), (2, "", "Bagels are baked.")]);
        assert_eq!(found(&[&index], "is it the bagel"), [2]);
        assert_eq!(found(&[&index], "it is the"), [1]);
    }

    #[test]
    fn m32_a_query_has_no_syntax() {
        let index = index(&TEXTS);
        for query in ["\"bagel", "title:bagel AND", "-bagel +(", "bagel^^ OR *", "bagel:~{", "/bagel[/", "bagel\0\n"] {
            assert!(found(&[&index], query).contains(&2), "{query}");
        }
        for query in ["", "   ", "\"'()[]{}:-+*^~!?/\\", "zzz"] {
            assert!(found(&[&index], query).is_empty(), "{query}");
        }
    }

    #[test]
    fn m32_two_indexes_score_like_one() {
        let (whole, old, new) = (index(&TEXTS), index(&TEXTS[..1]), index(&TEXTS[1..]));
        for query in ["compensation", "a flight", "rules bagels cafe them"] {
            let one = search(&[&whole], query, 10, &|_| true).expect("found");
            let two = search(&[&old, &new], query, 10, &|_| true).expect("found");
            assert_eq!(one, two, "{query}");
        }
    }

    #[test]
    fn f33_removed_chunks_never_come_and_never_take_a_place() {
        let index = index(&TEXTS);
        let hits = search(&[&index], "compensation", 1, &|chunk| chunk != 4).expect("found");
        assert_eq!(hits.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn equal_scores_are_ordered_by_age() {
        let texts: Vec<(i64, &str, &str)> = (1..=500).rev().map(|chunk| (chunk, "", "the same words")).collect();
        assert_eq!(found(&[&index(&texts)], "words"), (1..=10).collect::<Vec<_>>());
    }
}
