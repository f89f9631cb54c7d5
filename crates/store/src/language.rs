//! The language of a text, by its small words (after Ingle 1976): they are a third of any text, and hardly any is shared.

/// Languages whose words are stemmed. What is in none of them is treated as English, which leaves most words alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
}

const ENGLISH: [&str; 20] = [
    "the", "of", "and", "to", "is", "that", "for", "it", "with", "as", "on", "by", "are", "this", "be", "from", "or",
    "which", "not", "at",
];

const GERMAN: [&str; 28] = [
    "der", "und", "den", "das", "ist", "von", "zu", "mit", "sich", "auf", "für", "im", "dem", "ein", "eine", "nicht",
    "auch", "als", "bei", "wird", "werden", "einer", "einen", "durch", "nach", "oder", "aus", "sind",
];

impl Language {
    pub(crate) const ALL: [Self; 2] = [Self::English, Self::German];

    /// As the index records it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
        }
    }

    /// The language of `text`; English if it can't be told.
    pub(crate) fn of(text: &str) -> Self {
        let (mut english, mut german) = (0, 0);
        for word in text.split(|character: char| !character.is_alphabetic()).filter(|word| word.len() < 9) {
            let word = word.to_lowercase();
            english += usize::from(ENGLISH.contains(&word.as_str()));
            german += usize::from(GERMAN.contains(&word.as_str()));
        }
        if german > 2 * english { Self::German } else { Self::English }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m32_the_language_of_a_text_is_told_by_its_small_words() {
        let german = "Der Mieter kann den Vertrag mit einer Frist von drei Monaten kündigen.";
        let english = "The tenant may end the contract with three months' notice.";
        assert_eq!(Language::of(german), Language::German);
        assert_eq!(Language::of(english), Language::English);
        assert_eq!(Language::of(&format!("{german} {english} It is the law of the land.")), Language::English);
        for unknown in ["", "Kant", "2,850 km", "Le chat est sur la table."] {
            assert_eq!(Language::of(unknown), Language::English, "{unknown}");
        }
    }
}
