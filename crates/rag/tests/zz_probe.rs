use anchorite_rag::quantities::*;
#[test]
fn probe() {
    let d = |f: &str| {
        let t = std::fs::read_to_string(format!("/work/main/data/documents/{f}")).unwrap();
        t
    };
    let go = |q: &str, fs: &[&str]| {
        let ts: Vec<String> = fs.iter().map(|f| d(f)).collect();
        let ts: Vec<&str> = ts.iter().map(|s| s.as_str()).collect();
        eprintln!("=== {q}\n  files {fs:?}");
        for n in notes(q, &ts) {
            eprintln!("  NOTE {}", n.text);
        }
        for u in undetermined(q, &ts) {
            eprintln!("  UNDET {} {:?}", u.what, u.about);
        }
    };
    let s = "hurricanes/saffir-simpson-scale.md";
    for (name, file, place) in [
        ("Andrew", "andrew-1992", "Florida"),
        ("Dorian", "dorian-2019", "the Bahamas"),
        ("Ian", "ian-2022", "Florida"),
        ("Ike", "ike-2008", "Texas"),
        ("Katrina", "katrina-2005", "Louisiana"),
        ("Laura", "laura-2020", "Louisiana"),
        ("Michael", "michael-2018", "Florida"),
    ] {
        let f = format!("hurricanes/{file}.md");
        for q in [
            format!("Which category of the Saffir-Simpson scale did Hurricane {name} have at landfall?"),
            format!("Which category was Hurricane {name} when it made landfall in {place}?"),
            format!("What category was {name}?"),
        ] {
            go(&q, &[s, &f]);
        }
    }
    go("Which category was Hurricane Ian when it hit Cuba?", &[s, "hurricanes/ian-2022.md"]);
    go("Which category was Hurricane Ian when it made landfall in South Carolina?", &[s, "hurricanes/ian-2022.md"]);
    go("Which category was Hurricane Katrina over the Gulf of Mexico?", &[s, "hurricanes/katrina-2005.md"]);
    go(
        "Which category was Hurricane Hugo when it made landfall in South Carolina?",
        &[s, "hurricanes/katrina-2005.md", "hurricanes/ian-2022.md"],
    );
    for city in std::fs::read_dir("/work/main/data/documents/distances").unwrap() {
        let f = city.unwrap().file_name().into_string().unwrap();
        let name: String = f
            .trim_start_matches("munich-")
            .trim_end_matches(".md")
            .split('-')
            .map(|w| {
                let mut c = w.chars();
                c.next().unwrap().to_uppercase().collect::<String>() + c.as_str()
            })
            .collect::<Vec<_>>()
            .join(" ");
        let f = format!("distances/{f}");
        go(
            &format!("How much can I receive if I am denied boarding on a flight from {name} to Munich?"),
            &["flights/eu-sums-by-distance.md", &f],
        );
    }
}
