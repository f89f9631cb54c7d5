//! Notes: what code computed for a question from the evidence, with its sources, and what it could not compute.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arithmetic::{contains, convert, same};
use super::asked::answering;
use super::comparisons::comparison_notes;
use super::events::event_note;
use super::model::{Quantity, collapse};
use super::quotient::quotient_note;
use super::relevance::{Candidate, Question, condition_word, deciding_quantities, relevant_rules};
use super::source::Source;
use super::tiers::{Outcome, Rule, Tier};
use super::units::Dimension;
use super::words::{Name, names_of};

/// What a note computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NoteKind {
    /// Which tier of a rule a quantity falls in.
    Tier,
    /// The difference of two quantities.
    Difference,
    /// Which of two quantities is larger or earlier.
    Comparison,
    /// The sum of quantities.
    Total,
    /// The time between two dates.
    Elapsed,
    /// How many times one quantity goes into another.
    Quotient,
}

/// A statement computed from the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The statement, one line, starting with "Computed:".
    pub text: String,
    /// What was computed.
    pub kind: NoteKind,
    /// Passage and bytes of everything it rests on, in passage order.
    pub sources: Vec<(usize, Range<usize>)>,
    /// What it comes to.
    pub outcome: Option<Outcome>,
    /// The quantities it was computed from.
    pub inputs: Vec<Quantity>,
}

/// A rule of the evidence that bears on the question, without the quantity that would pick its tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undetermined {
    /// Index of the passage that holds the rule.
    pub passage: usize,
    /// Bytes of the rule in it.
    pub span: Range<usize>,
    /// What the condition measures.
    pub dimension: Dimension,
    /// The word for it: "distance", "delay".
    pub what: String,
    /// Whom or what the question asks about ("Delhi and Munich"), where it names something.
    pub about: Option<String>,
    /// The tiers that stay possible.
    pub rule: Rule,
}

/// More tying quantities than this are no answer.
const MAX_TYING: usize = 4;

/// The notes that follow for a question from the passages, in the order of the passages.
///
/// A note is right or absent: quantities that are not clearly the ones asked about, values too close to a threshold
/// for their precision, and wordings that leave an end open give none.
#[must_use]
pub fn notes(question: &str, passages: &[&str]) -> Vec<Note> {
    let sources: Vec<Source<'_>> = passages.iter().map(|text| Source::read(text)).collect();
    let question = Question::read(question, &sources);
    let mut result: Vec<Note> = Vec::new();
    let relevant = answering(&question, &sources, relevant_rules(&question, &sources));
    for (passage, rule, _) in &relevant {
        let source = &sources[*passage];
        let alike =
            relevant.iter().filter(|(_, other, _)| other.dimension == rule.dimension && !same_rule(other, rule));
        let name_rule = alike.count() > 0;
        let candidates = deciding_quantities(&question, &sources, source, rule);
        let found: Vec<(String, Note)> = groups_of(candidates)
            .iter()
            .filter_map(|group| tier_note(&question, &sources, *passage, rule, group, name_rule))
            .collect();
        // Two values of one thing that fall in different tiers: which one is meant is not clear.
        let contradicted = |subject: &str, note: &Note| {
            found.iter().any(|(other, known)| other == subject && known.outcome != note.outcome)
        };
        for (subject, note) in &found {
            if !contradicted(subject, note) {
                merge(&mut result, note.clone());
            }
        }
    }
    result.extend(comparison_notes(&question, &sources));
    result.extend(event_note(&question, &sources));
    result.extend(quotient_note(&question, &sources));
    result
}

/// The rules most relevant to the question whose deciding quantity is found neither in it nor in the passages.
///
/// Ask for it as "the `what`", with `about` where the question names something.
#[must_use]
pub fn undetermined(question: &str, passages: &[&str]) -> Vec<Undetermined> {
    let sources: Vec<Source<'_>> = passages.iter().map(|text| Source::read(text)).collect();
    let question = Question::read(question, &sources);
    let relevant = answering(&question, &sources, relevant_rules(&question, &sources));
    let best = relevant.iter().map(|entry| entry.2).fold(0.0, f64::max);
    let mut result: Vec<Undetermined> = Vec::new();
    for (passage, rule, score) in relevant {
        if score < best || result.iter().any(|known| same_rule(&known.rule, rule)) {
            continue;
        }
        let source = &sources[passage];
        // A value of the question is known, and one that falls between the tiers too, although no tier holds it.
        let is_known = |candidate: &Candidate| {
            let quantity = &candidate.quantity;
            candidate.passage.is_none()
                || tier_of(rule, quantity).is_some()
                || rule.tiers.iter().all(|tier| contains(&tier.range, quantity) == Some(false))
        };
        let candidates = deciding_quantities(&question, &sources, source, rule);
        let what = condition_word(source, rule);
        let pointless = what == "distance" && !question.has_way(source);
        if pointless || candidates.iter().any(is_known) {
            continue;
        }
        result.push(Undetermined {
            passage,
            span: rule.span.clone(),
            dimension: rule.dimension,
            what,
            about: question.about(source),
            rule: rule.clone(),
        });
    }
    result
}

/// The tier that holds the quantity; none where that is not certain.
pub(super) fn tier_of<'r>(rule: &'r Rule, quantity: &Quantity) -> Option<&'r Tier> {
    let mut holding = None;
    for tier in &rule.tiers {
        match contains(&tier.range, quantity) {
            Some(false) => {}
            Some(true) if holding.is_none() => holding = Some(tier),
            _ => return None,
        }
    }
    holding
}

/// Whether two rules have the same ranges and outcomes.
pub(super) fn same_rule(left: &Rule, right: &Rule) -> bool {
    left.dimension == right.dimension
        && left.tiers.len() == right.tiers.len()
        && left.tiers.iter().zip(&right.tiers).all(|(first, second)| {
            first.outcome.is_same(&second.outcome) && first.range.to_string() == second.range.to_string()
        })
}

/// Candidates that state one value stand together; too many values are none.
fn groups_of(candidates: Vec<Candidate>) -> Vec<Vec<Candidate>> {
    let mut groups: Vec<Vec<Candidate>> = Vec::new();
    for candidate in candidates {
        match groups.iter_mut().find(|group| same(&group[0].quantity, &candidate.quantity)) {
            Some(group) => group.push(candidate),
            None => groups.push(vec![candidate]),
        }
    }
    if groups.len() > MAX_TYING { Vec::new() } else { groups }
}

/// The note for values that agree, and what they are the value of.
fn tier_note(
    question: &Question<'_>,
    sources: &[Source<'_>],
    passage: usize,
    rule: &Rule,
    group: &[Candidate],
    name_rule: bool,
) -> Option<(String, Note)> {
    let candidate = preferred(rule, group);
    let quantity = &candidate.quantity;
    let tier = tier_of(rule, quantity)?;
    // Every reading of the value must fall in the same tier.
    if !group
        .iter()
        .all(|other| tier_of(rule, &other.quantity).is_some_and(|found| found.outcome.is_same(&tier.outcome)))
    {
        return None;
    }
    let text = sources[passage].text;
    let subject = subject_of(question, sources, passage, candidate);
    let mut statement = format!("Computed: {} ({subject})", written(quantity, rule));
    statement.push_str(&format!(" is {}, so ", tier.range));
    if name_rule {
        statement.push_str(&format!("by the rule \"{}\" ", title_of(&sources[passage])));
    }
    statement.push_str(&format!("the tier is \"{}\": {}", plain(&tier.condition_text), tier.outcome));
    for exception in &rule.exceptions {
        let holds = contains(&exception.range, quantity) != Some(false);
        if holds && !exception.outcome.is_same(&tier.outcome) {
            let words = plain(text.get(exception.span.clone()).unwrap_or(""));
            statement.push_str(&format!(" (special case in the text: \"{words}\""));
            let told = exception.span.start <= exception.outcome_span.start
                && exception.outcome_span.end <= exception.span.end;
            statement.push_str(&if told { ")".to_owned() } else { format!(": {})", exception.outcome) });
        }
    }
    statement.push('.');
    let mut places: Vec<(usize, Range<usize>)> = vec![(passage, tier.span.clone())];
    places.extend(group.iter().filter_map(|other| Some((other.passage?, other.quantity.span.clone()))));
    places.sort_by_key(|(index, span)| (*index, span.start, span.end));
    places.dedup();
    let note = Note {
        text: statement,
        kind: NoteKind::Tier,
        sources: places,
        outcome: Some(tier.outcome.clone()),
        inputs: vec![quantity.clone()],
    };
    Some((subject, note))
}

/// The reading in the rule's own unit, where there is one.
fn preferred<'g>(rule: &Rule, group: &'g [Candidate]) -> &'g Candidate {
    group.iter().find(|candidate| candidate.quantity.unit.is_same(&rule.unit)).unwrap_or(&group[0])
}

fn written(quantity: &Quantity, rule: &Rule) -> String {
    let about = if quantity.approximate { "about " } else { "" };
    if quantity.unit.is_same(&rule.unit) {
        return format!("{about}{quantity}");
    }
    match convert(quantity, &rule.unit) {
        Some(converted) => format!("{about}{quantity}, or {converted}"),
        None => format!("{about}{quantity}"),
    }
}

/// The same statement from two passages is one note with the sources of both.
fn merge(notes: &mut Vec<Note>, note: Note) {
    if let Some(known) = notes.iter_mut().find(|known| known.text == note.text) {
        known.sources.extend(note.sources);
        known.sources.sort_by_key(|(index, span)| (*index, span.start, span.end));
        known.sources.dedup();
    } else {
        notes.push(note);
    }
}

const VERBS: &[&str] = &[
    "is", "are", "was", "were", "measures", "weighs", "has", "had", "reaches", "reached", "stands", "rises", "equals",
    "amounts", "had", "beträgt", "ist", "war", "sind", "covers", "peaked",
];

/// "From Munich to Paris it" is no subject.
const LEADING_PREPOSITIONS: &[&str] =
    &["from", "between", "over", "in", "on", "at", "with", "near", "by", "as", "after", "before", "von", "zwischen"];

/// The words of the text before the verb ("the flight distance between Munich and Delhi"), or the shared names.
fn subject_of(question: &Question<'_>, sources: &[Source<'_>], rule: usize, candidate: &Candidate) -> String {
    let Some(index) = candidate.passage else { return "given in the question".to_owned() };
    let source = &sources[index];
    let names = names_of(source.text, candidate.own.clone());
    let head = source.text.get(candidate.own.start..candidate.quantity.span.start).unwrap_or("");
    let words: Vec<&str> = head.split_whitespace().collect();
    if let Some(verb) = words.iter().rposition(|word| VERBS.contains(&word.to_lowercase().as_str()))
        && (2..=14).contains(&verb)
    {
        let subject = words[..verb].join(" ");
        let lowered = subject.to_lowercase();
        let known: Vec<&str> = lowered.split(|letter: char| !letter.is_alphanumeric()).collect();
        let required = question.required(&sources[rule]);
        let named = required.iter().all(|name| name.words.iter().any(|word| known.contains(&word.as_str())));
        let stands_alone = known.first().is_some_and(|first| !LEADING_PREPOSITIONS.contains(first));
        let clean = subject.chars().all(|letter| {
            letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '–' | '\'' | '’' | ',' | '.' | '(' | ')')
        });
        if named && clean && stands_alone {
            return lower_article(&subject);
        }
    }
    // With the capitals of the text, should the question have none.
    let told = |asked: &Name| {
        let in_text = names.iter().find(|name| name.words == asked.words);
        in_text.map_or_else(|| asked.text.clone(), |name| name.text.clone())
    };
    question.required(&sources[rule]).into_iter().map(told).collect::<Vec<_>>().join(" and ")
}

fn lower_article(subject: &str) -> String {
    for article in ["The ", "A ", "An ", "Die ", "Der ", "Das "] {
        if let Some(rest) = subject.strip_prefix(article) {
            return format!("{}{rest}", article.to_lowercase());
        }
    }
    subject.to_owned()
}

/// The text of a document without what could be taken for markup, quotation or control, and not too long.
pub(super) fn plain(text: &str) -> String {
    let kept: String = text
        .chars()
        .map(|letter| if matches!(letter, '"' | '<' | '>' | '|' | '`' | '{' | '}' | '\\') { ' ' } else { letter })
        .filter(|letter| !letter.is_control() || letter.is_whitespace())
        .collect();
    let kept = collapse(&kept.replace("**", ""));
    if kept.chars().count() <= 160 { kept } else { format!("{}…", kept.chars().take(159).collect::<String>()) }
}

/// The first words of a passage, to tell two rules apart.
fn title_of(source: &Source<'_>) -> String {
    let first = source.sentences.first().map_or("", |sentence| &source.text[sentence.clone()]);
    let words: Vec<&str> = first.trim_start_matches(['#', ' ']).split_whitespace().take(8).collect();
    plain(words.join(" ").trim_end_matches(['.', ':', ',']))
}
