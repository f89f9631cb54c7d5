//! Rules with thresholds, in the wordings they come in.

use proptest::prelude::*;

use super::*;

pub(super) const SEED_WORDING: &str = "Short-distance flight delays – if it is up to 1,500 km, you are due 250 Euro compensation.\n\
    Medium distance flight delays – for all the flights between 1,500 and 3,500 km, the compensation should be 400 Euro.\n\
    Long-distance flight delays – if it is over 3,500 km, you are due 600 Euro compensation. To receive this kind of \
    compensation, the following conditions must be met; Your flight starts in a non-EU member state. Your flight reaches \
    the final destination with a delay that exceeds three hours.";

pub(super) const RULE_SENTENCE: &str = "European Union air passenger rules, sums owed. A traveller who is refused boarding against their will because the \
    flight is overbooked is owed a fixed sum that depends on the distance flown: 250 EUR for flights of up to 1,500 km, \
    400 EUR for flights of more than 1,500 km and up to 3,500 km, and 600 EUR for flights of more than 3,500 km.";

const REGULATION: &str = "Where reference is made to this Article, passengers shall receive compensation amounting to:\n\
    (a) EUR 250 for all flights of 1500 kilometres or less;\n\
    (b) EUR 400 for all intra-Community flights of more than 1500 kilometres, and for all other flights between 1500 and \
    3500 kilometres;\n\
    (c) EUR 600 for all flights not falling under (a) or (b).";

fn lines(text: &str) -> Vec<String> {
    tiers(text)
        .iter()
        .flat_map(|rule| rule.tiers.iter().map(|tier| format!("{} -> {}", tier.range, tier.outcome)))
        .collect()
}

const FLIGHT_TIERS: [&str; 3] =
    ["up to 1,500 km -> 250 EUR", "more than 1,500 km and up to 3,500 km -> 400 EUR", "more than 3,500 km -> 600 EUR"];

#[test]
fn m53_thresholds_in_one_sentence_with_the_outcome_first() {
    assert_eq!(lines(RULE_SENTENCE), FLIGHT_TIERS);
    let rules = tiers(RULE_SENTENCE);
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0].dimension, Dimension::Length);
    assert!(RULE_SENTENCE[rules[0].tiers[1].span.clone()].starts_with("400 EUR for flights"));
    assert_eq!(rules[0].tiers[2].condition_text, "more than 3,500 km");
}

#[test]
fn m53_thresholds_across_sentences_with_the_condition_first() {
    assert_eq!(lines(SEED_WORDING), FLIGHT_TIERS);
}

#[test]
fn m53_thresholds_of_a_regulation_with_a_remainder_and_a_special_case() {
    assert_eq!(
        lines(REGULATION),
        ["up to 1500 km -> 250 EUR", "more than 1500 km and up to 3500 km -> 400 EUR", "more than 3500 km -> 600 EUR"]
    );
    let rules = tiers(REGULATION);
    assert_eq!(rules[0].exceptions.len(), 1);
    assert_eq!(rules[0].exceptions[0].range.to_string(), "more than 1500 km");
}

#[test]
fn m53_thresholds_in_markdown_bullets_and_tables() {
    let bullets = "Compensation:\n\n- **250 €** for flights up to 1,500 km\n- **400 €** for flights over 1,500 km and up to \
        3,500 km\n- **600 €** for flights over 3,500 km\n";
    assert_eq!(lines(bullets), FLIGHT_TIERS);
    let table = "| Distance | Amount |\n|---|---|\n| up to 1,500 km | 250 EUR |\n| more than 1,500 km and up to 3,500 km | \
        400 EUR |\n| more than 3,500 km | 600 EUR |\n";
    assert_eq!(lines(table), FLIGHT_TIERS);
}

#[test]
fn m53_wind_speed_categories_are_labels() {
    let prose = "The Saffir–Simpson scale has five classes. Category 1 hurricanes have winds of 119–153 km/h (74–95 mph). \
        Category 2 hurricanes have winds of 154–177 km/h (96–110 mph). Category 3 hurricanes have winds of 178–208 km/h \
        (111–129 mph). Category 4 hurricanes have winds of 209–251 km/h (130–156 mph). Category 5 hurricanes have winds of \
        252 km/h or higher (157 mph or higher).";
    let expected = [
        "between 119 km/h and 153 km/h -> Category 1",
        "between 154 km/h and 177 km/h -> Category 2",
        "between 178 km/h and 208 km/h -> Category 3",
        "between 209 km/h and 251 km/h -> Category 4",
        "at least 252 km/h -> Category 5",
    ];
    assert_eq!(lines(prose), expected);
    let list = "- Category 1: 119–153 km/h\n- Category 2: 154–177 km/h\n- Category 3: 178–208 km/h\n- Category 4: 209–251 \
        km/h\n- Category 5: ≥ 252 km/h";
    assert_eq!(lines(list), expected);
    let table = "| Category | Wind |\n|---|---|\n| 1 | 119–153 km/h |\n| 2 | 154–177 km/h |\n| 3 | 178–208 km/h |\n| 4 | \
        209–251 km/h |\n| 5 | ≥ 252 km/h |";
    assert_eq!(lines(table), expected);
}

#[test]
fn m53_list_labels_and_nested_limits_are_filled() {
    assert_eq!(
        lines("Underweight: under 18.5\nNormal: 18.5–24.9\nOverweight: 25–29.9\nObese: 30 or more"),
        [
            "less than 18.5 -> Underweight",
            "between 18.5 and 24.9 -> Normal",
            "between 25 and 29.9 -> Overweight",
            "at least 30 -> Obese"
        ]
    );
    assert_eq!(
        lines("You pay 5 EUR for parcels up to 2 kg, 8 EUR for parcels up to 5 kg and 15 EUR for parcels up to 10 kg."),
        ["up to 2 kg -> 5 EUR", "more than 2 kg and up to 5 kg -> 8 EUR", "more than 5 kg and up to 10 kg -> 15 EUR"]
    );
    assert_eq!(
        lines("The discount is 5% for orders of at least 100 EUR and 10% for orders of at least 500 EUR."),
        ["at least 100 EUR and less than 500 EUR -> 5%", "at least 500 EUR -> 10%"]
    );
    assert_eq!(
        lines("The fee is 20 EUR if the bag weighs up to 23 kg, otherwise it is 50 EUR."),
        ["up to 23 kg -> 20 EUR", "more than 23 kg -> 50 EUR"]
    );
}

#[test]
fn m53_shares_by_delay_with_a_cap_in_money_are_one_rule_of_time() {
    let text = "United States rules on bumping. A passenger bumped against their will on a domestic flight receives 200 \
        percent of the one-way fare, at most 775 USD, if the replacement lands one to two hours late, and 400 percent, at \
        most 1,550 USD, if it lands later than that.";
    let rules = tiers(text);
    assert_eq!(rules.len(), 1, "{rules:#?}");
    assert_eq!(rules[0].dimension, Dimension::Time);
    assert_eq!(lines(text), ["between 1 h and 2 h -> 200%", "more than 2 h -> 400%"]);
    assert_eq!(
        lines(
            "Passengers receive 200 percent of the fare when the delay is one to four hours and 400 percent beyond four hours."
        ),
        ["between 1 h and 4 h -> 200%", "more than 4 h -> 400%"]
    );
}

#[test]
fn m53_german_thresholds() {
    assert_eq!(
        lines(
            "Die Ausgleichszahlung ist 250 Euro bei Flügen bis zu 1.500 km, 400 Euro bei Flügen zwischen 1.500 und 3.500 km und 600 Euro bei Flügen über 3.500 km."
        ),
        [
            "up to 1.500 km -> 250 EUR",
            "more than 1.500 km and up to 3.500 km -> 400 EUR",
            "more than 3.500 km -> 600 EUR"
        ]
    );
}

#[test]
fn m53_limits_that_are_no_rule_give_none() {
    for text in [
        "If your flight was up to 1,500 km, you can receive 250 euros.",
        "The 250 EUR phone weighs less than 200 g, and the 400 EUR phone weighs less than 300 g.",
        "The rate was 5% in 2010 and 7% in 2015.",
        "The flight distance between Munich and Delhi is 5,931 km.",
        "It costs 250 EUR for up to 1,500 km and 400 EUR for up to 1,500 km.",
        "Prices start at 10 EUR, 20 EUR, for up to 3 kg, up to 5 kg.",
        "",
    ] {
        assert_eq!(tiers(text), Vec::new(), "{text}");
    }
}

proptest! {
    #[test]
    fn m53_no_text_breaks_the_search_for_rules(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "up to ", "over ", "between ", "1,500", "3,500", " km", " and ", "250", " EUR", "600 EUR", " for ", "\n", "- ",
                "| ", "; ", ". ", "Category ", "3", "otherwise ", "later than that", "ß", "İ", "日本", " or less", ": ", "%",
            ]),
            0..40,
        )
    ) {
        let text = pieces.concat();
        for rule in tiers(&text) {
            prop_assert!(rule.tiers.len() >= 2);
            prop_assert!(text.get(rule.span.clone()).is_some());
            for tier in &rule.tiers {
                prop_assert!(text.get(tier.span.clone()).is_some());
            }
        }
    }
}
