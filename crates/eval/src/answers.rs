//! Scoring short answers, as SQuAD does (Rajpurkar et al. 2016): case, punctuation and articles don't count.

use std::collections::HashMap;

/// Lower case, punctuation as space, English articles left out, white space folded.
#[must_use]
pub fn normalised(text: &str) -> String {
    let lower = text.to_lowercase();
    // A comma or a point inside a number is part of it: 3,559 is not 3 and 559.
    let characters: Vec<char> = lower.chars().collect();
    let mut plain = String::with_capacity(lower.len());
    for (index, &character) in characters.iter().enumerate() {
        let digit_at = |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(char::is_ascii_digit);
        let within_number = digit_at(index.checked_sub(1)) && digit_at(Some(index + 1));
        match character {
            ',' if within_number => {}
            '.' if within_number => plain.push('.'),
            _ if character.is_alphanumeric() => plain.push(character),
            _ => plain.push(' '),
        }
    }
    plain.split_whitespace().filter(|word| !["a", "an", "the"].contains(word)).collect::<Vec<_>>().join(" ")
}

/// True if `text` holds any of `answers` as whole words; in scripts without spaces, as it stands.
#[must_use]
pub fn contains_answer<A: AsRef<str>>(text: &str, answers: &[A]) -> bool {
    let text = format!(" {} ", normalised(text));
    answers.iter().any(|answer| {
        let answer = normalised(answer.as_ref());
        let spaced = answer.chars().all(|character| !is_unspaced(character));
        !answer.is_empty() && if spaced { text.contains(&format!(" {answer} ")) } else { text.contains(&answer) }
    })
}

/// True if every part is there, any alternative of a part counting.
#[must_use]
pub fn contains_parts(text: &str, parts: &[Vec<String>]) -> bool {
    !parts.is_empty() && parts.iter().all(|alternatives| contains_answer(text, alternatives))
}

/// Chinese, Japanese and Thai letters: words stand without spaces.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{0e00}'..='\u{0e7f}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Token F1 of `text` with the answer it agrees with best, 0 … 1.
#[must_use]
pub fn token_f1<A: AsRef<str>>(text: &str, answers: &[A]) -> f64 {
    let given = tokens(text);
    answers.iter().map(|answer| f1(&given, &tokens(answer.as_ref()))).fold(0.0, f64::max)
}

/// Words; letters of scripts without spaces one by one.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    for word in normalised(text).split(' ').filter(|word| !word.is_empty()) {
        if word.chars().any(is_unspaced) {
            tokens.extend(word.chars().map(String::from));
        } else {
            tokens.push(word.to_owned());
        }
    }
    tokens
}

fn f1(given: &[String], wanted: &[String]) -> f64 {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for token in wanted {
        *left.entry(token).or_default() += 1;
    }
    let mut common = 0;
    for token in given {
        if let Some(count) = left.get_mut(token.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    let (precision, recall) = (f64::from(common) / given.len() as f64, f64::from(common) / wanted.len() as f64);
    2.0 * precision * recall / (precision + recall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m41_an_answer_is_found_whatever_its_dress() {
        assert!(contains_answer("It was The  Beatles!", &["beatles"]));
        assert!(contains_answer("About 3559 people live there.", &["3,559 people"]));
        assert!(contains_answer("It rose by 4.5 %.", &["4.5%"]));
        assert!(!contains_answer("In 1862.", &["186"]), "whole words");
        assert!(!contains_answer("anything", &[""]));
        assert!(contains_answer("答案是北京市。", &["北京"]));
    }

    #[test]
    fn m41_every_part_must_be_there() {
        let parts = [vec!["Tampa".to_owned(), "Florida".to_owned()], vec!["2021".to_owned()]];
        assert!(contains_parts("Florida, in 2021", &parts));
        assert!(!contains_parts("Florida", &parts));
        assert!(!contains_parts("Florida", &[]));
    }

    #[test]
    fn m41_token_f1_worked_out_by_hand() {
        assert_eq!(token_f1("The cat sat", &["cat sat"]), 1.0);
        // Two of four given, two of two wanted.
        assert!((token_f1("red blue green white", &["blue red"]) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(token_f1("nothing", &["else"]), 0.0);
        assert_eq!(token_f1::<&str>("nothing", &[]), 0.0);
        assert!((token_f1("he he he", &["he"]) - 0.5).abs() < 1e-12, "a word counts as often as it is wanted");
    }
}
