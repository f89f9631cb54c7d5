//! Who looks, and at what: the part of a knowledge base that a reader may see and wants to see.
//!
//! A source is seen if its access label is empty or `public`, if its owner looks, or if the viewer holds its label; and if
//! it has not expired; and if it fulfils the filter. A document is seen if one of its sources is, and then under the name
//! of such a source: that somebody else has the same text is not told.

use rusqlite::types::Value;
use serde::{Deserialize, Serialize};

use crate::filter::{Filter, Sql};

/// Label of what everybody may see.
pub const PUBLIC: &str = "public";
/// Label of what its owner alone may see.
pub const PRIVATE: &str = "private";

/// Who looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Viewer {
    /// Whoever holds the files: everything is seen.
    #[default]
    Holder,
    /// Somebody with a name and labels.
    Person {
        /// Sees what has this owner.
        name: String,
        /// Sees what has one of these labels.
        labels: Vec<String>,
    },
}

impl Viewer {
    /// The name of a person.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Holder => None,
            Self::Person { name, .. } => Some(name),
        }
    }
}

/// What a snapshot shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) viewer: Viewer,
    pub(crate) filter: Option<Filter>,
}

impl View {
    /// True if nothing but expiry hides anything.
    pub(crate) fn is_whole(&self) -> bool {
        self.viewer == Viewer::Holder && self.filter.is_none()
    }

    /// The condition on a row `s` of `sources` and `d` of `documents` at the moment `now`.
    pub(crate) fn condition(&self, now: i64) -> Sql {
        let mut sql = Sql { text: "(s.expires_at IS NULL OR s.expires_at > ".to_owned(), values: Vec::new() };
        sql.value(Value::Integer(now));
        sql.text.push(')');
        if let Viewer::Person { name, labels } = &self.viewer {
            sql.text.push_str(" AND (s.access IN ('', ");
            sql.value(PUBLIC.to_owned());
            for label in labels.iter().filter(|label| *label != PRIVATE) {
                sql.text.push_str(", ");
                sql.value(label.clone());
            }
            sql.text.push(')');
            if !name.is_empty() {
                sql.text.push_str(" OR s.owner = ");
                sql.value(name.clone());
            }
            sql.text.push(')');
        }
        if let Some(filter) = &self.filter {
            sql.text.push_str(" AND ");
            sql.filter(filter);
        }
        sql
    }
}

/// A set of chunks, by their identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkSet {
    words: Vec<u64>,
    count: usize,
}

impl ChunkSet {
    pub(crate) fn insert(&mut self, chunk: i64) {
        let Ok(chunk) = usize::try_from(chunk) else { return };
        let (word, bit) = (chunk / 64, 1u64 << (chunk % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit == 0 {
            self.words[word] |= bit;
            self.count += 1;
        }
    }

    pub(crate) fn contains(&self, chunk: i64) -> bool {
        usize::try_from(chunk)
            .is_ok_and(|chunk| self.words.get(chunk / 64).is_some_and(|word| word & (1u64 << (chunk % 64)) != 0))
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            (0..64).filter(move |bit| word & (1u64 << bit) != 0).map(move |bit| (at * 64 + bit) as i64)
        })
    }
}

impl FromIterator<i64> for ChunkSet {
    fn from_iter<I: IntoIterator<Item = i64>>(chunks: I) -> Self {
        let mut set = Self::default();
        chunks.into_iter().for_each(|chunk| set.insert(chunk));
        set
    }
}

/// Which of a generation's chunks a search may return.
#[derive(Clone, Debug)]
pub(crate) enum Selection {
    /// All there are.
    All,
    /// These.
    Only(ChunkSet),
}

impl Selection {
    pub(crate) fn contains(&self, chunk: i64) -> bool {
        match self {
            Self::All => true,
            Self::Only(chunks) => chunks.contains(chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_chunks_is_a_set(chunks in prop::collection::vec(-2i64..300, 0..80)) {
            let set: ChunkSet = chunks.iter().copied().collect();
            let model: BTreeSet<i64> = chunks.iter().copied().filter(|&chunk| chunk >= 0).collect();
            prop_assert_eq!(set.len(), model.len());
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert!((-3..310).all(|chunk| set.contains(chunk) == model.contains(&chunk)));
        }
    }
}
