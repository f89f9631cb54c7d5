//! What is found in a text, as a table of texts and finds.

use proptest::prelude::*;

use super::*;

fn describe(quantity: &Quantity) -> String {
    let mut text = match quantity.bound {
        Bound::Exact => String::new(),
        Bound::AtLeast => ">= ".to_owned(),
        Bound::MoreThan => "> ".to_owned(),
        Bound::AtMost => "<= ".to_owned(),
        Bound::LessThan => "< ".to_owned(),
    };
    if quantity.approximate {
        text.push('~');
    }
    match &quantity.value {
        Value::Number(number) => {
            let rounded = (number.value * 1000.0).round() / 1000.0;
            text.push_str(&format!("{rounded} {}", quantity.unit.symbol));
        }
        Value::Date(date) => text.push_str(&format!("@{date}")),
    }
    if let Some(per) = &quantity.per {
        text.push_str(&format!(" per {per}"));
    }
    text.trim_end().to_owned()
}

fn found(text: &str) -> String {
    extract(text).iter().map(describe).collect::<Vec<_>>().join("; ")
}

#[rustfmt::skip]
const CASES: &[(&str, &str)] = &[
    // Numbers and thousands.
    ("The flight distance is 5,931 km.", "5931 km"),
    ("5 931 km", "5931 km"),
    ("5\u{a0}931\u{a0}km", "5931 km"),
    ("about 5900km away", "~5900 km"),
    ("It weighs 3.5 kg", "3.5 kg"),
    ("a fee of 1.500,50 EUR", "1500.5 EUR"),
    ("a fee of 1.500 EUR", "1500 EUR"),
    ("Die Entfernung zwischen den Städten ist 1.500 km und nicht mehr.", "1500 km"),
    ("exactly 1.500 km", "1.5 km"),
    ("3,5 km long", "3.5 km"),
    ("12,34,567 rupees", "1234567 INR"),
    ("1'500'000 CHF", "1500000 CHF"),
    ("0,5 l", "0.5 l"),
    ("1.5e3 m", "1500 m"),
    ("1.496 × 10^8 km", "149600000 km"),
    ("6 × 10⁻⁷ m", "0 m"),
    ("½ cup and 1½ cups and 2 ½ cups", "0.5 cups; 1.5 cups; 2.5 cups"),
    ("3/4 cup", "0.75 cups"),
    // Magnitudes and words.
    ("3.5 million people live there", "3500000 people"),
    ("a $2bn deal", "2000000000 USD"),
    ("€3m and $5k", "3000000 EUR; 5000 USD"),
    ("three hours", "3 h"),
    ("within six weeks", "<= 6 weeks"),
    ("twenty-five passengers", "25 passengers"),
    ("three hundred and fifty metres", "350 m"),
    ("a dozen eggs", "12 eggs"),
    ("two and a half hours", "2.5 h"),
    ("one hundred thousand dollars", "100000 USD"),
    ("seven (7) days", "7 days"),
    ("a five-hour delay", "5 h"),
    ("a 1,500-km flight", "1500 km"),
    ("the one-way fare of two-thirds", ""),
    ("one can see no one", ""),
    ("12 Mio. Euro", "12000000 EUR"),
    // Money.
    ("US$ 5 million or £1,550.50", "5000000 USD; 1550.5 GBP"),
    ("EUR 250 and USD 775", "250 EUR; 775 USD"),
    ("you are due 250 Euro compensation", "250 EUR"),
    ("400€, or 600 €", "400 EUR; 600 EUR"),
    ("50 EUR per night", "50 EUR per night"),
    ("He paid 5 pounds for 3 pounds of flour", "5 GBP; 3 lb"),
    ("10 Canadian dollars", "10 CAD"),
    // Other dimensions.
    ("25 °C is 77 °F or 298 K", "25 °C; 77 °F; 298 K"),
    ("-5 °C and −12.5°C", "-5 °C; -12.5 °C"),
    ("20 degrees Celsius", "20 °C"),
    ("178–208 km/h", ">= 178 km/h; <= 208 km/h"),
    ("74 mph, 64 knots, 33 m/s", "74 mph; 64 knots; 33 m/s"),
    ("357,022 km² or 137,847 square miles", "357022 km²; 137847 sq mi"),
    ("250 kcal (1046 kJ)", "250 kcal; 1046 kJ"),
    ("a 512 MB file and 2 GiB", "512 MB; 2 GiB"),
    ("200 percent of the fare, 5%, 3 per cent", "200 %; 5 %; 3 %"),
    ("5 hours 30 minutes", "5.5 h"),
    ("6 ft 2 in tall and 6 feet 2 inches", "6.167 ft; 6.167 ft"),
    ("8 minutes and 46 seconds", "8.767 min"),
    ("2 m³ of water and 3 m2", "2 m³; 3 m²"),
    // Limits.
    ("up to 1,500 km", "<= 1500 km"),
    ("more than 3,500 km", "> 3500 km"),
    ("not more than 20 kg", "<= 20 kg"),
    ("a delay that exceeds three hours", "> 3 h"),
    ("does not exceed 10 %", "<= 10 %"),
    ("1500 kilometres or less", "<= 1500 km"),
    ("three hours or more", ">= 3 h"),
    ("65 years and older", ">= 65 years"),
    ("at most about 5 kg", "<= ~5 kg"),
    ("a maximum of 5 kg", "<= 5 kg"),
    ("≥ 252 km/h", ">= 252 km/h"),
    ("under 18.5", "< 18.5"),
    ("über 3.500 km und bis zu 5.000 km für die Strecke", "> 3500 km; <= 5000 km"),
    // Ranges.
    ("between 1,500 and 3,500 km", ">= 1500 km; <= 3500 km"),
    ("1,500–3,500 km", ">= 1500 km; <= 3500 km"),
    ("1,500-3,500 km", ">= 1500 km; <= 3500 km"),
    ("more than 1,500 km and up to 3,500 km", "> 1500 km; <= 3500 km"),
    ("over 1,500 but not more than 3,500 km", "> 1500 km; <= 3500 km"),
    ("from 10 to 20 °C", ">= 10 °C; <= 20 °C"),
    ("one to two hours late", ">= 1 h; <= 2 h"),
    ("$10–20", ">= 10 USD; <= 20 USD"),
    ("$5-10 million", ">= 5000000 USD; <= 10000000 USD"),
    ("between 1500 and 3500 kilometres", ">= 1500 km; <= 3500 km"),
    ("cut from 10 to 5 km", "10 km; 5 km"),
    ("1914–1918", ">= @1914; <= @1918"),
    ("1939–45", ">= @1939; <= @1945"),
    ("zwischen 5 und 10 kg", ">= 5 kg; <= 10 kg"),
    // Dates.
    ("born on 3 March 1923", "@3 March 1923"),
    ("born on March 3, 1923 in Ulm", "@3 March 1923"),
    ("1923-03-03", "@3 March 1923"),
    ("am 3. März 1923", "@3 March 1923"),
    ("03.03.1923", "@3 March 1923"),
    ("3.3.1923", "@3 March 1923"),
    ("in 1997", "@1997"),
    ("In 1997 people began", "@1997"),
    ("in March 1997", "@March 1997"),
    ("44 BC and AD 79", "@44 BC; @AD 79"),
    ("12–18 April 2015", ">= @12 April 2015; <= @18 April 2015"),
    ("between 29 and 19 BC", ">= @29 BC; <= @19 BC"),
    ("the dynasty (990–1451)", ">= @AD 990; <= @1451"),
    ("the 2018–19 academic year", ">= @2018; <= @2019"),
    ("on November 6 , 1869 , in", "@6 November 1869"),
    ("by about 1920 it was", "~@1920"),
    ("the 1970's and her 20s", ""),
    ("since 2010", ">= @2010"),
    ("the Treaty (1648) ended it", "@1648"),
    ("more than 2000 people", "> 2000 people"),
    ("2000 people", "2000 people"),
    // What is no quantity.
    ("No. 5 and Article 7 of Regulation 261/2004", ""),
    ("version 2.3.1 of 10.0.0.1", ""),
    ("call +49 89 1234567 or 555-1234 or 0800 123 456", ""),
    ("1. First point\n2. Second point\n(3) third", ""),
    ("at 10:30 or 5 pm", ""),
    ("the Boeing 747 and Apollo 11", ""),
    ("EU261, A380, H2O, COVID-19", ""),
    ("the 21st century and the 1990s", ""),
    ("as shown in [12]", ""),
    ("a 4K screen, 1920x1080", ""),
    ("Category 3 of § 5", ""),
];

#[test]
fn m53_quantities_are_found_as_written() {
    let mut wrong = Vec::new();
    for (text, expected) in CASES {
        let actual = found(text);
        if actual != *expected {
            wrong.push(format!("{text:?}: expected {expected:?}, found {actual:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

#[test]
fn m53_ranges_join_both_ends() {
    for (text, expected) in [
        ("between 1,500 and 3,500 km", "between 1,500 km and 3,500 km"),
        ("more than 1,500 km and up to 3,500 km", "more than 1,500 km and up to 3,500 km"),
        ("less than 10 kg but at least 5 kg", "at least 5 kg and less than 10 kg"),
        ("up to 1,500 km", "up to 1,500 km"),
        ("157 mph or higher", "at least 157 mph"),
    ] {
        let ranges = ranges(text);
        assert_eq!(ranges.len(), 1, "{text}: {ranges:?}");
        assert_eq!(ranges[0].to_string(), expected);
        assert_eq!(ranges[0].span, 0..text.len(), "{text}");
    }
}

fn one(text: &str) -> Quantity {
    let mut all = extract(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all.remove(0)
}

#[test]
fn m53_units_are_converted_and_rounding_is_allowed_for() {
    use std::cmp::Ordering;
    assert!(same(&one("3,685 miles"), &one("5,931 km")));
    assert!(same(&one("77 °F"), &one("25 °C")));
    assert!(same(&one("3.5 million people"), &one("3,512,345 people")));
    assert!(same(&one("about 5,900 km"), &one("5,931 km")));
    assert!(!same(&one("5,900 km"), &one("5,931 km")));
    assert!(!same(&one("250 EUR"), &one("250.40 EUR")));
    assert!(!same(&one("1 mile"), &one("2 km")));
    assert!(!same(&one("250 EUR"), &one("250 USD")));
    assert_eq!(compare(&one("5,931 km"), &one("3,500 km")), Some(Ordering::Greater));
    assert_eq!(compare(&one("90 minutes"), &one("2 hours")), Some(Ordering::Less));
    assert_eq!(compare(&one("5 kg"), &one("5 km")), None);
    assert_eq!(compare(&one("5 EUR"), &one("6 USD")), None);
    assert_eq!(compare(&one("in 1997"), &one("March 1998")), Some(Ordering::Less));
    assert_eq!(compare(&one("in 1997"), &one("March 1997")), None);
}

#[test]
fn m53_a_range_holds_what_lies_in_it_and_leaves_open_what_its_words_leave_open() {
    let range = |text: &str| ranges(text).remove(0);
    let tier = range("more than 1,500 km and up to 3,500 km");
    assert_eq!(contains(&tier, &one("1,500 km")), Some(false));
    assert_eq!(contains(&tier, &one("3,500 km")), Some(true));
    assert_eq!(contains(&tier, &one("5,931 km")), Some(false));
    assert_eq!(contains(&tier, &one("1,242 miles")), Some(true));
    assert_eq!(contains(&tier, &one("932 miles")), None, "rounding of the miles reaches over the edge");
    assert_eq!(contains(&tier, &one("about 3,500 km")), None);
    assert_eq!(contains(&tier, &one("2 kg")), None);
    let between = range("between 1,500 and 3,500 km");
    assert_eq!(contains(&between, &one("1,500 km")), None);
    assert_eq!(contains(&between, &one("1,501 km")), Some(true));
}

#[test]
fn m53_sums_and_differences_keep_the_decimals_as_written() {
    assert_eq!(subtract(&one("5,895 m"), &one("4,808 m")).map(|it| it.to_string()), Some("1,087 m".to_owned()));
    assert_eq!(add(&one("0.1 kg"), &one("0.25 kg")).map(|it| it.to_string()), Some("0.35 kg".to_owned()));
    assert_eq!(add(&one("250 EUR"), &one("1,400 EUR")).map(|it| it.to_string()), Some("1,650 EUR".to_owned()));
    assert_eq!(add(&one("250 EUR"), &one("1 USD")), None);
    assert_eq!(add(&one("20 °C"), &one("10 °C")), None);
    assert_eq!(subtract(&one("20 °C"), &one("50 °F")).map(|it| it.to_string()), Some("10 °C".to_owned()));
    assert_eq!(subtract(&one("in 1918"), &one("in 1914")).map(|it| it.to_string()), Some("4 years".to_owned()));
    assert_eq!(
        subtract(&one("2 March 2024"), &one("28 February 2024")).map(|it| it.to_string()),
        Some("3 days".to_owned())
    );
    assert_eq!(subtract(&one("AD 14"), &one("44 BC")).map(|it| it.to_string()), Some("57 years".to_owned()));
    let kilometres = one("1 km").unit;
    assert_eq!(convert(&one("3,685 miles"), &kilometres).map(|it| it.to_string()), Some("5,930 km".to_owned()));
}

proptest! {
    #[test]
    fn m53_no_text_breaks_extraction(text in "\\PC{0,120}") {
        for quantity in extract(&text) {
            prop_assert!(text.get(quantity.span.clone()).is_some());
        }
        for range in ranges(&text) {
            prop_assert!(text.get(range.span.clone()).is_some());
        }
    }

    #[test]
    fn m53_no_mixture_of_numbers_and_signs_breaks_extraction(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "5", "1,500", "1.500", "12", "1997", "3", " ", "  ", "\n", "-", "–", "km", " EUR", "€", "$", "%", "°C",
                " and ", " to ", "between ", "up to ", "more than ", "ß", "½", "İ", "\u{a0}", ".", ",", "/", ":", "March ",
                "one ", "hundred ", " per ", "e5", "×10⁶", "+", "(", ")", "BC", "日本", "v. Chr.", "#", "−", " or more",
            ]),
            0..24,
        )
    ) {
        let text = pieces.concat();
        for quantity in extract(&text) {
            prop_assert!(text.get(quantity.span.clone()).is_some(), "{:?}", text);
        }
        for range in ranges(&text) {
            prop_assert!(text.get(range.span.clone()).is_some(), "{:?}", text);
        }
    }

    #[test]
    fn m53_numbers_written_with_thousands_are_read_back(value in 0u32..2_000_000_000, unit in prop::sample::select(vec!["km", "EUR", "kg"])) {
        let text = format!("It was {} {unit} then.", super::model::format_number(f64::from(value), 0));
        let all = extract(&text);
        prop_assert_eq!(all.len(), 1);
        prop_assert_eq!(all[0].number().map(|number| number.value), Some(f64::from(value)));
    }

    #[test]
    fn m53_order_is_antisymmetric_and_sums_commute(left in 0u32..100_000, right in 0u32..100_000) {
        let (first, second) = (one(&format!("{left} km")), one(&format!("{right} miles")));
        prop_assert_eq!(compare(&first, &second), compare(&second, &first).map(std::cmp::Ordering::reverse));
        let same_unit = one(&format!("{right} km"));
        let forward = add(&first, &same_unit).and_then(|sum| sum.base_value());
        let backward = add(&same_unit, &first).and_then(|sum| sum.base_value());
        prop_assert_eq!(forward, backward);
    }
}
