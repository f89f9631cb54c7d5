//! Wordings that a rule, a subject, an event or a portion comes in, and the traps beside them.

use proptest::prelude::*;

use super::*;

fn lines(text: &str) -> Vec<String> {
    tiers(text)
        .iter()
        .flat_map(|rule| rule.tiers.iter().map(|tier| format!("{} -> {}", tier.range, tier.outcome)))
        .collect()
}

fn texts(question: &str, passages: &[&str]) -> Vec<String> {
    notes(question, passages).into_iter().map(|note| note.text).collect()
}

const NONE: [String; 0] = [];

#[test]
fn m53_a_special_case_behind_the_general_one_is_an_exception() {
    let text = "The sum is:\n- 5 EUR for parcels of up to 2 kg;\n- 8 EUR for parcels of more than 2 kg and up to 5 kg, and for \
        parcels to the islands of more than 2 kg;\n- 12 EUR for parcels of more than 5 kg.";
    assert_eq!(
        lines(text),
        ["up to 2 kg -> 5 EUR", "more than 2 kg and up to 5 kg -> 8 EUR", "more than 5 kg -> 12 EUR"]
    );
    let rule = &tiers(text)[0];
    assert_eq!(rule.exceptions.len(), 1);
    assert_eq!(&text[rule.exceptions[0].span.clone()], "for parcels to the islands of more than 2 kg");
    let found = texts("How much do I pay for a parcel of 7 kg?", &[text]);
    assert_eq!(
        found,
        [
            "Computed: 7 kg (given in the question) is more than 5 kg, so the tier is \"more than 5 kg\": 12 EUR (special \
          case in the text: \"for parcels to the islands of more than 2 kg\": 8 EUR)."
        ]
    );
}

#[test]
fn m53_two_special_cases_with_one_outcome_are_no_tier() {
    // Which of the two is meant for everybody else is not said.
    let text = "- 8 EUR for parcels to the islands of more than 2 kg, and for parcels to the mountains of up to 5 kg;\n- 12 \
        EUR for parcels of more than 5 kg.";
    assert_eq!(lines(text), NONE);
}

#[test]
fn m53_a_value_between_two_tiers_is_neither_claimed_nor_asked_for() {
    let text = "You are owed 250 EUR for flights of up to 1,500 km and 600 EUR for flights of more than 3,500 km.";
    let question = "How much am I owed for a cancelled flight from Munich to Cairo?";
    let about = |kilometres: &str| format!("The distance between Munich and Cairo is {kilometres} km.");
    assert_eq!(texts(question, &[text, &about("2,616")]), NONE);
    assert_eq!(undetermined(question, &[text, &about("2,616")]), Vec::new());
    assert_eq!(texts(question, &[text, &about("4,000")]).len(), 1);
    assert_eq!(undetermined(question, &[text]).len(), 1);
}

#[test]
fn m53_a_comparative_states_what_lies_beyond() {
    assert_eq!(
        lines(
            "The share is 30 percent for flights of up to 1,500 km, 50 percent for flights of more than 1,500 km and up to \
             3,500 km, and 75 percent for longer ones. For flights within the Union of more than 1,500 km it is 50 percent."
        ),
        ["up to 1,500 km -> 30%", "more than 1,500 km and up to 3,500 km -> 50%", "more than 3,500 km -> 75%"]
    );
    assert_eq!(
        lines("Postage is 9 EUR for parcels of more than 2 kg and 5 EUR for lighter parcels."),
        ["more than 2 kg -> 9 EUR", "up to 2 kg -> 5 EUR"]
    );
    assert_eq!(
        lines("Postage is 5 EUR for parcels of up to 2 kg and 9 EUR for anything heavier."),
        ["up to 2 kg -> 5 EUR", "more than 2 kg -> 9 EUR"]
    );
}

#[test]
fn m53_a_comparative_of_something_else_is_no_tier() {
    for text in [
        // Another thing, another dimension, a comparison of its own.
        "Postage is 5 EUR for parcels of up to 2 kg and 9 EUR for heavier letters.",
        "Postage is 5 EUR for parcels of up to 2 kg and 9 EUR for longer parcels.",
        "Postage is 5 EUR for parcels of up to 2 kg and 9 EUR for heavier parcels than yours.",
    ] {
        assert_eq!(lines(text), NONE, "{text}");
    }
}

#[test]
fn m53_limits_for_different_things_are_not_nested() {
    let text = "A bag costs 20 EUR for up to 23 kg in Economy, and 50 EUR for up to 32 kg in Business.";
    let named = "It costs 20 EUR for Economy bags of up to 23 kg, 50 EUR for Business bags of up to 32 kg.";
    assert_eq!(lines(named), NONE);
    assert!(lines(text).len() < 2 || !lines(text)[1].contains("more than 23 kg"), "{:?}", lines(text));
}

#[test]
fn m53_a_lost_tier_is_not_filled_from_its_neighbours() {
    let text = "- 5 EUR for parcels of up to 2 kg;\n- 8 EUR for parcels to the islands of up to 5 kg, and for parcels to the \
        mountains of up to 4 kg;\n- 12 EUR for parcels of up to 10 kg.";
    assert_eq!(lines(text), NONE);
}

#[test]
fn m53_a_sentence_gives_names_to_ranges() {
    let text = "From 10 to 20 knots sailors speak of moderate wind, from 20 to 30 knots of strong wind, and above 30 knots of \
        stormy wind.";
    assert_eq!(
        lines(text),
        [
            "between 10 knots and 20 knots -> moderate wind",
            "between 20 knots and 30 knots -> strong wind",
            "more than 30 knots -> stormy wind"
        ]
    );
    for text in [
        "The town has up to 10 km of paved road and more than 20 km of gravel road.",
        "From 10 to 20 knots they speak of moderate wind, and above 20 knots the boats stay ashore.",
    ] {
        assert_eq!(lines(text), NONE, "{text}");
    }
}

#[test]
fn m53_a_longer_name_does_not_state_the_shorter_one() {
    let bands =
        "From 1,500 to 3,500 metres they speak of high altitude, from 3,500 to 5,500 metres of very high altitude.";
    let fuji = "The summit of Mount Fuji is 3,776 metres high.";
    let question = "Does the summit of Mount Fuji count as high or very high altitude?";
    let found = notes(question, &[bands, fuji]);
    assert_eq!(found.len(), 1, "{found:#?}");
    let check = |claim: &str| check_claim(claim, question, &[bands, fuji], &found);
    assert_eq!(check("Mount Fuji counts as very high altitude."), Vec::new());
    assert_eq!(check("The summit lies at high altitude.").len(), 1);
}

const SCALE: &str = "- Category 1: 74 to 95 mph (119 to 153 km/h)\n- Category 2: 96 to 110 mph (154 to 177 km/h)\n- Category \
    3: 111 to 129 mph (178 to 208 km/h)\n- Category 4: 130 to 156 mph (209 to 251 km/h)\n- Category 5: 157 mph or more";

#[test]
fn m53_a_revised_value_takes_the_place_of_the_old_one() {
    let revised = "A review raised the winds of Hurricane Ida at landfall from 155 to 160 mph.";
    let found = texts("Which category was Hurricane Ida?", &[SCALE, revised]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("160 mph") && found[0].ends_with("Category 5."), "{found:?}");
    let range = "Hurricane Ida had winds from 150 to 160 mph.";
    assert_eq!(texts("Which category was Hurricane Ida?", &[SCALE, range]), NONE);
}

#[test]
fn m53_a_rounded_restatement_in_brackets_is_no_second_value() {
    // 155 km/h are 96.3 mph and would be another category.
    let storm = "Hurricane Ida\n\nIda reached the coast. Its winds were 95 mph (155 km/h).";
    let found = texts("Which category was Hurricane Ida?", &[SCALE, storm]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("Category 1."), "{found:?}");
}

#[test]
fn m53_a_pronoun_stands_for_the_title_only_where_nobody_else_can_be_meant() {
    let question = "Which category was Hurricane Ida?";
    let carried = "# Hurricane Ida (2021)\n\nIda formed in the Caribbean. It hit Louisiana near Port Fourchon. A review put \
        its winds at 150 mph.";
    assert_eq!(texts(question, &[SCALE, carried]).len(), 1);
    let other =
        "# Hurricane Ida (2021)\n\nIda formed in the Caribbean. Hurricane Zeta came earlier. Its winds were 115 mph.";
    assert_eq!(texts(question, &[SCALE, other]), NONE);
    let unnamed =
        "# Storms of 2021\n\nIda formed in the Caribbean. It hit Louisiana. A review put its winds at 150 mph.";
    assert_eq!(texts(question, &[SCALE, unnamed]), NONE);
}

#[test]
fn m53_a_term_with_a_hyphen_is_no_way() {
    let question = "Which category of the Saffir-Simpson scale did Hurricane Ida reach?";
    let scale = format!("# The Saffir-Simpson scale\n\n{SCALE}");
    let missing = undetermined(question, &[&scale]);
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].about.as_deref(), Some("Hurricane Ida"));
}

#[test]
fn m53_a_question_for_the_measure_itself_gets_no_tier() {
    let rule = "Passengers get 250 EUR for flights of up to 1,500 km and 400 EUR for flights of more than 1,500 km.";
    let distance = "The flight distance between Munich and Delhi is 5,931 km.";
    for question in
        ["How many kilometres is the flight from Munich to Delhi?", "How far is the flight from Munich to Delhi?"]
    {
        assert_eq!(texts(question, &[rule, distance]), NONE, "{question}");
        assert_eq!(undetermined(question, &[rule]), Vec::new(), "{question}");
    }
}

const FLUTE: &str = "The Magic Flute by Wolfgang Amadeus Mozart was first performed in Vienna on 30 September 1791.";
const MOZART: &str = "# Wolfgang Amadeus Mozart\n\nWolfgang Amadeus Mozart was born in Salzburg on 27 January 1756. In 1781 he \
    settled in Vienna. He died there on 5 December 1791.";

#[test]
fn m53_ages_and_days_between_events() {
    let passages = [FLUTE, MOZART];
    assert_eq!(
        texts("How old was the composer of The Magic Flute when it was first performed?", &passages),
        ["Computed: from 27 January 1756 (Wolfgang Amadeus Mozart born) to 30 September 1791 (The Magic Flute first \
          performed) is 35 full years, so Wolfgang Amadeus Mozart was 35 years old."]
    );
    assert_eq!(
        texts("How many days after the first performance of The Magic Flute did its composer die?", &passages),
        [
            "Computed: from 30 September 1791 (The Magic Flute first performed) to 5 December 1791 (Wolfgang Amadeus Mozart \
          died) is 66 days."
        ]
    );
    assert_eq!(texts("How old was Mozart when he died?", &passages).len(), 1);
}

#[test]
fn m53_an_event_that_is_not_clearly_the_one_asked_about_gives_no_note() {
    let age = "How old was the composer of The Magic Flute when it was first performed?";
    let days = "How many days after the first performance of The Magic Flute did its composer die?";
    for (question, passages) in [
        // Two composers, a date of the year only, a date of something else, a relative, nobody's birth.
        (age, vec![FLUTE, MOZART, "The Magic Flute by Peter Winter was first performed on 1 May 1798."]),
        (age, vec![FLUTE, "Wolfgang Amadeus Mozart was born in 1756."]),
        (age, vec![FLUTE, "Wolfgang Amadeus Mozart was born in Salzburg and was baptised on 28 January 1756."]),
        (
            days,
            vec![
                FLUTE,
                "# Wolfgang Amadeus Mozart\n\nMozart grew up in Salzburg. His father Leopold taught him. He died on 28 May 1787.",
            ],
        ),
        (
            days,
            vec![
                FLUTE,
                "# Wolfgang Amadeus Mozart\n\nMozart settled in Vienna. Joseph Haydn taught there. He died on 31 May 1809.",
            ],
        ),
        (age, vec![FLUTE]),
        (
            "How old was the composer of The Magic Flute when its final version was first performed?",
            vec![FLUTE, MOZART],
        ),
        ("How old was the librettist of The Magic Flute when it was first performed?", vec![FLUTE, MOZART]),
        ("How many days after the first performance of Tosca did its composer die?", vec![FLUTE, MOZART]),
        // Ten full years or eleven by the numbers of the years: it is not said which are meant.
        ("How many years after he settled in Vienna did Mozart die?", vec![FLUTE, MOZART]),
    ] {
        assert_eq!(texts(question, &passages), NONE, "{question}: {passages:?}");
    }
}

const ADULTS: &str = "Healthy adults who are not pregnant can take up to 400 mg of caffeine a day without concern.";
const PREGNANT: &str = "For pregnant women there is no concern up to 200 mg of caffeine a day.";
const COLA: &str = "A standard can of cola of 355 ml contains about 40 mg of caffeine.";

#[test]
fn m53_portions_that_reach_a_limit_are_counted() {
    let passages = [ADULTS, PREGNANT, COLA];
    assert_eq!(
        texts("How many cans of cola reach the daily caffeine limit for healthy adults?", &passages),
        ["Computed: 400 mg / about 40 mg per can ≈ 10 cans."]
    );
    assert_eq!(
        texts("How many cans of cola reach the daily caffeine limit for pregnant women?", &passages),
        ["Computed: 200 mg / about 40 mg per can ≈ 5 cans."]
    );
}

#[test]
fn m53_a_limit_for_others_or_of_another_kind_is_not_divided() {
    let passages = [ADULTS, PREGNANT, COLA];
    for question in [
        "How many cans of cola reach the daily caffeine limit for women?",
        "How many cans of cola reach the daily caffeine limit for pregnant adults?",
        "How many cans of cola reach the daily caffeine limit for children?",
        "How many cans of cola reach the daily caffeine limit?",
        "How many cans of cola reach the lethal dose of caffeine for healthy adults?",
        "How many cans of cola reach the daily sugar limit for healthy adults?",
        "How many bottles of cola reach the daily caffeine limit for healthy adults?",
        "How many cans of beer reach the daily caffeine limit for healthy adults?",
    ] {
        assert_eq!(texts(question, &passages), NONE, "{question}");
    }
    let another = "A can of cola contains 32 mg of caffeine.";
    let question = "How many cans of cola reach the daily caffeine limit for healthy adults?";
    assert_eq!(texts(question, &[ADULTS, COLA, another]), NONE);
}

#[test]
fn m53_a_rule_about_something_else_gives_no_tier() {
    let rule = "Passengers get 250 EUR for flights of up to 1,500 km and 400 EUR for flights of more than 1,500 km.";
    let lower = "For a lower class the airline pays back 30 percent for flights of up to 1,500 km and 50 percent for flights \
        of more than 1,500 km.";
    let distance = "The flight distance between Munich and Delhi is 5,931 km.";
    let baggage = "How much do I get for lost baggage on a flight from Munich to Delhi?";
    assert_eq!(texts(baggage, &[rule, distance]), NONE);
    let denied = "How much can I receive if I am denied boarding on a flight from Munich to Delhi?";
    assert_eq!(texts(denied, &[lower, distance]), NONE);
    assert_eq!(texts(denied, &[rule, lower, distance]).len(), 1);
    let storm = "Hurricane Ida hit Louisiana with winds of 150 mph.";
    assert_eq!(texts("Which force on the Beaufort scale did Hurricane Ida have?", &[SCALE, storm]), NONE);
}

#[test]
fn m53_a_value_given_in_the_question_is_never_asked_for() {
    let rule = "Passengers get 250 EUR for flights of up to 1,500 km and 400 EUR for flights of more than 1,500 km.";
    let question = "How much do I get for a flight of about 1,500 km?";
    assert_eq!(texts(question, &[rule]), NONE);
    assert_eq!(undetermined(question, &[rule]), Vec::new());
}

#[test]
fn m53_a_place_before_then_is_another_event() {
    let storm = "Ida crossed Cuba and then struck Louisiana with winds of 150 mph.";
    assert_eq!(texts("Which category was Hurricane Ida when it hit Cuba?", &[SCALE, storm]), NONE);
    assert_eq!(texts("Which category was Hurricane Ida when it hit Louisiana?", &[SCALE, storm]).len(), 1);
}

proptest! {
    #[test]
    fn m53_no_mixture_of_wordings_breaks_the_notes(
        question in prop::collection::vec(
            prop::sample::select(vec![
                "How old was ", "How many days after ", "how many cans of ", "the composer of ", "The Magic Flute", " when ",
                "it was first performed", " did ", "its composer die", "he died", " reach the daily limit", " for ", "adults",
                "Which category", " was ", "Ida", "?", " the Saffir-Simpson scale", "ß", "İ", "how ", "many", "what share",
            ]),
            0..12,
        ),
        passage in prop::collection::vec(
            prop::sample::select(vec![
                "# Ida (2021)", "\n\n", "Its winds ", "raised from ", "155 to 160 mph", " (260 km/h)", ". ", "He ", "died ", "on ",
                "5 December 1791", "was born ", "Mozart ", "The Magic Flute", " by ", "first performed ", " and then ", "'s ",
                "up to 400 mg of caffeine a day", "A can of ", "cola", " 40 mg of caffeine", "adults ", "from ", "above ",
                "5 km", " they speak of ", "high altitude", ", ", "for longer ones", "30 percent ", "ß", "İ", "日本",
            ]),
            0..40,
        ),
    ) {
        let (question, passage) = (question.concat(), passage.concat());
        let passages = [passage.as_str(), SCALE, MOZART];
        let _ = undetermined(&question, &passages);
        for note in notes(&question, &passages) {
            for (index, span) in note.sources {
                prop_assert!(passages[index].get(span).is_some());
            }
        }
    }
}
