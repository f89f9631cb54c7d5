//! The language of a text.

/// Characters looked at. More changes the answer no more, and costs time for every file.
const SAMPLE: usize = 1200;

/// The language of `text` by ISO 639-3 ("eng"), if it is sure.
pub(crate) fn of(text: &str) -> Option<&'static str> {
    // The beginning is often a heading, a licence, a table: the sample begins a little later where there is more.
    let skipped = if text.len() > 8 * SAMPLE { text.char_indices().nth(SAMPLE / 2).map_or(0, |(at, _)| at) } else { 0 };
    let sample = &text[skipped..];
    let end = sample.char_indices().nth(SAMPLE).map_or(sample.len(), |(at, _)| at);
    let found = whatlang::detect(&sample[..end])?;
    found.is_reliable().then(|| found.lang().code())
}

#[cfg(test)]
mod tests {
    #[test]
    fn m33_a_language_is_told_or_left_open() {
        let german =
            "Der Mietvertrag endet am letzten Tag des Monats, wenn er nicht vorher verlängert wird. ".repeat(3);
        assert_eq!(super::of(&german), Some("deu"));
        let russian = "Компания была основана в Москве, и сейчас в ней работают более двухсот человек. ".repeat(3);
        assert_eq!(super::of(&russian), Some("rus"));
        assert_eq!(super::of("12 34"), None);
        assert_eq!(super::of(""), None);
    }
}
