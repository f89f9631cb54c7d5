//! Claims against evidence: wrong numbers and unfounded tiers are told, right claims pass.

use proptest::prelude::*;

use super::note_tests::{DELHI, QUESTION, ROME, STATES};
use super::tier_tests::{RULE_SENTENCE, SEED_WORDING};
use super::*;
use DiscrepancyKind::{ContradictsComputed, NumberNotInEvidence, UnestablishedTier, UnitMismatch};

fn kinds(claim: &str, question: &str, evidence: &[&str]) -> Vec<DiscrepancyKind> {
    let notes = notes(question, evidence);
    let found = check_claim(claim, question, evidence, &notes);
    for one in &found {
        assert!(claim.get(one.span.clone()).is_some() && !one.message.is_empty());
    }
    found.into_iter().map(|one| one.kind).collect()
}

const FULL: [&str; 4] = [RULE_SENTENCE, DELHI, ROME, STATES];
const WITHOUT: [&str; 3] = [RULE_SENTENCE, ROME, STATES];

#[test]
fn m53_the_computed_tier_passes_and_every_other_is_a_contradiction() {
    let clean: [DiscrepancyKind; 0] = [];
    for claim in [
        "You receive 600 EUR because 5,931 km is more than 3,500 km.",
        "You can receive 600 EUR.",
        "You can receive €600.",
        "You are owed 600 euros, as the flight distance from Delhi to Munich (3,685 miles) is over 3,500 km.",
        "The rule gives 250 EUR for up to 1,500 km, 400 EUR for more than 1,500 km and up to 3,500 km, and 600 EUR for more than 3,500 km.",
        "Flights of up to 1,500 km give 250 EUR.",
        "You receive 250, 400 or 600 EUR depending on the distance.",
        "You can receive up to 600 EUR.",
        "Based on the flight distance of 5,931 km, which falls into the long-distance category (over 3,500 km), you are due 600 Euro.",
        "You do not get 250 EUR but 600 EUR.",
        "Passengers may be refused boarding when the flight is overbooked.",
    ] {
        assert_eq!(kinds(claim, QUESTION, &FULL), clean, "{claim}");
    }
    for claim in [
        "You can receive 400 EUR.",
        "You receive 400 EUR because 5,931 km is between 1,500 and 3,500 km.",
        "You receive 250 EUR, since the distance is 5,931 km.",
        "Flights of more than 3,500 km give 400 EUR.",
    ] {
        assert_eq!(kinds(claim, QUESTION, &FULL), [ContradictsComputed], "{claim}");
    }
}

#[test]
fn m53_without_the_distance_no_tier_may_be_picked() {
    for evidence in [&WITHOUT[..], &[SEED_WORDING, ROME]] {
        for claim in [
            "You can receive 250 EUR.",
            "You can receive 600 EUR.",
            "For flights from Delhi to Munich you receive 400 EUR.",
            "You receive 250 EUR since the distance is 699 km.",
        ] {
            assert_eq!(kinds(claim, QUESTION, evidence), [UnestablishedTier], "{claim}");
        }
        for claim in [
            "You receive 250 EUR for flights of up to 1,500 km and 600 EUR for flights of more than 3,500 km.",
            "250 EUR for up to 1,500 km.",
            "The amount depends on the distance, which is not given.",
            "A flight between Munich and Rome (699 km) would give 250 EUR.",
        ] {
            assert_eq!(kinds(claim, QUESTION, evidence), Vec::new(), "{claim}");
        }
    }
    let message = &check_claim("You can receive 250 EUR.", QUESTION, &WITHOUT, &[])[0].message;
    assert_eq!(message, "\"250 EUR\" holds only for up to 1,500 km, and the evidence does not establish the distance.");
}

#[test]
fn m53_a_condition_set_by_the_question_is_enough() {
    let question = "How much is owed for overbooked flights of more than 3,500 km?";
    assert_eq!(kinds("600 EUR is owed.", question, &[RULE_SENTENCE]), Vec::new());
    assert_eq!(kinds("250 EUR is owed.", question, &[RULE_SENTENCE]), [ContradictsComputed]);
    assert_eq!(
        kinds("250 EUR is owed.", "How much is owed for short overbooked flights?", &[RULE_SENTENCE]),
        Vec::new()
    );
}

#[test]
fn m53_numbers_that_are_not_in_the_evidence_are_told() {
    let evidence =
        ["The tower was opened on 31 March 1889. It is 330 m high, weighs 10,100 tonnes and has three floors. \
        A ticket costs 29.40 EUR. In 2022 it had 5.9 million visitors."];
    let question = "Tell me about the tower.";
    for (claim, expected) in [
        ("It is 330 metres high.", vec![]),
        ("It is 1,083 feet high.", vec![]),
        ("It is 324 m high.", vec![NumberNotInEvidence]),
        ("It opened in 1889.", vec![]),
        ("It opened in March 1889.", vec![]),
        ("It opened on 30 March 1889.", vec![NumberNotInEvidence]),
        ("It opened in 1887.", vec![NumberNotInEvidence]),
        ("It weighs 330 kg.", vec![UnitMismatch]),
        ("A ticket costs 29.40 USD.", vec![UnitMismatch]),
        ("A ticket costs €29.40.", vec![]),
        ("It had 5,900,000 visitors in 2022.", vec![]),
        ("It had 5,911,000 visitors.", vec![]),
        ("It had 6.9 million visitors.", vec![NumberNotInEvidence]),
        ("It has three floors.", vec![]),
        ("It has four floors.", vec![NumberNotInEvidence]),
        ("There are two reasons to go.", vec![]),
        ("It had been there for 133 years in 2022, since 1889.", vec![]),
        ("It has existed for 140 years, from 1889 on.", vec![NumberNotInEvidence]),
    ] {
        assert_eq!(kinds(claim, question, &evidence), expected, "{claim}");
    }
}

#[test]
fn m53_numbers_of_the_question_and_of_notes_count_as_known() {
    let peaks = ["Kilimanjaro, in Tanzania, is 5,895 m high.", "Mont Blanc is 4,808 m high."];
    let question = "How much higher is Kilimanjaro than Mont Blanc?";
    assert_eq!(kinds("It is 1,087 m higher.", question, &peaks), Vec::new());
    assert_eq!(kinds("It is 1,187 m higher.", question, &peaks), [NumberNotInEvidence]);
    assert_eq!(
        kinds("For 2,000 km you get 400 EUR.", "How much for a flight of 2,000 km?", &[RULE_SENTENCE]),
        Vec::new()
    );
    assert_eq!(
        kinds("For 2,000 km you get 600 EUR.", "How much for a flight of 2,000 km?", &[RULE_SENTENCE]),
        [ContradictsComputed]
    );
}

#[test]
fn m53_labels_of_categories_are_checked_like_amounts() {
    let scale = "- Category 1: 119–153 km/h\n- Category 2: 154–177 km/h\n- Category 3: 178–208 km/h\n- Category 4: 209–251 \
        km/h\n- Category 5: 252 km/h or higher";
    let storm = "Hurricane Ida made landfall with sustained winds of 240 km/h.";
    let question = "Which category was Hurricane Ida?";
    assert_eq!(kinds("Ida was a Category 4 hurricane.", question, &[scale, storm]), Vec::new());
    assert_eq!(kinds("Ida was a category 3 hurricane.", question, &[scale, storm]), [ContradictsComputed]);
    assert_eq!(kinds("Ida was a Category 3 hurricane.", question, &[scale]), [UnestablishedTier]);
    assert_eq!(kinds("Category 3 means winds of 178–208 km/h.", question, &[scale]), Vec::new());
}

proptest! {
    #[test]
    fn m53_no_claim_breaks_the_check(claim in "\\PC{0,120}") {
        for one in check_claim(&claim, QUESTION, &FULL, &[]) {
            prop_assert!(claim.get(one.span).is_some());
        }
    }

    #[test]
    fn m53_a_sentence_of_the_evidence_is_borne_out_by_it(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "The road is 12 km long. ", "It cost 3.5 million EUR. ", "In 1997 it opened. ", "About 20 % use it. ",
                "It was −5 °C then. ", "Between 10 and 20 people came. ", "It took 2 hours 30 minutes. ", "On 3 May 2001. ",
            ]),
            1..5,
        )
    ) {
        let text = pieces.concat();
        prop_assert_eq!(check_claim(&text, "What of the road?", &[text.as_str()], &[]), Vec::new());
    }
}
