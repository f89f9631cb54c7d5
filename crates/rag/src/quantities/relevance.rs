//! Which quantity of the evidence a question means: names shared, aspect measured, words in common.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::asked::is_of_moment;
use super::extract::{Scan, scan};
use super::model::{Bound, Quantity};
use super::numbers::{Style, style_of};
use super::source::{Scope, Source, mentions, speaks_of};
use super::tiers::Rule;
use super::units::Dimension;
use super::words::{Name, content_stems, is_stop_word, names_of, words_of};

/// A question read once.
pub(super) struct Question<'q> {
    pub(super) text: &'q str,
    pub(super) scan: Scan,
    pub(super) names: Vec<Name>,
    pub(super) stems: HashSet<String>,
    /// "from A to B": both ends must be met.
    pub(super) route: Option<(Name, Name)>,
}

impl<'q> Question<'q> {
    pub(super) fn read(text: &'q str, sources: &[Source<'_>]) -> Question<'q> {
        let scan = scan(text);
        let mut names = names_of(text, 0..text.len());
        let proper = proper_words(sources);
        for word in words_of(text, 0..text.len()) {
            let known = names.iter().any(|name| name.span.start <= word.span.start && word.span.end <= name.span.end);
            if !known && !word.capitalised && proper.contains(&word.lower) && !is_stop_word(&word.lower) {
                names.push(single(text, word.span.clone()));
            }
        }
        names.sort_by_key(|name| name.span.start);
        let route = route_of(text, &names).filter(|route| !is_term(route, sources));
        if let Some((start, end)) = &route {
            for name in [start, end] {
                if !names.iter().any(|known| known.words == name.words) {
                    names.push(name.clone());
                }
            }
        }
        names.sort_by_key(|name| name.span.start);
        // Where every noun is capitalised, only the ends of the way are known to be names.
        if style_of(text) == Style::Continental
            && let Some((start, end)) = &route
        {
            names.retain(|name| name.words == start.words || name.words == end.words);
        }
        let name_words: HashSet<&String> = names.iter().flat_map(|name| &name.words).collect();
        let stems = words_of(text, 0..text.len())
            .iter()
            .filter(|word| !name_words.contains(&word.lower))
            .flat_map(|word| content_stems(text, word.span.clone()))
            .collect();
        Question { text, scan, names, stems, route }
    }

    /// The names a quantity must be about: those the rule itself does not speak of.
    pub(super) fn required(&self, rule_source: &Source<'_>) -> Vec<&Name> {
        self.names.iter().filter(|name| !speaks_of(rule_source, name)).collect()
    }

    /// What the question is about, for "the distance … Delhi and Munich": what the rule itself does not speak of.
    pub(super) fn about(&self, rule_source: &Source<'_>) -> Option<String> {
        if let Some((start, end)) = &self.route {
            return Some(format!("{} and {}", start.text, end.text));
        }
        let names: Vec<&str> = self.required(rule_source).iter().map(|name| name.text.as_str()).collect();
        (!names.is_empty() && names.len() <= 4).then(|| names.join(", "))
    }

    /// The words in lower case.
    pub(super) fn words(&self) -> Vec<String> {
        words_of(self.text, 0..self.text.len()).into_iter().map(|word| word.lower).collect()
    }

    /// Whether the question names places that a distance could lie between, or nothing that would be its own subject.
    pub(super) fn has_way(&self, rule_source: &Source<'_>) -> bool {
        let leads = |name: &&Name| {
            let before = self.text[..name.span.start].trim_end().to_lowercase();
            ["from", "to", "between", "into", "nach", "von", "zwischen"]
                .iter()
                .any(|word| before.strip_suffix(word).is_some_and(|head| !head.ends_with(char::is_alphanumeric)))
        };
        let required = self.required(rule_source);
        self.route.is_some() || required.is_empty() || required.iter().any(leads)
    }
}

/// "Saffir-Simpson" is no way from Saffir to Simpson where a passage with a rule writes it with the same hyphen.
fn is_term(route: &(Name, Name), sources: &[Source<'_>]) -> bool {
    let term = |mark: &str| format!("{}{mark}{}", route.0.text, route.1.text);
    let terms = [term("-"), term("–"), term("‑")];
    sources.iter().any(|source| !source.rules.is_empty() && terms.iter().any(|term| source.text.contains(term)))
}

fn single(text: &str, span: Range<usize>) -> Name {
    let written = &text[span.clone()];
    Name { text: written.to_owned(), words: vec![written.to_lowercase()], span }
}

/// Words that the passages write with a capital within sentences, and never without.
fn proper_words(sources: &[Source<'_>]) -> HashSet<String> {
    let mut proper: HashMap<String, bool> = HashMap::new();
    for source in sources {
        for word in words_of(source.text, 0..source.text.len()) {
            if word.capitalised && word.initial {
                continue;
            }
            let entry = proper.entry(word.lower).or_insert(true);
            *entry &= word.capitalised;
        }
    }
    proper.into_iter().filter(|(_, always)| *always).map(|(word, _)| word).collect()
}

/// "from A to B", "between A and B", "von A nach B", "A to B", "A–B"; in lower case only with both words.
fn route_of(text: &str, names: &[Name]) -> Option<(Name, Name)> {
    for pair in names.windows(2) {
        let between = text.get(pair[0].span.end..pair[1].span.start).unwrap_or("").trim();
        let before = text[..pair[0].span.start].trim_end().to_lowercase();
        let hyphen = text.get(pair[0].span.end..pair[1].span.start).is_some_and(|gap| matches!(gap, "-" | "–" | "‑"));
        let joined = matches!(between, "to" | "nach" | "–" | "-" | "‑" | "→" | "bis")
            && (!hyphen || speaks_of_travel(text))
            || matches!(between, "and" | "und") && (before.ends_with("between") || before.ends_with("zwischen"));
        if joined {
            return Some((pair[0].clone(), pair[1].clone()));
        }
    }
    let words = words_of(text, 0..text.len());
    for (index, word) in words.iter().enumerate() {
        let joint = match word.lower.as_str() {
            "from" => "to",
            "between" => "and",
            "von" => "nach",
            _ => continue,
        };
        let end = words[index + 1..].iter().take(4).position(|next| next.lower == joint).map(|at| index + 1 + at);
        let Some(end) = end.filter(|end| *end > index + 1 && end + 1 < words.len()) else { continue };
        let starts = &words[index + 1..end];
        let target = &words[end + 1];
        let plain = |word: &super::words::Word| {
            !is_stop_word(&word.lower)
                && word.lower.chars().all(char::is_alphabetic)
                && super::number_words::words_at(&word.lower, 0).is_none()
                && !super::units::is_unit_word(&word.lower)
        };
        if starts.iter().all(plain) && plain(target) {
            let span = starts[0].span.start..starts[starts.len() - 1].span.end;
            let start = Name {
                text: text[span.clone()].to_owned(),
                words: starts.iter().map(|word| word.lower.clone()).collect(),
                span,
            };
            return Some((start, single(text, target.span.clone())));
        }
    }
    None
}

/// A hyphen joins the ends of a way only where the question speaks of one: "the Munich-Delhi flight".
fn speaks_of_travel(text: &str) -> bool {
    const TRAVEL: &[&str] = &[
        "flight",
        "flights",
        "fly",
        "route",
        "trip",
        "journey",
        "travel",
        "distance",
        "far",
        "km",
        "kilometres",
        "kilometers",
        "miles",
        "train",
        "ticket",
        "flug",
        "flüge",
        "flügen",
        "strecke",
        "entfernung",
    ];
    words_of(text, 0..text.len()).iter().any(|word| TRAVEL.contains(&word.lower.as_str()))
}

/// Aspects of a dimension: (word for it, words that speak of it).
const ASPECTS: &[(Dimension, &str, &[&str])] = &[
    (
        Dimension::Length,
        "distance",
        &[
            "distance",
            "distances",
            "apart",
            "away",
            "far",
            "flight",
            "flights",
            "route",
            "journey",
            "trip",
            "travel",
            "fly",
            "flown",
            "haul",
            "entfernung",
            "strecke",
            "flügen",
            "flug",
            "flüge",
        ],
    ),
    (Dimension::Length, "height", &["height", "high", "tall", "elevation", "altitude", "summit", "höhe", "hoch"]),
    (Dimension::Length, "depth", &["depth", "deep", "tief"]),
    (Dimension::Length, "width", &["width", "wide", "diameter", "thick", "wingspan"]),
    (Dimension::Length, "length", &["length", "länge"]),
    (Dimension::Length, "structure", &["runway", "runways", "bridge", "tunnel"]),
    (Dimension::Time, "delay", &["delay", "delays", "delayed", "late", "later", "lateness", "verspätung"]),
    (Dimension::Time, "age", &["age", "aged", "old", "older", "younger", "alter"]),
    (Dimension::Time, "notice", &["notice", "advance", "informed", "notified", "cancelled"]),
    (Dimension::Time, "duration", &["duration", "takes", "took", "lasts", "lasted", "long", "longer", "dauer"]),
    (Dimension::Mass, "weight", &["weight", "weigh", "weighs", "weighing", "mass", "heavy", "gewicht"]),
    (Dimension::Money, "income", &["income", "incomes", "earn", "earnings", "salary"]),
    (Dimension::Money, "price", &["price", "prices", "order", "orders", "purchase", "value", "cost", "costs"]),
];

fn aspects_in(words: &HashSet<String>, dimension: Dimension) -> Vec<&'static str> {
    ASPECTS
        .iter()
        .filter(|row| row.0 == dimension && row.2.iter().any(|word| words.contains(*word)))
        .map(|row| row.1)
        .collect()
}

fn rule_words(source: &Source<'_>, rule: &Rule) -> HashSet<String> {
    let start = source.sentence_at(rule.span.start).map_or(rule.span.start, |index| source.sentences[index].start);
    words_of(source.text, start..rule.span.end).into_iter().map(|word| word.lower).collect()
}

/// The word for what a rule's condition measures, such as "distance".
pub(super) fn condition_word(source: &Source<'_>, rule: &Rule) -> String {
    let words = rule_words(source, rule);
    let aspects = aspects_in(&words, rule.dimension);
    // "wind speed" says more than "speed", and stands above a scale more often than within it.
    if rule.dimension == Dimension::Speed && source.stems.contains("wind") {
        return "wind speed".to_owned();
    }
    (*aspects.first().unwrap_or(&rule.dimension.word())).to_owned()
}

/// Whether what a quantity measures is what the rule's condition measures.
pub(super) fn aspect_fits(source: &Source<'_>, rule: &Rule, text: &str, scope: &Scope) -> bool {
    let rule_aspects = aspects_in(&rule_words(source, rule), rule.dimension);
    let words: HashSet<String> = scope.words(text);
    let found = aspects_in(&words, rule.dimension);
    match rule.dimension {
        Dimension::Length => {
            // A distance rule takes no runway length; a place between two names needs no word for distance.
            let is_line = words.contains("circle") || words.contains("line");
            let other = found.iter().any(|aspect| !(rule_aspects.contains(aspect) || *aspect == "length" && is_line));
            rule_aspects.is_empty() && found.is_empty() || !other
        }
        Dimension::Time if !rule_aspects.is_empty() => found.iter().any(|aspect| rule_aspects.contains(aspect)),
        Dimension::Speed | Dimension::Temperature | Dimension::Mass => true,
        _ => scope.stems(text).iter().any(|stem| source.stems.contains(stem)),
    }
}

/// A quantity that may decide a rule.
pub(super) struct Candidate {
    pub(super) passage: Option<usize>,
    pub(super) quantity: Quantity,
    pub(super) own: Range<usize>,
    score: usize,
}

/// The quantities that decide a rule for a question, the best matching only; several where they tie.
///
/// A quantity of the question itself goes before all others. Otherwise its clause must name everything the question
/// names and the rule does not.
pub(super) fn deciding_quantities(
    question: &Question<'_>,
    sources: &[Source<'_>],
    rule_source: &Source<'_>,
    rule: &Rule,
) -> Vec<Candidate> {
    let fits_unit = |quantity: &Quantity| {
        quantity.bound == Bound::Exact
            && quantity.dimension() == rule.dimension
            && (rule.dimension != Dimension::Money || quantity.unit.symbol == rule.unit.symbol)
            && (rule.dimension != Dimension::Count || quantity.unit.symbol == rule.unit.symbol)
    };
    let asked: Vec<Candidate> = question
        .scan
        .quantities
        .iter()
        .filter(|quantity| fits_unit(quantity))
        .filter(|_| {
            let whole = 0..question.text.len();
            let scope = Scope { own: whole.clone(), parts: vec![whole] };
            aspect_fits(rule_source, rule, question.text, &scope)
        })
        .map(|quantity| Candidate { passage: None, quantity: quantity.clone(), own: 0..question.text.len(), score: 0 })
        .collect();
    if !asked.is_empty() {
        let agree = asked.iter().all(|other| super::arithmetic::same(&other.quantity, &asked[0].quantity));
        return if agree { asked } else { Vec::new() };
    }
    let required = question.required(rule_source);
    if required.is_empty() {
        return Vec::new();
    }
    let mut candidates: Vec<Candidate> = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        for quantity in source.scan.quantities.iter().filter(|quantity| fits_unit(quantity)) {
            let in_rule = source
                .rules
                .iter()
                .any(|other| other.span.start <= quantity.span.start && quantity.span.end <= other.span.end);
            let own_unit = quantity.unit.is_same(&rule.unit);
            let secondary = source.scan.is_superseded(quantity) || source.scan.is_restated(quantity) && !own_unit;
            if in_rule || secondary {
                continue;
            }
            let Some(scope) = source.scope_of(quantity) else { continue };
            let (names, words) = (scope.names(source.text), scope.words(source.text));
            let named = required.iter().all(|name| mentions(&names, &words, name));
            let moment = rule.dimension != Dimension::Speed || is_of_moment(question, source.text, &scope.parts);
            if !named || !moment || !aspect_fits(rule_source, rule, source.text, &scope) {
                continue;
            }
            let score = scope.stems(source.text).intersection(&question.stems).count();
            candidates.push(Candidate { passage: Some(index), quantity: quantity.clone(), own: scope.own, score });
        }
    }
    let best = candidates.iter().map(|candidate| candidate.score).max().unwrap_or(0);
    candidates.retain(|candidate| candidate.score == best);
    candidates
}

/// How much each rule has to do with the question: rare words in common count more. Rules with nothing in common
/// are left out; the list is in the order of the passages.
pub(super) fn relevant_rules<'s>(question: &Question<'_>, sources: &'s [Source<'_>]) -> Vec<(usize, &'s Rule, f64)> {
    let mut result = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        if source.rules.is_empty() {
            continue;
        }
        let mut score = 0.0;
        let mut shared: Vec<&String> = question.stems.intersection(&source.stems).collect();
        // Floating-point sums depend on their order.
        shared.sort();
        for stem in shared {
            let with = sources.iter().filter(|other| other.stems.contains(stem)).count();
            score += (1.0 + sources.len() as f64 / with.max(1) as f64).ln();
        }
        score += question.names.iter().filter(|name| speaks_of(source, name)).count() as f64;
        if score > 0.0 {
            // A question from one place to another asks for what depends on the way between them.
            let bonus = |rule: &Rule| f64::from(question.route.is_some() && rule.dimension == Dimension::Length);
            result.extend(source.rules.iter().map(|rule| (index, rule, score + bonus(rule))));
        }
    }
    let best = result.iter().map(|entry| entry.2).fold(0.0, f64::max);
    result.retain(|entry| entry.2 >= 0.5 * best);
    result
}
