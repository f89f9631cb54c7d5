//! Notes for questions: the right one or none.

use proptest::prelude::*;

use super::tier_tests::{RULE_SENTENCE, SEED_WORDING};
use super::*;

pub(super) const QUESTION: &str = "How much can I receive if I am denied boarding, for flights from Delhi to Munich?";
pub(super) const DELHI: &str = "Distance between cities. The flight distance between Munich and Delhi is 5,931 km.";
pub(super) const ROME: &str = "Distance between cities. The flight distance between Munich and Rome is 699 km.";
const MUMBAI: &str = "Distance between cities. The flight distance between Delhi and Mumbai is 1,148 km.";
pub(super) const STATES: &str = "United States rules on bumping. A passenger bumped against their will on a domestic flight receives \
    200 percent of the one-way fare, at most 775 USD, if the replacement lands one to two hours late, and 400 percent, \
    at most 1,550 USD, if it lands later than that.";
const SCOPE: &str = "European Union air passenger rules, which flights count. The rules cover every flight leaving an \
    airport in the EU, whatever the airline, and flights arriving in the EU from elsewhere when an EU airline operates them.";

fn texts(question: &str, passages: &[&str]) -> Vec<String> {
    notes(question, passages).into_iter().map(|note| note.text).collect()
}

#[test]
fn m53_the_distance_asked_about_picks_the_tier() {
    let found = notes(QUESTION, &[RULE_SENTENCE, DELHI, ROME, MUMBAI, STATES, SCOPE]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(
        found[0].text,
        "Computed: 5,931 km (the flight distance between Munich and Delhi) is more than 3,500 km, so the tier is \
         \"more than 3,500 km\": 600 EUR."
    );
    assert_eq!(found[0].kind, NoteKind::Tier);
    assert_eq!(found[0].sources.iter().map(|place| place.0).collect::<Vec<_>>(), [0, 1]);
    assert!(DELHI[found[0].sources[1].1.clone()].starts_with("5,931 km"));
    assert!(undetermined(QUESTION, &[RULE_SENTENCE, DELHI, ROME, MUMBAI, STATES, SCOPE]).is_empty());
}

#[test]
fn m53_the_wording_of_the_article_and_of_the_question_in_small_letters_lead_to_the_same_tier() {
    for question in [
        QUESTION,
        "how much can i receive if i am denied boarding, for flights from delhi to munich?",
        "How high is the compensation if boarding is denied on flights from Delhi to Munich?",
        "How much can I receive if I am denied boarding, for flights from Delhi to Munich? The airline is an EU airline.",
    ] {
        for rule in [RULE_SENTENCE, SEED_WORDING] {
            let found = texts(question, &[rule, ROME, DELHI, STATES]);
            assert_eq!(found.len(), 1, "{question}: {found:?}");
            assert!(found[0].ends_with("600 EUR."), "{found:?}");
        }
    }
}

#[test]
fn m53_without_the_distance_there_is_no_note_and_the_distance_is_named_as_missing() {
    for question in [QUESTION, "how much can i receive if i am denied boarding, for flights from delhi to munich?"] {
        let passages = [RULE_SENTENCE, ROME, MUMBAI, STATES];
        assert_eq!(texts(question, &passages), Vec::<String>::new());
        let missing = undetermined(question, &passages);
        assert_eq!(missing.len(), 1, "{missing:#?}");
        assert_eq!(missing[0].passage, 0);
        assert_eq!(missing[0].dimension, Dimension::Length);
        assert_eq!(missing[0].what, "distance");
        assert_eq!(missing[0].about.as_deref().map(str::to_lowercase), Some("delhi and munich".to_owned()));
    }
}

#[rustfmt::skip]
const DISTANCES: &[(&str, &str, u32)] = &[
    ("Munich", "Delhi", 5931), ("Munich", "Rome", 699), ("Munich", "Lisbon", 1963), ("Munich", "New York", 6488),
    ("Munich", "Athens", 1495), ("Munich", "Oslo", 1314), ("Munich", "Tokyo", 9380), ("Munich", "Cairo", 2620),
    ("Munich", "Madrid", 1486), ("Delhi", "Mumbai", 1148), ("Delhi", "London", 6713), ("Delhi", "Paris", 6594),
    ("Delhi", "Bangkok", 2919), ("Delhi", "Dubai", 2196), ("Delhi", "Singapore", 4150), ("Paris", "Berlin", 878),
    ("London", "Dublin", 464), ("Frankfurt", "Vienna", 598), ("Boston", "Chicago", 1370),
];

#[test]
fn m53_among_many_distances_each_question_finds_its_own_or_is_told_what_is_missing() {
    for (left_out, (from, to, kilometres)) in DISTANCES.iter().enumerate() {
        let texts: Vec<String> = DISTANCES
            .iter()
            .map(|(start, end, length)| {
                let length = super::model::format_number(f64::from(*length), 0);
                format!("Distance between cities. The flight distance between {start} and {end} is {length} km.")
            })
            .collect();
        let question = format!("how much can I receive if I am denied boarding, for flights from {to} to {from}?");
        let mut passages = vec![RULE_SENTENCE, STATES, SCOPE];
        passages.extend(texts.iter().map(String::as_str));
        let found = notes(&question, &passages);
        assert_eq!(found.len(), 1, "{question}: {found:#?}");
        let expected = if *kilometres <= 1500 {
            250.0
        } else if *kilometres <= 3500 {
            400.0
        } else {
            600.0
        };
        let Some(Outcome::Quantity(amount)) = &found[0].outcome else { panic!("an amount") };
        assert_eq!(amount.base_value(), Some(expected), "{question}");
        passages.remove(3 + left_out);
        assert_eq!(notes(&question, &passages), Vec::new(), "{question}");
        let missing = undetermined(&question, &passages);
        assert_eq!(missing.len(), 1, "{question}");
        assert_eq!(missing[0].about, Some(format!("{to} and {from}")));
    }
}

#[test]
fn m53_a_value_in_the_question_decides_the_rule() {
    let found = texts("How much do I get for a cancelled flight of 2,000 km?", &[RULE_SENTENCE, ROME]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("2,000 km (given in the question)") && found[0].ends_with("400 EUR."), "{found:?}");
}

#[test]
fn m53_another_unit_is_converted_and_a_second_reading_is_the_same_value() {
    let miles = "The flight distance between Delhi and Munich is 3,685 miles.";
    let found = texts(QUESTION, &[RULE_SENTENCE, miles, DELHI]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("5,931 km"), "{found:?}");
    let found = texts(QUESTION, &[RULE_SENTENCE, miles]);
    assert!(found[0].contains("3,685 miles, or 5,930 km"), "{found:?}");
}

#[test]
fn m53_values_that_disagree_each_give_a_note_of_their_own() {
    let north = "The flight distance between Delhi and Munich over the north is 3,400 km.";
    let south = "The flight distance between Delhi and Munich over the south is 5,931 km.";
    let found = texts(QUESTION, &[RULE_SENTENCE, north, south]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("over the north") && found[0].ends_with("400 EUR."), "{found:?}");
    assert!(found[1].contains("over the south") && found[1].ends_with("600 EUR."), "{found:?}");
}

#[test]
fn m53_a_value_at_the_edge_of_its_precision_gives_no_note() {
    let rounded = "The flight distance between Delhi and Munich is about 3,500 km.";
    assert_eq!(texts(QUESTION, &[RULE_SENTENCE, rounded]), Vec::<String>::new());
    assert_eq!(undetermined(QUESTION, &[RULE_SENTENCE, rounded]).len(), 1);
}

#[test]
fn m53_lengths_of_something_else_do_not_pick_a_tier() {
    for text in [
        "The runway used for flights from Munich to Delhi is 4,000 m long.",
        "Flights between Munich and Delhi cruise at an altitude of 11 km.",
        "The distances from Munich to Delhi and to Rome are 5,931 km and 699 km respectively.",
        "Munich is 504 km from Berlin. Delhi lies in India.",
    ] {
        assert_eq!(texts(QUESTION, &[RULE_SENTENCE, text]), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn m53_a_list_of_distances_under_a_heading_is_read_line_by_line() {
    let list = "Flight distances from Munich:\n- Rome: 699 km\n- Delhi: 5,931 km\n- Oslo: 1,314 km";
    let found = texts(QUESTION, &[RULE_SENTENCE, list]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("Computed: 5,931 km (") && found[0].ends_with("600 EUR."), "{found:?}");
    let sentence = "The flight distance from Munich to Rome is 699 km, and from Munich to Delhi it is 5,931 km.";
    let found = texts(QUESTION, &[RULE_SENTENCE, sentence]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("600 EUR."), "{found:?}");
}

#[test]
fn m53_wind_speed_picks_the_category() {
    let scale = "- Category 1: 119–153 km/h\n- Category 2: 154–177 km/h\n- Category 3: 178–208 km/h\n- Category 4: 209–251 \
        km/h\n- Category 5: 252 km/h or higher";
    let storm = "Hurricane Ida made landfall with sustained winds of 150 mph.";
    let other = "Hurricane Zeta made landfall with sustained winds of 185 km/h.";
    let found = texts("Which category was Hurricane Ida?", &[scale, storm, other]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("Category 4."), "{found:?}");
    let missing = undetermined("Which category was Hurricane Ida?", &[scale, other]);
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].what, "speed");
}

#[test]
fn m53_a_german_question_finds_its_tier() {
    let rule = "Die Ausgleichszahlung ist 250 Euro bei Flügen bis zu 1.500 km, 400 Euro bei Flügen zwischen 1.500 und 3.500 km \
        und 600 Euro bei Flügen über 3.500 km.";
    let distance = "Die Entfernung zwischen München und Delhi ist 5.931 km und wird nicht gerundet.";
    let other = "Die Entfernung zwischen München und Rom ist 699 km und wird nicht gerundet.";
    let question = "Wie viel Ausgleichszahlung bekomme ich bei Flügen von Delhi nach München?";
    let found = texts(question, &[rule, other, distance]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("Computed: 5.931 km (") && found[0].ends_with("600 EUR."), "{found:?}");
    assert_eq!(texts(question, &[rule, other]), Vec::<String>::new());
}

#[test]
fn m53_a_name_within_a_longer_name_is_another_name() {
    let texts_for = |question: &str, text: &str| texts(question, &[RULE_SENTENCE, text]);
    let question = "How much do I get for an overbooked flight from York to Munich?";
    assert_eq!(
        texts_for(question, "The flight distance between Munich and New York is 6,488 km."),
        Vec::<String>::new()
    );
    assert_eq!(texts_for(question, "The flight distance between Munich and York is 1,100 km.").len(), 1);
    let peaks = ["Gasherbrum III is 7,952 m high.", "Manaslu is 8,163 m high."];
    assert_eq!(texts("Which peak is higher, Gasherbrum or Manaslu?", &peaks), Vec::<String>::new());
    assert_eq!(texts("Which peak is higher, Gasherbrum III or Manaslu?", &peaks).len(), 1);
}

#[test]
fn m53_a_special_case_is_told_with_the_tier() {
    let regulation = "Passengers of flights shall receive:\n(a) EUR 250 for all flights of 1500 kilometres or less;\n(b) EUR \
        400 for all intra-Community flights of more than 1500 kilometres, and for all other flights between 1500 and 3500 \
        kilometres;\n(c) EUR 600 for all flights not falling under (a) or (b).";
    let found = texts(QUESTION, &[regulation, DELHI]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("600 EUR (special case in the text: \"EUR 400 for all intra-Community flights"),
        "{found:?}"
    );
}

const PEAKS: [&str; 2] =
    ["Kilimanjaro, in Tanzania, is 5,895 m high.", "Mont Blanc is 4,808 m high. It lies in the Alps."];

#[test]
fn m53_differences_and_comparisons_are_computed() {
    assert_eq!(
        texts("How much higher is Kilimanjaro than Mont Blanc?", &PEAKS),
        ["Computed: 5,895 m − 4,808 m = 1,087 m (Kilimanjaro − Mont Blanc)."]
    );
    let found = notes("Which mountain is higher, Mont Blanc or Kilimanjaro?", &PEAKS);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].text, "Computed: 5,895 m (Kilimanjaro) is more than 4,808 m (Mont Blanc).");
    assert_eq!(found[0].outcome, Some(Outcome::Label("Kilimanjaro".to_owned())));
    assert_eq!(
        texts(
            "How many years between the birth of Einstein and Bohr?",
            &["Albert Einstein was born in 1879.", "Niels Bohr was born in 1885."]
        ),
        ["Computed: 1885 − 1879 = 6 years (Bohr − Einstein)."]
    );
    let who = notes(
        "Who was born earlier, Einstein or Bohr?",
        &["Albert Einstein was born in 1879.", "Niels Bohr was born in 1885."],
    );
    assert_eq!(who[0].outcome, Some(Outcome::Label("Einstein".to_owned())));
    assert_eq!(
        texts(
            "What is the combined population of Bonn and Ulm?",
            &["Bonn has a population of 330,000 people.", "Ulm has a population of 127,000 people."]
        ),
        ["Computed: 330,000 people + 127,000 people = 457,000 people (Bonn + Ulm)."]
    );
}

#[test]
fn m53_an_unclear_comparison_gives_no_note() {
    let contradicting = [PEAKS[0], PEAKS[1], "Other books say Kilimanjaro is 5,892 m high."];
    assert_eq!(texts("How much higher is Kilimanjaro than Mont Blanc?", &contradicting), Vec::<String>::new());
    assert_eq!(texts("How much higher is Kilimanjaro than Elbrus?", &PEAKS), Vec::<String>::new());
    assert_eq!(texts("Is Kilimanjaro nice?", &PEAKS), Vec::<String>::new());
    assert_eq!(texts("How much higher is it?", &PEAKS), Vec::<String>::new());
}

#[test]
fn m53_a_note_survives_serialisation() {
    let found = notes(QUESTION, &[RULE_SENTENCE, DELHI]);
    let text = serde_json::to_string(&found).expect("notes hold only plain values");
    assert_eq!(serde_json::from_str::<Vec<Note>>(&text).expect("it was written by the same types"), found);
}

proptest! {
    #[test]
    fn m53_the_order_of_passages_changes_no_note(order in Just(vec![RULE_SENTENCE, DELHI, ROME, MUMBAI, STATES]).prop_shuffle()) {
        let found = texts(QUESTION, &order);
        prop_assert_eq!(found.len(), 1);
        prop_assert!(found[0].ends_with("600 EUR."));
    }

    #[test]
    fn m53_every_distance_falls_in_its_tier(kilometres in 1u32..20_000) {
        let passage = format!("The flight distance between Munich and Delhi is {kilometres} km.");
        let found = notes(QUESTION, &[RULE_SENTENCE, &passage]);
        prop_assert_eq!(found.len(), 1);
        let expected = if kilometres <= 1500 { 250.0 } else if kilometres <= 3500 { 400.0 } else { 600.0 };
        let Some(Outcome::Quantity(amount)) = &found[0].outcome else { panic!("an amount") };
        prop_assert_eq!(amount.base_value(), Some(expected));
    }

    #[test]
    fn m53_no_question_or_passage_breaks_the_notes(question in "\\PC{0,60}", passage in "\\PC{0,120}") {
        let passages = [RULE_SENTENCE, passage.as_str()];
        let _ = undetermined(&question, &passages);
        for note in notes(&question, &passages) {
            for (index, span) in note.sources {
                prop_assert!(passages[index].get(span).is_some());
            }
        }
    }
}
