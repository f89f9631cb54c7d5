//! What an answer says where another document says otherwise, and which of the two it follows.

use std::cmp::Ordering;

use anchorite_core::{Answer, Citation, Claim, Conflict, ConflictRule, ConflictSide, Passage, Verdict, days};

use crate::Parts;
use crate::grade::Contradiction;

/// Follows one of the two as the rule in force says, and shows the other beside it.
pub(crate) fn settle(parts: &Parts<'_>, found: Contradiction<'_>, answer: &mut Answer) {
    let rule = parts.settings.conflicts;
    let before = precedence(rule, parts.asker, found.passage, found.other);
    let borne_out = answer.claims[found.claim].citations[0].clone();
    let mut followed = side(found.passage, borne_out);
    let mut other = side(found.other, found.sentence);
    if before == Ordering::Less {
        std::mem::swap(&mut followed, &mut other);
        // What was written rests on the one that is not followed; the sentence of the other stands in its place.
        answer.answer.clone_from(&followed.citation.quote);
        answer.claims = vec![quoted(followed.citation.quote.clone(), &followed.citation)];
    }
    let decided = before != Ordering::Equal;
    let said = format!("{}{}", lead(rule, decided, &followed, &other), other.citation.quote);
    answer.answer.push('\n');
    answer.answer.push_str(&said);
    answer.claims.push(quoted(said, &other.citation));
    if !decided {
        answer.confidence /= 2.0;
    }
    answer.conflict = Some(Conflict { rule, decided, followed, other });
}

/// How `one` stands to `two` by the rule: `Equal` if it can't tell.
fn precedence(rule: ConflictRule, asker: Option<&str>, one: &Passage, two: &Passage) -> Ordering {
    let own = |passage: &Passage| match asker {
        Some(asker) => passage.owner == asker,
        None => !passage.owner.is_empty(),
    };
    match rule {
        ConflictRule::Both => Ordering::Equal,
        // What was taken in on one day is of one age.
        ConflictRule::Newest if one.dated == 0 || two.dated == 0 => Ordering::Equal,
        ConflictRule::Newest => days::day(one.dated).cmp(&days::day(two.dated)),
        ConflictRule::Owner => own(one).cmp(&own(two)),
    }
}

fn side(passage: &Passage, citation: Citation) -> ConflictSide {
    let dated = if passage.dated == 0 { String::new() } else { days::day(passage.dated) };
    ConflictSide { citation, dated, owner: passage.owner.clone() }
}

fn quoted(text: String, citation: &Citation) -> Claim {
    Claim { text, verdict: Verdict::Supported, confidence: 1.0, citations: vec![citation.clone()] }
}

/// How the other document is brought in: with the rule that decided, or the days where they differ.
fn lead(rule: ConflictRule, decided: bool, followed: &ConflictSide, other: &ConflictSide) -> String {
    match (rule, decided) {
        (ConflictRule::Newest, true) => {
            format!(
                "An older document, of {}, says otherwise (the newest is followed, of {}): ",
                other.dated, followed.dated
            )
        }
        (ConflictRule::Owner, true) if other.owner.is_empty() => {
            format!("A document that is nobody's says otherwise (what is {}'s is followed): ", followed.owner)
        }
        (ConflictRule::Owner, true) => {
            format!("A document of {} says otherwise (what is {}'s is followed): ", other.owner, followed.owner)
        }
        _ if !other.dated.is_empty() && !followed.dated.is_empty() && other.dated != followed.dated => {
            format!("Another document says otherwise, of {} (the above is of {}): ", other.dated, followed.dated)
        }
        _ => "Another document says otherwise: ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use anchorite_core::Scores;

    use super::*;

    const DAY: i64 = 86_400_000;

    fn passage(document: i64, dated: i64, owner: &str) -> Passage {
        Passage {
            chunk: document,
            document,
            source: format!("{document}.txt"),
            title: String::new(),
            start: 0,
            end: 1,
            text: "x".to_owned(),
            dated,
            owner: owner.to_owned(),
            scores: Scores::default(),
        }
    }

    #[test]
    fn m37_the_newer_day_goes_before_and_one_day_is_one_age() {
        let stands = |one, two| precedence(ConflictRule::Newest, None, &passage(1, one, ""), &passage(2, two, ""));
        assert_eq!(stands(9 * DAY, 3 * DAY), Ordering::Greater);
        assert_eq!(stands(3 * DAY, 9 * DAY), Ordering::Less);
        assert_eq!(stands(3 * DAY + 5, 3 * DAY), Ordering::Equal);
        assert_eq!(stands(0, 3 * DAY), Ordering::Equal, "of a day that is not known");
    }

    #[test]
    fn m37_what_is_the_askers_goes_before() {
        let stands = |asker, one, two| {
            precedence(ConflictRule::Owner, asker, &passage(1, 9 * DAY, one), &passage(2, 3 * DAY, two))
        };
        assert_eq!(stands(Some("ann"), "bob", "ann"), Ordering::Less);
        assert_eq!(stands(Some("ann"), "bob", ""), Ordering::Equal);
        assert_eq!(stands(None, "bob", ""), Ordering::Greater);
        assert_eq!(precedence(ConflictRule::Both, None, &passage(1, DAY, "a"), &passage(2, 0, "")), Ordering::Equal);
    }
}
