use anchorite_rag::quantities::*;
#[test]
fn probe() {
    let d = |f: &str| {
        let t = std::fs::read_to_string(format!("/work/main/data/documents/{f}")).unwrap();
        t.trim_start_matches("# ").to_owned()
    };
    let go = |q: &str, fs: &[&str]| {
        let ts: Vec<String> = fs.iter().map(|f| d(f)).collect();
        let ts: Vec<&str> = ts.iter().map(|s| s.as_str()).collect();
        eprintln!("=== {q}\n  files {fs:?}");
        for t in &ts {
            eprintln!(
                "  rules {:?}",
                tiers(t)
                    .iter()
                    .map(|r| (
                        r.tiers.len(),
                        format!(
                            "{:?}",
                            r.tiers.iter().map(|t| format!("{} -> {}", t.range, t.outcome)).collect::<Vec<_>>()
                        )
                    ))
                    .collect::<Vec<_>>()
            );
        }
        for n in notes(q, &ts) {
            eprintln!("  NOTE {}", n.text);
        }
        for u in undetermined(q, &ts) {
            eprintln!("  UNDET {} {:?}", u.what, u.about);
        }
    };
    go(
        "What sum does the airline owe me for denied boarding on a flight from Munich to Cairo?",
        &["flights/eu-sums-by-distance.md", "distances/munich-cairo.md"],
    );
    go(
        "What sum does the airline owe me for denied boarding on a flight from Munich to Cairo?",
        &[
            "flights/eu-sums-by-distance.md",
            "flights/eu-denied-boarding-conditions.md",
            "flights/eu-extraordinary-circumstances.md",
            "flights/eu-long-delays.md",
            "distances/munich-cairo.md",
            "distances/munich-rome.md",
        ],
    );
    go(
        "What share of the ticket price do I get back if I am moved to a lower class on a flight from Munich to Istanbul?",
        &["flights/eu-downgrading.md"],
    );
    go(
        "What share of the ticket price do I get back if I am moved to a lower class on a flight from Munich to Istanbul?",
        &["flights/eu-downgrading.md", "distances/munich-istanbul.md", "distances/munich-lisbon.md"],
    );
    go(
        "I was refused a seat on my flight from Lisbon to Munich because it was overbooked. How much money can I claim?",
        &["flights/eu-sums-by-distance.md", "distances/munich-lisbon.md"],
    );
    go(
        "I was refused a seat on my flight from Lisbon to Munich because it was overbooked. How much money can I claim?",
        &["flights/eu-sums-by-distance.md"],
    );
    go(
        "My flight from Munich to Tokyo arrived five hours late and nothing extraordinary had happened. What compensation can I claim?",
        &["flights/eu-long-delays.md", "flights/eu-sums-by-distance.md", "distances/munich-tokyo.md"],
    );
    go(
        "Which category of the Saffir-Simpson scale did Hurricane Michael have at landfall?",
        &["hurricanes/saffir-simpson-scale.md", "hurricanes/michael-2018.md"],
    );
    go(
        "Which category was Hurricane Katrina when it made landfall in Louisiana?",
        &["hurricanes/saffir-simpson-scale.md", "hurricanes/katrina-2005.md"],
    );
    go(
        "Was Hurricane Ike a category 2 or a category 3 hurricane when it reached Galveston Island?",
        &["hurricanes/saffir-simpson-scale.md", "hurricanes/ike-2008.md"],
    );
    go(
        "How many standard cans of energy drink add up to the daily amount of caffeine that is of no concern for a healthy adult?",
        &["altitude/altitude-bands.md"],
    );
    go(
        "In which of the altitude bands of mountain medicine does the summit of Kilimanjaro lie?",
        &["altitude/altitude-bands.md", "altitude/kilimanjaro.md"],
    );
    go(
        "Does the summit of Mount Fuji count as high, very high or extreme altitude?",
        &["altitude/altitude-bands.md", "altitude/mount-fuji.md"],
    );
    go(
        "By how many metres is Kilimanjaro higher than Mount Fuji?",
        &["altitude/kilimanjaro.md", "altitude/mount-fuji.md"],
    );
    go(
        "How old was the composer of The Magic Flute when it was first performed?",
        &["operas/the-magic-flute.txt", "operas/mozart.txt"],
    );
    go(
        "How many days after the first performance of Carmen did its composer die?",
        &["operas/carmen.txt", "operas/bizet.txt"],
    );
}
