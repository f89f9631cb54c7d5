//! Decision 3: is every claim of an answer supported by the passages, and by which words of them?
//!
//! Each sentence of the answer is a claim. Three judges see it: code compares its quantities with those of the passages
//! and of the computed notes, and has a veto; counting covers its content words with sentences of the passages, which
//! become its citations; the generator, asked once for the whole answer, gives the opinion that neither can.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use anchorite_core::{Citation, Claim, Passage, Verdict};
use anchorite_text::sentences;
use serde::{Deserialize, Serialize};

use super::{log_odds, sigmoid};
use crate::Settings;
use crate::quantities::{Note, Outcome, Quantity, check_claim, extract, same};
use crate::words::content_words;

/// Most sentences cited for one claim.
const MOST_CITATIONS: usize = 3;

/// What a quantity in common weighs beside words in common: as much as a word that stands in one sentence of ten.
const QUANTITY_WEIGHT: f32 = 2.4;

/// What the graders say of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grounding {
    /// Its claims, in order.
    pub claims: Vec<Claim>,
    /// What each claim's confidence rests on.
    pub signals: Vec<Signals>,
    /// Lines about what is wrong.
    pub faults: Vec<String>,
}

/// What the judges of a claim say, before it becomes one probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Signals {
    /// Share of the claim's words and quantities that the cited sentences have, by weight, 0 … 1.
    pub coverage: f32,
    /// The generator's probability that the whole answer is borne out; `None` if it was not asked.
    pub opinion: Option<f32>,
    /// Code found a number that the passages speak against.
    pub vetoed: bool,
}

impl Signals {
    /// Probability that the claim is supported, by logistic regression on the development pairs, of the opinion's log-odds
    /// and the coverage.
    #[must_use]
    pub fn probability(self) -> f32 {
        let sum = match self.opinion {
            Some(opinion) => 1.1 * log_odds(opinion) + 1.1 * self.coverage - 0.2,
            None => 2.8 * self.coverage - 1.4,
        };
        // One in three of these is borne out all the same, by a number that code has not understood.
        sigmoid(if self.vetoed { sum - 0.5 } else { sum })
    }
}

struct Sentence<'p> {
    passage: &'p Passage,
    range: Range<usize>,
    words: BTreeSet<String>,
    quantities: Vec<Quantity>,
}

/// Grades `answer` against `passages` and `notes`. `opinion` is the generator's probability that the whole answer is
/// supported, if it was asked.
#[must_use]
pub fn ground(
    question: &str,
    answer: &str,
    passages: &[&Passage],
    notes: &[Note],
    opinion: Option<f32>,
    settings: &Settings,
) -> Grounding {
    let evidence: Vec<Sentence<'_>> = passages.iter().flat_map(|passage| split(passage)).collect();
    let rarity = rarity(&evidence);
    let texts: Vec<String> = passages.iter().map(|passage| passage.full_text()).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let asked = content_words(question);
    let mut grounding = Grounding::default();
    for range in sentences(answer) {
        let text = answer[range].trim();
        if text.is_empty() {
            continue;
        }
        let words = content_words(text);
        let weigh = |word: &String| weight(word, &rarity) * if asked.contains(word) { 0.5 } else { 1.0 };
        let Cited { mut citations, covered, quantities, found } =
            cite(text, &words, &evidence, &weigh, notes, passages);
        // A note is right or absent: in its own words it is borne out by what it was computed from.
        let computed = notes.iter().any(|note| note.text.contains(text));
        let coverage = if computed { 1.0 } else { coverage(&words, &covered, &asked, &weigh, (quantities, found)) };
        let discrepancies = check_claim(text, question, &texts, notes);
        // What code has computed needs nobody's opinion.
        let noted = computed || notes.iter().any(|note| note.outcome.is_some() && comes_to(text, note));
        let signals = Signals { coverage, opinion: opinion.filter(|_| !noted), vetoed: !discrepancies.is_empty() };
        let confidence = signals.probability();
        let verdict = if signals.vetoed {
            Verdict::NotSupported
        } else if confidence >= settings.support && !citations.is_empty() {
            Verdict::Supported
        } else if confidence >= settings.support / 2.0 {
            Verdict::PartiallySupported
        } else {
            Verdict::NotSupported
        };
        for discrepancy in &discrepancies {
            grounding.faults.push(format!("{text} ({})", discrepancy.message));
        }
        if discrepancies.is_empty() && verdict != Verdict::Supported {
            grounding.faults.push(format!("{text} (no passage says so)"));
        }
        if verdict == Verdict::NotSupported {
            citations.clear();
        }
        grounding.signals.push(signals);
        grounding.claims.push(Claim { text: text.to_owned(), verdict, confidence, citations });
    }
    grounding
}

fn split(passage: &Passage) -> Vec<Sentence<'_>> {
    let title = content_words(&passage.title);
    sentences(&passage.text)
        .into_iter()
        .map(|range| {
            // A title is part of what each sentence says: "Munich to Delhi" above "It is 5,931 km".
            let mut words = content_words(&passage.text[range.clone()]);
            words.extend(title.iter().cloned());
            let quantities = extract(&passage.text[range.clone()]);
            Sentence { passage, range, words, quantities }
        })
        .collect()
}

/// Weight of each word: rare ones tell sentences apart (inverse document frequency, Spärck Jones 1972).
fn rarity(evidence: &[Sentence<'_>]) -> HashMap<String, f32> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in evidence.iter().flat_map(|sentence| &sentence.words) {
        *counts.entry(word.clone()).or_default() += 1;
    }
    let total = evidence.len() as f32;
    counts.into_iter().map(|(word, count)| (word, (1.0 + total / count as f32).ln())).collect()
}

fn weight(word: &str, rarity: &HashMap<String, f32>) -> f32 {
    rarity.get(word).copied().unwrap_or(3.0)
}

/// What the sentences cited for a claim bear out.
struct Cited {
    citations: Vec<Citation>,
    /// Words of the claim that they have.
    covered: BTreeSet<String>,
    /// Quantities of the claim, and how many of them they have.
    quantities: usize,
    found: usize,
}

/// Sentences that cover the words of a claim, the one that covers most first; and the words covered. Sentences that a
/// note was computed from come first where the claim says what the note says.
fn cite(
    claim: &str,
    words: &BTreeSet<String>,
    evidence: &[Sentence<'_>],
    weigh: &dyn Fn(&String) -> f32,
    notes: &[Note],
    passages: &[&Passage],
) -> Cited {
    let mut citations: Vec<Citation> = Vec::new();
    let mut covered: BTreeSet<String> = BTreeSet::new();
    for note in notes.iter().filter(|note| states(claim, note)) {
        covered.extend(content_words(&note.text).intersection(words).cloned());
        for (index, span) in &note.sources {
            let Some(passage) = passages.get(*index) else { continue };
            // Notes are computed from title and text together; a span counts from there.
            let Some(start) = span.start.checked_sub(passage.title_bytes()) else { continue };
            let found = evidence.iter().find(|s| std::ptr::eq(s.passage, *passage) && s.range.contains(&start));
            if let Some(sentence) = found {
                covered.extend(sentence.words.intersection(words).cloned());
                push(&mut citations, sentence);
            }
        }
    }
    let mut open: Vec<Quantity> = extract(claim);
    let quantities = open.len();
    open.retain(|stated| !citations.iter().any(|cited| extract(&cited.quote).iter().any(|known| same(stated, known))));
    // What a note comes to stands in no sentence; the note bears it out, and its sources are cited.
    open.retain(|stated| {
        !notes.iter().any(|note| matches!(&note.outcome, Some(Outcome::Quantity(q)) if same(stated, q)))
    });
    let base = citations.len();
    while citations.len() < base.max(1) + MOST_CITATIONS - 1 {
        let gain = |sentence: &Sentence<'_>| -> f32 {
            let words = sentence.words.intersection(words).filter(|word| !covered.contains(*word)).map(weigh);
            let numbers = open.iter().filter(|stated| sentence.quantities.iter().any(|known| same(stated, known)));
            words.sum::<f32>() + QUANTITY_WEIGHT * numbers.count() as f32
        };
        let best = evidence
            .iter()
            .map(|sentence| (gain(sentence), sentence))
            .reduce(|best, next| if next.0 > best.0 { next } else { best });
        let Some((gain, sentence)) = best else { break };
        // A further sentence must carry a good part of what is said, or it would only be about the same thing.
        let total = words.iter().map(weigh).sum::<f32>() + QUANTITY_WEIGHT * open.len() as f32;
        if gain <= if citations.is_empty() { 0.0 } else { 0.25 * total } {
            break;
        }
        covered.extend(sentence.words.intersection(words).cloned());
        open.retain(|stated| !sentence.quantities.iter().any(|known| same(stated, known)));
        push(&mut citations, sentence);
    }
    Cited { citations, covered, quantities, found: quantities - open.len() }
}

/// True if a claim says what a note came to, or names a quantity that it was computed from.
pub(crate) fn states(claim: &str, note: &Note) -> bool {
    let said = extract(claim);
    comes_to(claim, note) || note.inputs.iter().any(|quantity| said.iter().any(|stated| same(stated, quantity)))
}

/// True if a text says what a note came to.
pub(crate) fn comes_to(text: &str, note: &Note) -> bool {
    match &note.outcome {
        Some(Outcome::Quantity(quantity)) => extract(text).iter().any(|stated| same(stated, quantity)),
        Some(Outcome::Label(label)) => text.to_lowercase().contains(&label.to_lowercase()),
        None => true,
    }
}

fn push(citations: &mut Vec<Citation>, sentence: &Sentence<'_>) {
    let passage = sentence.passage;
    let text = &passage.text[sentence.range.clone()];
    let lead = text.len() - text.trim_start().len();
    let quote = text.trim();
    let start = passage.start + sentence.range.start + lead;
    let citation = Citation {
        source: passage.source.clone(),
        title: passage.title.clone(),
        chunk: passage.chunk,
        start,
        end: start + quote.len(),
        quote: quote.to_owned(),
    };
    if !citations.contains(&citation) {
        citations.push(citation);
    }
}

/// Share of a claim's words and quantities that the citations cover, by weight. Words of the question are the topic rather than the
/// statement, so they count half.
fn coverage(
    words: &BTreeSet<String>,
    covered: &BTreeSet<String>,
    asked: &BTreeSet<String>,
    weigh: &dyn Fn(&String) -> f32,
    (quantities, found): (usize, usize),
) -> f32 {
    let total = words.iter().map(weigh).sum::<f32>() + QUANTITY_WEIGHT * quantities as f32;
    if total <= 0.0 {
        // Nothing but small words ("Yes."): the quantities and the generator decide.
        return 0.5;
    }
    let half_known = |word: &String| {
        if covered.contains(word) {
            1.0
        } else if asked.contains(word) {
            0.5
        } else {
            0.0
        }
    };
    {
        let known: f32 = words.iter().map(|word| weigh(word) * half_known(word)).sum();
        (known + QUANTITY_WEIGHT * found as f32) / total
    }
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;

    use super::*;

    fn passage(chunk: i64, start: usize, title: &str, text: &str) -> Passage {
        Passage {
            chunk,
            document: chunk,
            source: format!("{chunk}.md"),
            title: title.to_owned(),
            start,
            end: start + text.len(),
            text: text.to_owned(),
            dated: 0,
            owner: String::new(),
            scores: Scores::default(),
        }
    }

    #[test]
    fn m39_a_claim_is_cited_to_the_exact_sentence() {
        let text = "Berlin is the capital of Germany. It has about 3.5 million inhabitants.";
        let passages = [passage(7, 100, "Berlin", text), passage(8, 0, "Paris", "Paris is the capital of France.")];
        let passages: Vec<&Passage> = passages.iter().collect();
        let grounding = ground(
            "Capital of Germany?",
            "Berlin is the capital of Germany.",
            &passages,
            &[],
            None,
            &Settings::default(),
        );
        let [claim] = grounding.claims.as_slice() else { panic!("one claim: {grounding:?}") };
        assert_eq!(claim.verdict, Verdict::Supported);
        assert_eq!(claim.citations[0].quote, "Berlin is the capital of Germany.");
        assert_eq!((claim.citations[0].start, claim.citations[0].end, claim.citations[0].chunk), (100, 133, 7));
    }

    #[test]
    fn m12_a_claim_that_no_passage_holds_is_not_supported() {
        let passages = [passage(1, 0, "Berlin", "Berlin is the capital of Germany.")];
        let passages: Vec<&Passage> = passages.iter().collect();
        let answer = "The river Spree freezes every winter and ferries stop.";
        let grounding = ground("Capital of Germany?", answer, &passages, &[], None, &Settings::default());
        assert_eq!(grounding.claims[0].verdict, Verdict::NotSupported);
        assert!(grounding.claims[0].citations.is_empty());
        assert_eq!(grounding.faults.len(), 1);
    }

    #[test]
    fn m53_a_wrong_number_is_vetoed_however_well_the_words_match() {
        let passages = [passage(1, 0, "Mont Blanc", "Mont Blanc is 4,806 metres high.")];
        let passages: Vec<&Passage> = passages.iter().collect();
        let settings = Settings::default();
        let right =
            ground("How high is Mont Blanc?", "Mont Blanc is 4,806 m high.", &passages, &[], Some(0.4), &settings);
        let wrong =
            ground("How high is Mont Blanc?", "Mont Blanc is 4,860 m high.", &passages, &[], Some(0.9), &settings);
        assert_ne!(right.claims[0].verdict, Verdict::NotSupported, "{right:?}");
        assert_eq!(wrong.claims[0].verdict, Verdict::NotSupported, "{wrong:?}");
    }
}
