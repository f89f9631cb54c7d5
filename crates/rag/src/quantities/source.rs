//! A passage read once: its sentences, quantities and rules, and what its words say about each quantity.

use std::collections::HashSet;
use std::ops::Range;

use super::extract::{Scan, scan};
use super::model::Quantity;
use super::subject::{speaks_of_subject, title_name};
use super::tiers::{Rule, rules_in};
use super::words::{Name, content_stems, is_list_line, names_of, sentences, words_of};

/// A longer stretch without an end is no sentence whose words belong together.
const MAX_SENTENCE: usize = 2000;

/// A passage read once.
pub(super) struct Source<'p> {
    pub(super) text: &'p str,
    pub(super) scan: Scan,
    pub(super) sentences: Vec<Range<usize>>,
    pub(super) rules: Vec<Rule>,
    pub(super) stems: HashSet<String>,
    names: Vec<Name>,
    words: HashSet<String>,
    /// For each sentence the line its list or table stands under.
    headers: Vec<Option<usize>>,
}

impl<'p> Source<'p> {
    pub(super) fn read(text: &'p str) -> Source<'p> {
        let scan = scan(text);
        let rules = rules_in(text, &scan);
        let sentences = sentences(text);
        let mut headers = Vec::with_capacity(sentences.len());
        let mut header: Option<usize> = None;
        let mut table = false;
        for (index, sentence) in sentences.iter().enumerate() {
            let piece = &text[sentence.clone()];
            let row = piece.starts_with('|');
            if is_list_line(piece) && !piece.starts_with('#') {
                if row && !table {
                    header = Some(index);
                }
                headers.push(header.filter(|header| *header != index));
            } else {
                headers.push(None);
                header = (piece.ends_with(':') || piece.starts_with('#')).then_some(index);
            }
            table = row;
        }
        let stems = content_stems(text, 0..text.len());
        let names = names_of(text, 0..text.len());
        let words = words_of(text, 0..text.len()).into_iter().map(|word| word.lower).collect();
        Source { text, scan, sentences, rules, stems, names, words, headers }
    }

    pub(super) fn sentence_at(&self, at: usize) -> Option<usize> {
        let index = self.sentences.partition_point(|sentence| sentence.end <= at);
        self.sentences.get(index).filter(|sentence| sentence.start <= at).map(|_| index)
    }

    /// The parts of the text that say what a quantity measures.
    ///
    /// That is its sentence; where the sentence holds several quantities of the dimension, only the clause around it.
    /// List lines bring the line they stand under, sentences that open with a pronoun the sentence before.
    pub(super) fn scope_of(&self, quantity: &Quantity) -> Option<Scope> {
        let index = self.sentence_at(quantity.span.start)?;
        let sentence = self.sentences[index].clone();
        if sentence.len() > MAX_SENTENCE {
            return None;
        }
        let piece = &self.text[sentence.clone()];
        if piece.to_lowercase().contains("respectively") || piece.contains("beziehungsweise") {
            return None;
        }
        let own = self.clause_of(quantity, &sentence);
        let mut parts = self.without_earlier_events(&own, quantity);
        if own.start > sentence.start
            && let Some(colon) = piece.find(':').map(|found| sentence.start + found)
            && colon < own.start
            && !self.scan.quantities.iter().any(|other| sentence.start <= other.span.start && other.span.start < colon)
        {
            parts.insert(0, sentence.start..colon);
        }
        if let Some(header) = self.headers[index] {
            parts.insert(0, self.sentences[header].clone());
        } else if index > 0 && self.opens_with_pronoun(&sentence) {
            parts.insert(0, self.sentences[index - 1].clone());
        }
        if speaks_of_subject(self.text, &self.sentences, index)
            && let Some((title, _)) = title_name(self.text, &self.sentences)
        {
            parts.insert(0, self.sentences[title].clone());
        }
        Some(Scope { own, parts })
    }

    /// "Ian crossed Cuba and *then* struck Cayo Costa with winds of 150 mph": of what comes before "then" only the first
    /// name, the one that acts, has to do with the quantity.
    fn without_earlier_events(&self, own: &Range<usize>, quantity: &Quantity) -> Vec<Range<usize>> {
        let before = &self.text[own.start..quantity.span.start.max(own.start)];
        let Some(then) = before.rfind(" then ").map(|at| own.start + at) else { return vec![own.clone()] };
        let actor = names_of(self.text, own.start..then).first().map_or(own.start, |name| name.span.end);
        vec![own.start..actor, then..own.end]
    }

    fn opens_with_pronoun(&self, sentence: &Range<usize>) -> bool {
        let words = words_of(self.text, sentence.clone());
        let pronoun = words.first().is_some_and(|word| {
            matches!(word.lower.as_str(), "it" | "its" | "this" | "they" | "he" | "she" | "his" | "her" | "their")
        });
        pronoun && names_of(self.text, sentence.clone()).is_empty()
    }

    fn clause_of(&self, quantity: &Quantity, sentence: &Range<usize>) -> Range<usize> {
        let siblings: Vec<&Quantity> = self
            .scan
            .quantities_in(sentence)
            .iter()
            .filter(|other| other.dimension() == quantity.dimension())
            .filter(|other| other.span == quantity.span || !self.scan.is_secondary(other))
            .collect();
        let Some(place) = siblings.iter().position(|other| other.span == quantity.span) else {
            return sentence.clone();
        };
        let mut clause = sentence.clone();
        // "5,931 km (3,685 miles)": one value in two units does not part a sentence.
        if let Some(before) = siblings[..place].iter().rev().find(|other| !super::arithmetic::same(other, quantity)) {
            clause.start = self.cut_between(before.span.end, quantity.span.start);
        }
        if let Some(after) = siblings[place + 1..].iter().find(|other| !super::arithmetic::same(other, quantity)) {
            clause.end = self.cut_between(quantity.span.end, after.span.start);
        }
        clause
    }

    fn cut_between(&self, from: usize, to: usize) -> usize {
        const CUTS: &[&str] = &[";", ",", " and ", " while ", " but ", " whereas ", " or ", "|", "\n", " und "];
        let between = self.text.get(from..to).unwrap_or("");
        CUTS.iter().filter_map(|cut| between.find(cut)).min().map_or(from, |offset| from + offset)
    }
}

/// Where a text says what a quantity measures.
pub(super) struct Scope {
    /// The clause around the quantity.
    pub(super) own: Range<usize>,
    /// The clause and what it stands under.
    pub(super) parts: Vec<Range<usize>>,
}

impl Scope {
    pub(super) fn words(&self, text: &str) -> HashSet<String> {
        self.parts.iter().flat_map(|part| words_of(text, part.clone())).map(|word| word.lower).collect()
    }

    pub(super) fn names(&self, text: &str) -> Vec<Name> {
        self.parts.iter().flat_map(|part| names_of(text, part.clone())).collect()
    }

    pub(super) fn stems(&self, text: &str) -> HashSet<String> {
        self.parts.iter().flat_map(|part| content_stems(text, part.clone())).collect()
    }
}

/// Words of a name that may be left out: "Hurricane Katrina" is also "Katrina".
const TITLES: &[&str] = &[
    "hurricane",
    "typhoon",
    "storm",
    "tropical",
    "mount",
    "mt",
    "river",
    "city",
    "president",
    "king",
    "queen",
    "dr",
    "mr",
    "mrs",
    "sir",
    "airport",
    "international",
    "lake",
    "professor",
    "saint",
];

/// Words that make another name of a name: "New York" is not York.
const DISTINGUISHING: &[&str] = &[
    "new", "north", "south", "east", "west", "northern", "southern", "eastern", "western", "san", "santa", "saint",
    "st", "los", "las", "el", "la", "port", "fort", "upper", "lower", "old", "great", "little", "central", "papua",
    "junior", "jr",
];

/// Two names of one place where the rule above would part them.
const SAME_PLACE: &[(&str, &str)] = &[("new delhi", "delhi"), ("delhi", "new delhi")];

fn core_words(name: &Name) -> Vec<&str> {
    let core: Vec<&str> = name.words.iter().map(String::as_str).filter(|word| !TITLES.contains(word)).collect();
    if core.is_empty() { name.words.iter().map(String::as_str).collect() } else { core }
}

/// Whether one of the names found means the wanted name.
pub(super) fn mentions(found: &[Name], words: &HashSet<String>, wanted: &Name) -> bool {
    let core = core_words(wanted);
    if found.is_empty() {
        return core.iter().all(|word| words.contains(*word));
    }
    let joined = core.join(" ");
    found.iter().any(|name| {
        let Some(at) = name.words.windows(core.len()).position(|window| window.iter().eq(core.iter())) else {
            let known = name.words.join(" ");
            return SAME_PLACE.iter().any(|(left, right)| *left == joined && *right == known);
        };
        let before = at.checked_sub(1).map(|before| name.words[before].as_str());
        let alias = before.is_some_and(|before| {
            let longer = format!("{before} {joined}");
            SAME_PLACE.iter().any(|(left, right)| *left == joined && *right == longer)
        });
        // "Gasherbrum III" is not Gasherbrum, "Apollo 11" not Apollo.
        let numbered = name.words.get(at + core.len()).is_some_and(|after| {
            after.bytes().all(|byte| byte.is_ascii_digit())
                || after.chars().all(|letter| matches!(letter, 'i' | 'v' | 'x'))
        });
        !numbered && (alias || before.is_none_or(|before| !DISTINGUISHING.contains(&before) || core.contains(&before)))
    }) || found.iter().all(|name| name.words.iter().all(|word| !core.contains(&word.as_str())))
        && core.iter().all(|word| words.contains(*word))
}

/// Whether a text speaks of the name, also as the initials of it ("EU" for "European Union").
pub(super) fn speaks_of(source: &Source<'_>, name: &Name) -> bool {
    if mentions(&source.names, &source.words, name) {
        return true;
    }
    let [acronym] = name.words.as_slice() else { return false };
    acronym.chars().count() >= 2
        && source.names.iter().any(|found| {
            found.words.len() == acronym.chars().count()
                && found.words.iter().zip(acronym.chars()).all(|(word, letter)| word.starts_with(letter))
        })
}
