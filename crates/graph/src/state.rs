//! State, updates, and the reducer of each field.
//!
//! A node never changes the state. It returns an update, and each field's reducer says how the update joins what is
//! there. [`state!`](crate::state) writes the update type and the joining from one list of fields, so that no field can be
//! forgotten:
//!
//! ```
//! use anchorite_graph::{Append, AppendBatch, Fixed, Overwrite, State, state};
//!
//! state! {
//!     /// What a small loop knows.
//!     pub struct Notes updated by
//!     /// What a node adds to [`Notes`].
//!     NotesUpdate {
//!         /// Never changes.
//!         question: Fixed<String>,
//!         /// The latest wins.
//!         hypothesis: Overwrite<String>,
//!         /// Grows by single items.
//!         useful: Append<u32>,
//!         /// Grows by one list a round.
//!         queries: AppendBatch<String>,
//!     }
//! }
//!
//! let mut notes = Notes { question: "How far?".to_owned().into(), ..Notes::default() };
//! notes.apply(NotesUpdate { useful: vec![7, 8], queries: Some(vec!["distance".into()]), ..NotesUpdate::default() });
//! notes.apply(NotesUpdate { useful: vec![9], hypothesis: Some("far".into()), ..NotesUpdate::default() });
//! assert_eq!(*notes.useful, [7, 8, 9]);
//! assert_eq!(*notes.queries, [["distance"]]);
//! assert_eq!(*notes.hypothesis, "far");
//! ```

use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a run knows. It must read back from JSON as it was written, since checkpoints keep it so; JSON has no NaN and no
/// infinity.
pub trait State: Clone + Send + Serialize + DeserializeOwned {
    /// What a node returns.
    type Update: Clone + Send + Serialize + DeserializeOwned;

    /// Joins an update to the state, field by field.
    fn apply(&mut self, update: Self::Update);
}

/// How one field of a state takes its part of an update. The default update changes nothing.
pub trait Reducer {
    /// The field's part of an update.
    type Update: Default;

    /// Joins `update` to the field.
    fn reduce(&mut self, update: Self::Update);
}

macro_rules! reducer {
    ($(#[$attribute:meta])* $name:ident<$item:ident>($inner:ty)) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name<$item>($inner);

        // A derived one would ask it of the items of an empty list too.
        impl<$item> Default for $name<$item>
        where
            $inner: Default,
        {
            fn default() -> Self {
                Self(<$inner>::default())
            }
        }

        impl<$item> $name<$item> {
            /// The value, taken out of the field.
            #[must_use]
            pub fn into_inner(self) -> $inner {
                self.0
            }
        }

        impl<$item> From<$inner> for $name<$item> {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }

        impl<$item> Deref for $name<$item> {
            type Target = $inner;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }
    };
}

reducer! {
    /// Set when the run begins, and never changed: its update holds nothing.
    Fixed<T>(T)
}

reducer! {
    /// Takes the latest value; `None` keeps the one that is there.
    Overwrite<T>(T)
}

reducer! {
    /// Adds each item of the update to the end.
    Append<T>(Vec<T>)
}

reducer! {
    /// Adds the update as one list, also when it is empty; `None` adds nothing.
    AppendBatch<T>(Vec<Vec<T>>)
}

/// The update of a [`Fixed`] field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchanged;

impl<T> Reducer for Fixed<T> {
    type Update = Unchanged;

    fn reduce(&mut self, _: Unchanged) {}
}

impl<T> Reducer for Overwrite<T> {
    type Update = Option<T>;

    fn reduce(&mut self, update: Option<T>) {
        if let Some(value) = update {
            self.0 = value;
        }
    }
}

impl<T> Reducer for Append<T> {
    type Update = Vec<T>;

    fn reduce(&mut self, update: Vec<T>) {
        self.0.extend(update);
    }
}

impl<T> Reducer for AppendBatch<T> {
    type Update = Option<Vec<T>>;

    fn reduce(&mut self, update: Option<Vec<T>>) {
        self.0.extend(update);
    }
}

/// Declares a state and its update from one list of fields, each with its [`Reducer`]. See [`State`]'s module for an
/// example. The crate that calls it needs `serde` with `derive`; both types are public to whoever sees the first
/// visibility, and so are their fields.
#[macro_export]
macro_rules! state {
    (
        $(#[$state_attribute:meta])* $visibility:vis struct $state:ident updated by
        $(#[$update_attribute:meta])* $update:ident {
            $($(#[$field_attribute:meta])* $field:ident: $reducer:ty),* $(,)?
        }
    ) => {
        $(#[$state_attribute])*
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        $visibility struct $state {
            $($(#[$field_attribute])* $visibility $field: $reducer,)*
        }

        $(#[$update_attribute])*
        #[derive(Clone, Debug, Default, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default)]
        $visibility struct $update {
            $($(#[$field_attribute])* $visibility $field: <$reducer as $crate::Reducer>::Update,)*
        }

        impl $crate::State for $state {
            type Update = $update;

            fn apply(&mut self, update: $update) {
                $($crate::Reducer::reduce(&mut self.$field, update.$field);)*
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn m07_append_keeps_everything_in_order(updates in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..8)) {
            let mut field = Append::default();
            for update in updates.clone() {
                field.reduce(update);
            }
            prop_assert_eq!(field.into_inner(), updates.concat());
        }

        #[test]
        fn m07_append_batch_keeps_the_rounds_apart(
            updates in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..4)), 0..8),
        ) {
            let mut field = AppendBatch::default();
            for update in updates.clone() {
                field.reduce(update);
            }
            prop_assert_eq!(field.into_inner(), updates.into_iter().flatten().collect::<Vec<_>>());
        }

        #[test]
        fn m07_overwrite_keeps_the_latest(first: u8, updates in prop::collection::vec(any::<Option<u8>>(), 0..8)) {
            let mut field = Overwrite::from(first);
            for update in updates.clone() {
                field.reduce(update);
            }
            prop_assert_eq!(*field, updates.into_iter().flatten().last().unwrap_or(first));
        }
    }

    state! {
        /// Test state.
        struct Four updated by
        /// Test update.
        FourUpdate {
            question: Fixed<String>,
            hypothesis: Overwrite<String>,
            useful: Append<u8>,
            queries: AppendBatch<String>,
        }
    }

    #[test]
    fn m07_the_default_update_changes_nothing() {
        let mut state = Four {
            question: "q".to_owned().into(),
            hypothesis: "h".to_owned().into(),
            useful: vec![1].into(),
            queries: vec![vec!["a".to_owned()]].into(),
        };
        let before = state.clone();
        state.apply(FourUpdate::default());
        assert_eq!(state, before);
        let nothing: FourUpdate = serde_json::from_str("{}").expect("missing fields mean no change");
        assert_eq!(nothing, FourUpdate::default());
    }

    #[test]
    fn m08_fields_are_written_as_plain_values() {
        let state = Four { question: "q".to_owned().into(), useful: vec![3].into(), ..Four::default() };
        let json = serde_json::to_string(&state).expect("writes");
        assert_eq!(json, r#"{"question":"q","hypothesis":"","useful":[3],"queries":[]}"#);
        assert_eq!(serde_json::from_str::<Four>(&json).expect("reads"), state);
    }
}
