//! The laws of chunks (M33, M35, F24, F25, F26).

use std::sync::atomic::{AtomicUsize, Ordering};

use anchorite_core::{Chunk, Limits, TokenCounter};
use anchorite_text::{ChunkError, Chunker};
use proptest::prelude::*;

/// Counts as `count` does.
struct By(fn(&str) -> usize);

impl TokenCounter for By {
    fn count(&self, text: &str) -> usize {
        (self.0)(text)
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

/// Pieces of four letters of a word, and each other character alone, white space too: parts don't add up to the whole.
fn pieces(text: &str) -> usize {
    let letters: usize = text.split(|c: char| !c.is_alphanumeric()).map(|word| word.chars().count().div_ceil(4)).sum();
    letters + text.chars().filter(|c| !c.is_alphanumeric()).count()
}

fn bytes(text: &str) -> usize {
    text.len().div_ceil(3)
}

/// As models that read every word, however long, as one unknown token.
fn nothing_or_one(text: &str) -> usize {
    usize::from(!text.trim().is_empty())
}

const COUNTERS: [fn(&str) -> usize; 4] = [words, pieces, bytes, nothing_or_one];

fn chunker(max_tokens: usize, overlap_tokens: usize) -> Chunker {
    Chunker::new(max_tokens, overlap_tokens).expect("the overlap is smaller")
}

fn texts(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.text.as_str()).collect()
}

#[test]
fn m33_chunks_are_whole_sentences_that_overlap_by_whole_sentences() {
    let text =
        "Dr. Smith measured it. It was far.\nA line that goes\nover a break. He left at noon. He slept. The end.";
    let chunks = chunker(12, 6).chunk("", text, &By(words)).expect("few");
    assert_eq!(
        texts(&chunks),
        [
            "Dr. Smith measured it. It was far.",
            "It was far.\nA line that goes\nover a break.",
            "He left at noon. He slept. The end.",
        ]
    );
    let apart = chunker(12, 0).chunk("", text, &By(words)).expect("few");
    assert_eq!(apart.iter().map(|chunk| words(&chunk.text)).sum::<usize>(), words(text));
}

#[test]
fn m33_a_heading_goes_with_what_follows() {
    let text = "# One\n\nFirst text here.\n\n# Two\n\nSecond text is here.";
    let chunks = chunker(7, 0).chunk("", text, &By(words)).expect("few");
    assert_eq!(texts(&chunks), ["# One\n\nFirst text here.", "# Two\n\nSecond text is here."]);
}

#[test]
fn m33_a_long_sentence_is_cut_at_words_and_still_overlaps() {
    let text = (0..100).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    let chunks = chunker(20, 5).chunk("", &text, &By(words)).expect("few");
    for chunk in &chunks {
        assert!(chunk.text.split(' ').all(|word| word.starts_with('w') && text.contains(word)), "{:?}", chunk.text);
        assert!(chunk.text == text[chunk.start..].split_at(chunk.text.len()).0);
    }
    assert!(chunks.windows(2).all(|pair| pair[1].start < pair[0].end), "neighbours share words");
    assert!(chunks.len() < 12, "chunks are nearly full: {}", chunks.len());
}

#[test]
fn m33_the_title_takes_its_room() {
    let text = "One two three. Four five six. Seven eight nine.";
    let count = |title: &str| chunker(9, 0).chunk(title, text, &By(words)).expect("few").len();
    assert_eq!((count(""), count("The big title"), count("A title that is longer than any chunk may be")), (1, 2, 3));
}

#[test]
fn m33_sizes_and_limits_are_checked() {
    assert_eq!(Chunker::new(8, 8), Err(ChunkError::Sizes { max_tokens: 8, overlap_tokens: 8 }));
    assert!(Chunker::new(0, 0).is_err());
    let limits = Limits { document_chunks: 2, ..Limits::default() };
    let error = chunker(2, 0).with_limits(&limits).chunk("t", "a b. c d. e f.", &By(words)).expect_err("three");
    match error {
        ChunkError::Limit(limit) => assert_eq!((limit.limit, limit.actual, limit.allowed), ("document_chunks", 3, 2)),
        other => panic!("expected a limit, got {other}"),
    }
}

#[test]
fn f24_a_blank_text_has_no_chunks() {
    for text in ["", " \t\r\n", "\u{a0}\u{3000}\u{2029}"] {
        assert_eq!(chunker(8, 2).chunk("title", text, &By(words)).expect("none"), []);
    }
}

/// Counts pieces, and the bytes that it was given.
#[derive(Default)]
struct Meter {
    bytes: AtomicUsize,
    longest: AtomicUsize,
}

impl TokenCounter for Meter {
    fn count(&self, text: &str) -> usize {
        self.bytes.fetch_add(text.len(), Ordering::Relaxed);
        self.longest.fetch_max(text.len(), Ordering::Relaxed);
        pieces(text)
    }
}

#[test]
fn f25_ten_megabytes_on_one_line_are_counted_a_bounded_number_of_times() {
    const SIZE: usize = 10_000_000;
    let units = [
        "x",
        "word ",
        "A sentence of usual length, as people write them. ",
        "a. ",
        ". ",
        "\u{301}",
        "語",
        "!\"",
        "1",
        "a-",
        "? x\" ",
    ];
    for unit in units {
        let size = if unit.len() > 1 && unit != "word " { SIZE / 10 } else { SIZE };
        let text = unit.repeat(size / unit.len());
        let meter = Meter::default();
        let chunks = chunker(200, 32).chunk("", &text, &meter).expect("below the limit");
        let counted = meter.bytes.load(Ordering::Relaxed) as f64 / text.len() as f64;
        assert!(counted < 6.0, "{unit:?}: each byte was counted {counted} times");
        assert!(meter.longest.load(Ordering::Relaxed) <= 200 * 32, "{unit:?}");
        let held: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        assert!(held < 2 * text.len(), "{unit:?}: {held} bytes");
        assert!(chunks.iter().all(|chunk| pieces(&chunk.text) <= 200), "{unit:?}");
    }
    // A hole of white space, and a word without end that counts as one token.
    let hole = format!("Before.{}After.", " ".repeat(SIZE));
    assert_eq!(texts(&chunker(200, 32).chunk("", &hole, &By(words)).expect("two")), ["Before.", "After."]);
    let endless = "x".repeat(SIZE);
    let chunks = chunker(200, 32).chunk("", &endless, &By(nothing_or_one)).expect("below the limit");
    assert!(chunks.iter().all(|chunk| chunk.text.len() <= 200 * 32));
}

/// Words, marks, breaks, and what is hard to cut.
fn text() -> impl Strategy<Value = String> {
    let hard = [
        " ",
        " ",
        "   ",
        ". ",
        "! ",
        "?",
        "\n",
        "\r\n",
        "\r\n\r\n",
        "\n\n",
        "\t",
        "\u{2029}",
        "# ",
        "\n# H\n",
        "- ",
        "1. ",
        "| ",
        "Dr. ",
        "e.g. ",
        "...",
        "\"",
        "(",
        ")",
        "。",
        "؟",
        "\u{301}",
        "e\u{301}\u{323}",
        "\u{200d}",
        "\u{200f}",
        "\u{202e}",
        "👩\u{200d}👩\u{200d}👧",
        "🇮🇳🇩🇪",
        "שלום",
        "مرحبا بكم",
        "한국어",
        "각",
        "日本語の文章",
        "\0",
        "\u{feff}",
        "\u{fffd}",
        "5,931.5",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    let piece = prop_oneof![
        4 => "[a-zA-Z]{1,9}",
        3 => prop::sample::select(hard.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => " {1,60}",
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn m33_f26_the_laws_of_chunks_hold(
        text in text(),
        title in "[a-z ]{0,12}",
        max_tokens in 1_usize..40,
        overlap in 0_usize..20,
        counter in 0_usize..4,
    ) {
        let counter = By(COUNTERS[counter]);
        let overlap_tokens = overlap.min(max_tokens - 1);
        let chunker = chunker(max_tokens, overlap_tokens);
        let chunks = chunker.chunk(&title, &text, &counter).expect("below the limit");
        prop_assert_eq!(&chunks, &chunker.chunk(&title, &text, &counter).expect("again"));

        let mut covered = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(chunk.ordinal as usize, index);
            // Slicing panics unless both ends lie on character borders.
            prop_assert_eq!(&text[chunk.start..chunk.end], chunk.text.as_str());
            prop_assert_eq!(chunk.text.trim(), chunk.text.as_str());
            prop_assert!(!chunk.text.is_empty());
            let single = chunk.text.chars().nth(1).is_none();
            prop_assert!(single || counter.count(&chunk.text) <= max_tokens, "{:?}", chunk.text);
            if let Some(before) = index.checked_sub(1).map(|before| &chunks[before]) {
                prop_assert!(before.start < chunk.start && before.end < chunk.end);
                if chunk.start < before.end {
                    prop_assert!(counter.count(&text[chunk.start..before.end]) <= overlap_tokens);
                }
            }
            if chunk.start > covered {
                prop_assert!(text[covered..chunk.start].chars().all(char::is_whitespace));
            }
            covered = chunk.end;
        }
        prop_assert!(text[covered..].chars().all(char::is_whitespace));
    }
}
