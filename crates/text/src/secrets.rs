//! Secrets in texts: private keys, tokens of well-known services, passwords that are written down as such, card numbers.
//!
//! Each kind is told by the form its issuer gives it; passwords by the word before them and by how little they look like
//! language; card numbers by issuer, length and check digit (ISO/IEC 7812, Luhn). What has no form can't be found.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

/// What kind of secret it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    /// A private key.
    PrivateKey,
    /// A token or key of a service.
    Token,
    /// A password, or a key that is called so.
    Password,
    /// The number of a payment card.
    CardNumber,
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivateKey => "a private key",
            Self::Token => "an access token",
            Self::Password => "a password",
            Self::CardNumber => "a card number",
        })
    }
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// What it is.
    pub kind: SecretKind,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
}

/// Least bits of entropy of a password's letters, each: words of a language that are repeated have less.
const LEAST_ENTROPY: f64 = 2.8;

struct Patterns {
    private_key: Regex,
    token: Regex,
    password: Regex,
    digits: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let token = [
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[0-9A-Za-z]{36,255}\b",
        r"\bgithub_pat_[0-9A-Za-z_]{22,255}\b",
        r"\bglpat-[0-9A-Za-z_-]{20,}",
        r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}",
        r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}\b",
        r"\bAIza[0-9A-Za-z_-]{35}",
        r"\bsk-[0-9A-Za-z_-]{20,}",
        r"\bhf_[A-Za-z]{30,}\b",
        r"\bpypi-[0-9A-Za-z_-]{50,}",
        r"\bnpm_[0-9A-Za-z]{36}\b",
        r"\beyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}",
    ]
    .join("|");
    let name = r"pass(?:word|wd|phrase|wort)?|passwort|kennwort|mot de passe|contrase(?:ñ|n)a|pwd|secret|token|api[_ -]?key|access[_ -]?key|client[_ -]?secret|auth[_ -]?token";
    Some(Patterns {
        private_key: Regex::new(
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)",
        )
        .ok()?,
        token: Regex::new(&token).ok()?,
        password: Regex::new(&format!(r#"(?i)(?:\b|_)(?:{name})\b["']?\s{{0,3}}(?::=|=>|[:=])\s{{0,3}}["']?([^\s"',;]{{8,200}})"#))
            .ok()?,
        digits: Regex::new(r"\b\d(?:[ -]?\d){12,18}\b").ok()?,
    })
});

/// The secrets in `text`, in order; none overlaps another.
#[must_use]
pub fn secrets(text: &str) -> Vec<Secret> {
    // The patterns are constants, and a test reads them; without them nothing would be found.
    let Some(patterns) = PATTERNS.as_ref() else { return Vec::new() };
    let whole = |kind, pattern: &Regex| -> Vec<Secret> {
        pattern.find_iter(text).map(|found| Secret { kind, span: found.range() }).collect()
    };
    let mut found = whole(SecretKind::PrivateKey, &patterns.private_key);
    found.extend(whole(SecretKind::Token, &patterns.token));
    let written = patterns.password.captures_iter(text).filter_map(|captures| captures.get(1));
    let secret = |value: &str| !value.contains("()") && looks_secret(value.trim_end_matches(['.', ')', ']', '}']));
    found.extend(
        written
            .filter(|value| secret(value.as_str()))
            .map(|value| Secret { kind: SecretKind::Password, span: value.range() }),
    );
    let numbers = patterns.digits.find_iter(text).filter(|found| is_card(found.as_str()));
    found.extend(numbers.map(|found| Secret { kind: SecretKind::CardNumber, span: found.range() }));
    found.sort_by_key(|secret| (secret.span.start, std::cmp::Reverse(secret.span.end)));
    let mut end = 0;
    found.retain(|secret| {
        let free = secret.span.start >= end;
        end = end.max(secret.span.end);
        free
    });
    found
}

/// `text` with an asterisk for every byte of its secrets: all offsets stay true.
#[must_use]
pub fn redacted(text: &str, secrets: &[Secret]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        redacted.push_str(&text[at..secret.span.start]);
        redacted.extend(std::iter::repeat_n('*', secret.span.len()));
        at = secret.span.end;
    }
    redacted.push_str(&text[at..]);
    redacted
}

/// Letters and others mixed, and none of them much more often than the rest.
fn looks_secret(value: &str) -> bool {
    let letters = value.chars().any(char::is_alphabetic);
    let others = value.chars().any(|c| !c.is_alphabetic());
    let placeholder = value.starts_with(['<', '$', '{', '%', '*']) || value.contains("://");
    letters && others && !placeholder && entropy(value) >= LEAST_ENTROPY
}

/// Bits for each character.
fn entropy(value: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for character in value.chars() {
        *counts.entry(character).or_insert(0u32) += 1;
    }
    let all = f64::from(counts.values().sum::<u32>());
    counts.values().map(|&count| f64::from(count) / all).map(|share| -share * share.log2()).sum()
}

/// A number of an issuer's length and beginning, with a right check digit.
fn is_card(number: &str) -> bool {
    let digits: Vec<u32> = number.chars().filter_map(|c| c.to_digit(10)).collect();
    let first = |count: usize| digits.iter().take(count).fold(0, |number, digit| number * 10 + digit);
    let issued = match digits.len() {
        13 | 19 => first(1) == 4,
        15 => matches!(first(2), 34 | 37),
        16 => {
            first(1) == 4
                || (51..=55).contains(&first(2))
                || (2221..=2720).contains(&first(4))
                || first(4) == 6011
                || first(2) == 65
                || (3528..=3589).contains(&first(4))
        }
        14 => matches!(first(2), 36 | 38) || (300..=305).contains(&first(3)),
        _ => false,
    };
    issued && luhn(&digits)
}

fn luhn(digits: &[u32]) -> bool {
    let doubled = |(place, digit): (usize, &u32)| match (place % 2, digit * 2) {
        (0, _) => *digit,
        (_, twice) if twice > 9 => twice - 9,
        (_, twice) => twice,
    };
    digits.iter().rev().enumerate().map(doubled).sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kinds(text: &str) -> Vec<SecretKind> {
        secrets(text).into_iter().map(|secret| secret.kind).collect()
    }

    #[test]
    fn m37_secrets_are_told_by_their_form() {
        // Put together here, so that no reader of this file takes them for real ones.
        let token = format!("{}{}", "ghp", "_abcdefghijklmnopqrstuvwxyz0123456789");
        let key = format!("-----BEGIN {0}-----\nMIIEvQ\nabc\n-----END {0}-----", "RSA PRIVATE KEY");
        let aws = format!("AKIA{}", "ABCDEFGH12345678");
        assert_eq!(kinds(&format!("see {token}, thanks")), [SecretKind::Token]);
        assert_eq!(kinds(&format!("id {aws}.")), [SecretKind::Token]);
        assert_eq!(kinds(&format!("a\n{key}\nb")), [SecretKind::PrivateKey]);
        assert_eq!(kinds("password: hunter2-Xk9!"), [SecretKind::Password]);
        assert_eq!(kinds("DB_PASSWORD=\"q7Zp_44xLmW\""), [SecretKind::Password]);
        assert_eq!(kinds("{\"api_key\": \"9f86d081884c7d65\"}"), [SecretKind::Password]);
        assert_eq!(kinds("pay with 4111 1111 1111 1111 today"), [SecretKind::CardNumber]);
        assert_eq!(kinds("3782-822463-10005"), [SecretKind::CardNumber]);
    }

    #[test]
    fn m37_what_only_resembles_one_is_let_alone() {
        for text in [
            "The password: please choose one of your own.",
            "password = $PASSWORD",
            "password: <your-password-1>",
            "token = get_token()",
            "secret: https://example.org/a1b2c3",
            "The secret is out: everybody knows.",
            "4111 1111 1111 1112",
            "order 1234567890123456",
            "ISBN 978-3-16-148410-0",
            "tel. +49 30 123456 7890",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert!(kinds(text).is_empty(), "{text}: {:?}", secrets(text));
        }
    }

    #[test]
    fn m37_redaction_keeps_every_offset() {
        let text = "Grüße. password: hunter2-Xk9! Ende. 4111111111111111.";
        let found = secrets(text);
        assert_eq!(found.len(), 2);
        let redacted = redacted(text, &found);
        assert_eq!(redacted.len(), text.len());
        assert_eq!(redacted, "Grüße. password: ************ Ende. ****************.");
        assert!(secrets(&redacted).is_empty());
    }

    proptest! {
        #[test]
        fn m37_any_text_comes_out_with_no_secret_and_its_length(text in "(?s).{0,200}") {
            let redacted = redacted(&text, &secrets(&text));
            prop_assert_eq!(redacted.len(), text.len());
        }
    }
}
